"""A run of the probe on one node: one worker a GPU, telemetry beside them, one result at the end.

This process imports no array library and makes no CUDA call. Whatever happens to a worker, to NVML
or to the disk, it answers signals and says what became of every GPU.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import selectors
import shutil
import signal
import sys
import time
import traceback
from datetime import datetime, timezone
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ..node import reading
from . import documents, files, gpus, inject, program, turns, words
from .backends.hints import NUMPY_HINT, TORCH_HINT
from .gpus import Gpu
from .options import Options
from .peers.stage import Order, Peers
from .phases import PHASES, Assignment
from .problem import ProbeError
from .process import ChildProcess
from .record import GpuRecord
from .session import assignment_document
from .telemetry import Telemetry

SCHEMA = "nodeprep.probe/1"
COMPLETED, INTERRUPTED, FAILED = 0, 3, 4
EXIT_CODES = {"completed": COMPLETED, "interrupted": INTERRUPTED, "failed": FAILED}

TICK_S = 0.2
# Between a worker's last word and its exit status the driver gives back tens of gigabytes.
ENDING_TICK_S = 0.02
ENDING_S = 10.0
# A worker that says nothing for so long hangs in CUDA. Before the first iteration: a cold disk under
# the import of torch, and gigabytes of pinned memory.
SETUP_SILENCE_S = 300.0
LEAST_SILENCE_S = 60.0
SILENT_ITERATIONS = 10
# Of each GPU; later ones are counted in the progress lines.
MISMATCHES_TOLD = 3
# A stopped run must be over within two seconds.
PATIENCE_S = 0.5


class Stopped(BaseException):
    """A signal came while nothing runs yet that would have to be wound up."""


class Run:
    """One run; `execute` it once.

    Args:
        pass_on: Called with each progress line as well, by a soak for its legs.
    """

    def __init__(self, options: Options, pass_on: Optional[Callable[[Dict[str, Any]], None]] = None) -> None:
        self._options = options
        self._pass_on_line = pass_on
        self._started = time.monotonic()
        self._started_at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._signal = 0
        self._preparing = False
        self._records: List[GpuRecord] = []
        self._workers: Dict[str, ChildProcess] = {}
        self._ending: List[Tuple[GpuRecord, ChildProcess, float]] = []
        self._selector = selectors.DefaultSelector()
        self._telemetry: Optional[Telemetry] = None
        self._driver = ""
        self._problems: List[str] = []
        self._hint = ""
        self._disk_trouble = ""
        self._next_progress = 0.0
        self._peers = reading.error("the run ended before the GPUs were measured together")
        self._announced: Set[str] = set()

    def execute(self) -> int:
        """Runs all phases and writes the result; returns the exit code."""
        try:
            self._folder = files.Folder(self._options.out)
        except OSError as error:
            return _give_up(files.explain(error, self._options.out))
        self._catch_signals()
        try:
            self._preparing = True
            self._prepare()
            self._preparing = False
            self._load()
        except Stopped:
            self._problems.clear()
        except ProbeError as error:
            self._problems.append(error.message)
            self._hint = self._hint or error.hint
        except OSError as error:
            # The only files written meanwhile are in the result folder.
            self._disk_trouble = files.explain(error, self._options.out)
        except Exception as error:  # a bug of this program must not cost what was measured until then
            traceback.print_exc()
            self._problems.append("the probe itself failed: %s: %s" % (type(error).__name__, error))
        finally:
            self._preparing = False
            self._end_workers()
            shutil.rmtree(self._folder.file(turns.FOLDER), ignore_errors=True)
        try:
            return self._conclude()
        finally:
            self._folder.close()
            self._selector.close()
            signal.set_wakeup_fd(-1)
            for descriptor in self._wakeup:
                os.close(descriptor)

    @property
    def signalled(self) -> bool:
        """A signal asked for its end, perhaps after its last word."""
        return bool(self._signal)

    # ---- phases

    def _prepare(self) -> None:
        """All that can be refused before a GPU is touched."""
        options = self._options
        self._say("setup", "%s, level %s" % (options.workload.name, options.level), percent=0)
        _require_library(options.backend)
        census = gpus.find(options.root, options.nvml_deadline_s)
        self._driver = census.driver
        chosen = gpus.select(census, options.gpus)
        if not options.gpus:
            self._problems.extend(census.problems)
        if options.flip and not any(options.flip.on(gpu.address) for gpu in chosen):
            raise ProbeError(
                "--inject %s: no GPU of this run is at %s" % (options.inject, options.flip.gpu),
                hint="its GPUs: %s" % ", ".join(gpu.address for gpu in chosen),
            )
        inject.require_target(options.inject, options.flip, [gpu.address for gpu in chosen])
        need = options.memory_bytes
        for gpu in chosen:
            unread = gpus.check_free(gpu, options.share, need)
            if unread:
                self._say("setup", "could not be read: %s" % unread, gpu=gpu.address)
        self._records = [GpuRecord(gpu, options.workload) for gpu in chosen]

    def _load(self) -> None:
        shutil.rmtree(self._folder.file(turns.FOLDER), ignore_errors=True)
        os.makedirs(self._folder.file(turns.FOLDER))
        with open(self._folder.file(files.LOG), "ab") as log:
            addresses = [record.gpu.address for record in self._records]
            self._telemetry = Telemetry(
                self._options.root, addresses, self._options.budget.telemetry_s, self._started
            )
            self._telemetry.start(log.fileno())
            for record in self._records:
                self._start_worker(record, log.fileno())
        while (self._workers or self._ending) and not self._signal:
            self._wait(TICK_S if not self._ending else ENDING_TICK_S)
            self._see_ends()
            self._look_for_silence()
            self._look_at_telemetry(self._telemetry)
            self._report_progress()
        if not self._signal:
            self._cool_down(time.monotonic() + self._options.budget.cool_down_s)
        if not self._signal:
            self._measure_peers()

    def _cool_down(self, end: float) -> None:
        if any(record.state == "completed" for record in self._records):
            self._say("cool-down", "load ended")
            while time.monotonic() < end and not self._signal:
                self._wait(min(TICK_S, max(0.0, end - time.monotonic())))
                if self._telemetry:
                    self._look_at_telemetry(self._telemetry)

    def _measure_peers(self) -> None:
        """The GPUs that got through their own load, together; their memory is free again by now."""
        now = self._now()
        for record in self._records:
            record.cooled_down(now)
        options = self._options
        through = tuple(record.gpu for record in self._records if record.state == "completed")
        with open(self._folder.file(files.LOG), "ab") as log:
            order = Order(
                root=options.root,
                backend=options.backend,
                gpus=through,
                loaded=len(self._records),
                nvml_deadline_s=options.nvml_deadline_s,
                log=log.fileno(),
                hanging_rank=inject.hanging_rank(options.inject),
            )
            self._peers = Peers(order, partial(self._say, "peers"), lambda: bool(self._signal)).run()

    def _conclude(self) -> int:
        now = self._now()
        for record in self._records:
            if self._signal:
                record.interrupt(now)
            elif self._disk_trouble or self._problems:
                record.fail(self._disk_trouble or self._problems[-1], "", now)
            record.cooled_down(now)
        if self._telemetry:
            self._telemetry.stop(PATIENCE_S)
        try:
            self._write_telemetry()
        except OSError as error:
            self._disk_trouble = self._disk_trouble or files.explain(error, self._options.out)
        document = self._document()
        try:
            self._folder.write_result(document)
        except OSError as error:
            return _give_up(files.explain(error, self._folder.file(files.RESULT)))
        if document["state"] != "completed":
            print("%s: %s" % (document["state"], document["error"]), file=sys.stderr)
            if document["hint"]:
                print("hint: %s" % document["hint"], file=sys.stderr)
        try:
            self._say("end", words.at_the_end(document, self._records), percent=100)
        except OSError as error:
            # The result is written; a missing last progress line changes nothing in it.
            print(files.explain(error, files.PROGRESS), file=sys.stderr)
        return EXIT_CODES[document["state"]]

    # ---- workers

    def _start_worker(self, record: GpuRecord, log: int) -> None:
        gpu, options = record.gpu, self._options
        spec = {
            "backend": options.backend,
            "engine": options.computes,
            "root": options.root,
            "turns": self._folder.file(turns.FOLDER),
            # Simulated copies do not contend.
            "everybody": [one.gpu.address for one in self._records] if options.backend == "torch" else [],
            "gpu": {"address": gpu.address, "uuid": gpu.uuid, "name": gpu.name},
            "assignment": assignment_document(
                Assignment(
                    options.workload,
                    options.budget.with_peers(len(self._records)),
                    self._started,
                    options.flip_on(gpu.address),
                )
            ),
        }
        try:
            worker = ChildProcess("worker", spec, _environment(options.backend, gpu, len(self._records)), log)
        except OSError as error:
            record.fail("no worker process could be started: %s" % error, "", self._now())
            self._give_up_turn(record)
            return
        self._workers[gpu.address] = worker
        self._selector.register(worker, selectors.EVENT_READ, record)

    def _wait(self, seconds: float) -> None:
        """Handles what arrives within so many seconds; returns early after anything did."""
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, GpuRecord):
                self._receive(key.data)
            else:
                os.read(key.fd, 512)

    def _receive(self, record: GpuRecord) -> None:
        worker = self._workers[record.gpu.address]
        messages = worker.read()
        if messages is None:
            self._forget(record)
            self._ending.append((record, worker, self._now() + ENDING_S))
            return
        for message in messages:
            record.apply(message, self._now())
            self._pass_on(record, message)

    def _see_ends(self) -> None:
        """Takes the exit status of workers that have said their last: the driver may still be cleaning up."""
        left = []
        for record, worker, deadline in self._ending:
            how = worker.ended(0)
            if not how and self._now() < deadline:
                left.append((record, worker, deadline))
                continue
            if not how:
                worker.kill()
            record.worker_ended(how or "it fell silent and did not go away", self._now())
            if record.state == "failed":
                self._say("failed", record.error, gpu=record.gpu.address)
        self._ending = left

    def _pass_on(self, record: GpuRecord, message: Dict[str, Any]) -> None:
        """Progress lines of phases, once for all GPUs, and of findings."""
        if message["kind"] == "phase":
            if message["name"] not in self._announced:
                self._announced.add(message["name"])
                self._say(message["name"], PHASES[message["name"]].words)
        elif message["kind"] == "mismatch" and record.mismatches <= MISMATCHES_TOLD:
            found = message["mismatch"]
            again = {True: ", and again on a repeat", False: ", but not on a repeat", None: ""}
            self._say(
                "compute",
                "iteration %d: %s differ from the reference%s"
                % (
                    found["iteration"],
                    words.part_name(found["part"], found["block"], self._options.workload.depth),
                    again[found["confirmed"]],
                ),
                gpu=record.gpu.address,
            )

    def _look_for_silence(self) -> None:
        for record in self._records:
            if record.gpu.address not in self._workers:
                continue
            longest = max(record.compute.seconds, default=0.0)
            limit = (
                max(LEAST_SILENCE_S, SILENT_ITERATIONS * longest) if record.iterations else SETUP_SILENCE_S
            )
            if self._now() - record.last_message_t > limit:
                record.fail(
                    "no sign of life for %.0f s in the phase %s: the GPU or its driver hangs"
                    % (limit, record.phase),
                    "look for Xid lines in the kernel log: journalctl -k -g NVRM",
                    self._now(),
                )
                self._workers[record.gpu.address].kill()
                self._forget(record)
                self._say("failed", record.error, gpu=record.gpu.address)

    def _look_at_telemetry(self, telemetry: Telemetry) -> None:
        """Xids, and whether anybody still samples; fast samples while a square wave runs."""
        phases = {record.phase for record in self._records if record.running}
        telemetry.watch_power("transients" in phases)
        if telemetry.trouble and "telemetry" not in self._announced:
            self._announced.add("telemetry")
            self._say("telemetry", telemetry.trouble)
        for event in telemetry.take_events():
            for record in self._records:
                if record.gpu.address == event["gpu"] and record.note_event(event):
                    self._say("failed", record.error, gpu=record.gpu.address)
                    worker = self._workers.get(record.gpu.address)
                    if worker is not None:
                        worker.kill()

    def _give_up_turn(self, record: GpuRecord) -> None:
        """The others must not wait for a worker that is gone."""
        try:
            turns.mark_done(self._folder.file(turns.FOLDER), record.gpu.address)
        except OSError as error:
            # They wait out their patience then, and say that nothing could be measured alone.
            print(files.explain(error, turns.FOLDER), file=sys.stderr)

    def _forget(self, record: GpuRecord) -> None:
        self._give_up_turn(record)
        worker = self._workers.pop(record.gpu.address)
        self._selector.unregister(worker)
        worker.close()

    def _end_workers(self) -> None:
        workers = [*self._workers.values(), *(worker for _, worker, _ in self._ending)]
        for worker in workers:
            worker.kill()
        end = time.monotonic() + PATIENCE_S
        for worker in workers:
            worker.ended(max(0.0, end - time.monotonic()))

    # ---- signals

    def _catch_signals(self) -> None:
        reader, writer = self._wakeup = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._selector.register(reader, selectors.EVENT_READ, None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: Any) -> None:
        self._signal = self._signal or number
        # NVML may hang until its deadline, far longer than a stopped run may take.
        if self._preparing:
            self._preparing = False
            raise Stopped

    # ---- words

    def _now(self) -> float:
        return time.monotonic() - self._started

    def _say(self, phase: str, message: str, *, gpu: str = "", percent: Optional[int] = None) -> None:
        line = {
            "t_s": round(self._now(), 1),
            "phase": phase,
            "message": message,
            "percent": self._percent() if percent is None else percent,
            "gpu": gpu,
        }
        self._folder.progress(line)
        if self._pass_on_line:
            self._pass_on_line(line)

    def _percent(self) -> int:
        return min(99, int(100 * self._now() / (self._options.budget.planned_s + 1.0)))

    def _report_progress(self) -> None:
        """One line for all GPUs, once each of them computes."""
        busy = [record for record in self._records if record.running]
        if not any(record.phase == "compute" for record in busy):
            return
        if not all(record.iterations for record in busy) or self._now() < self._next_progress:
            return
        self._next_progress = self._now() + self._options.budget.progress_s
        self._say("compute", words.of_load(busy, self._telemetry))

    # ---- documents

    def _write_telemetry(self) -> None:
        if self._telemetry is None:
            return
        for record in self._records:
            address = record.gpu.address
            document = self._telemetry.document(address, self._options.simulated, record.phases())
            self._folder.write_telemetry(address, document)

    def _document(self) -> Dict[str, Any]:
        options = self._options
        state, error, hint = self._outcome()
        versions = {"python": platform.python_version()}
        if self._driver:
            versions["driver"] = self._driver
        for record in self._records:
            versions.update(record.versions)
        return {
            "schema": SCHEMA,
            "host": "",
            "run": options.run,
            "simulated": options.simulated,
            "backend": options.computes,
            "state": state,
            "error": error,
            "hint": hint,
            "level": options.level,
            "workload": options.workload.document(),
            "injected": options.inject,
            "probe_digest": program.digest(),
            "versions": versions,
            "started_at": self._started_at,
            "duration_s": round(self._now(), 3),
            "peers": self._peers,
            "gpus": [
                documents.of_gpu(record, self._telemetry, options, self._started) for record in self._records
            ],
        }

    def _outcome(self) -> Tuple[str, str, str]:
        """State, error and hint of the run as a whole."""
        if self._disk_trouble:
            return "failed", self._disk_trouble, "free space there, or name another folder with --out"
        if self._signal:
            return "interrupted", "stopped by %s" % signal.Signals(self._signal).name, ""
        return documents.outcome(self._records, self._problems, self._hint)


def _require_library(backend: str) -> None:
    """A look without the import, which takes seconds; the worker finds out whether it also works."""
    library = "torch" if backend == "torch" else "numpy"
    if importlib.util.find_spec(library) is None:
        raise ProbeError(
            "%s has no %s" % (sys.executable, "PyTorch" if library == "torch" else "numpy"),
            hint=TORCH_HINT if library == "torch" else NUMPY_HINT,
        )


def _environment(backend: str, gpu: Gpu, workers: int) -> Dict[str, str]:
    environment = dict(os.environ)
    if backend == "torch":
        environment["CUDA_VISIBLE_DEVICES"] = gpu.uuid
        threads = max(1, (os.cpu_count() or 1) // max(1, workers))
        environment.setdefault("OMP_NUM_THREADS", str(threads))
    else:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            environment[name] = "1"
    return environment


def _give_up(message: str) -> int:
    """No result can be written: standard error is all that is left."""
    print("failed: %s" % message, file=sys.stderr)
    print("hint: free space there, or name another folder with --out", file=sys.stderr)
    return FAILED
