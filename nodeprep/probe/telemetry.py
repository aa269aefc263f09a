"""What the sampling process saw: columns for the file, summaries for the result.

The parent's side. A sampler that was killed, ended or fell silent is `trouble`, and its samples then
prove nothing, however many there were before.
"""

from __future__ import annotations

import os
import select
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..node import reading
from .files import telemetry_name
from .process import ChildProcess
from .series import Series, Windows, inside, summary

SCHEMA = "nodeprep.telemetry/1"
# The name under which `values` has what was read between the samples during transients.
FAST_POWER = "power_fast_w"
# A sample takes a second at most whatever NVML does (nvml_sample.DEADLINE_S); the rest is a busy host.
SILENCE_S = 10.0


class Telemetry:
    """Samples in a process of their own, read by a thread: neither can hang the probe.

    Args:
        root: Where NVML is.
        addresses: The GPUs.
        period_s: From the start of one sample to the start of the next.
        started: time.monotonic() of the run's start.
    """

    def __init__(self, root: str, addresses: Sequence[str], period_s: float, started: float) -> None:
        self._root = root
        self._period_s = period_s
        self._started = started
        self._series = {address: Series() for address in addresses}
        self._events: List[Dict[str, Any]] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._trouble = ""
        self._watching_power = False
        self._cost: Dict[str, Any] = reading.error("no sample was taken")
        self._process: Optional[ChildProcess] = None
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self, log: int) -> None:
        """Begins to sample; what the process prints goes to `log`."""
        spec = {
            "root": self._root,
            "addresses": list(self._series),
            "period_s": self._period_s,
            "started": self._started,
        }
        try:
            self._process = ChildProcess("sampler", spec, dict(os.environ), log, takes_orders=True)
        except OSError as error:
            self._trouble = "no telemetry process could be started: %s" % error
            return
        self._thread.start()

    def stop(self, patience_s: float) -> None:
        """Ends sampling; takes what was told until then."""
        self._stop.set()
        if self._process is None:
            return
        self._process.kill()
        self._thread.join(timeout=patience_s)
        self._process.ended(patience_s)

    def watch_power(self, on: bool) -> None:
        """Instantaneous power every 20 ms from now on, or no more."""
        if self._process is not None and on != self._watching_power:
            self._watching_power = on
            self._process.order({"watch_power": on})

    @property
    def pid(self) -> int:
        """Of the process; 0 when there is none."""
        return self._process.pid if self._process else 0

    def latest(self, address: str, column: str) -> Optional[float]:
        """The last value of a column, None when there is none."""
        with self._lock:
            values = self._series[address].columns[column]
            return values[-1] if values else None

    def take_events(self) -> List[Dict[str, Any]]:
        """NVML's events since this was last asked."""
        with self._lock:
            events, self._events = self._events, []
            return events

    def listening(self, address: str) -> Dict[str, Any]:
        """Whether NVML tells of a GPU's events: a reading of true, or why not."""
        with self._lock:
            return reading.error(self._trouble) if self._trouble else self._series[address].listening

    def aer_path(self, address: str) -> Dict[str, Any]:
        """Errors that each function on a GPU's path has counted since the first sample."""
        with self._lock:
            seen = self._series[address].aer
            trouble = self._trouble
        if trouble or not seen:
            return reading.error(trouble or "no sample was taken")
        first, last = seen[0], seen[-1]
        if first["state"] != "ok" or last["state"] != "ok":
            return first if first["state"] != "ok" else last
        before = {hop["address"]: hop for hop in first["value"]}
        return reading.ok([_added(before.get(hop["address"]), hop) for hop in last["value"]])

    def document(self, address: str, simulated: bool, phases: List[Dict[str, Any]]) -> Dict[str, Any]:
        """The samples as nodeprep.telemetry/1."""
        with self._lock:
            series = self._series[address]
            columns = {name: list(values) for name, values in series.columns.items()}
            draws = list(series.draws)
        return {
            "schema": SCHEMA,
            "gpu": address,
            "simulated": simulated,
            "period_ms": self._period_s * 1000.0,
            "columns": columns,
            "transient_t_s": [t for t, _ in draws],
            "transient_power_w": [watts for _, watts in draws],
            "phases": phases,
        }

    @property
    def trouble(self) -> str:
        """Why sampling ended early; "" when it did not."""
        with self._lock:
            return self._trouble

    def values(self, address: str, column: str, start_s: float, end_s: float) -> List[Tuple[float, float]]:
        """Times and values of a column that were sampled wholly within a stretch of the run."""
        with self._lock:
            series = self._series[address]
            if column == FAST_POWER:
                return [(t, watts) for t, watts in series.draws if start_s <= t <= end_s]
            return [
                (series.columns["t_s"][index] or 0.0, value)
                for index in inside(series, [(start_s, end_s)])
                for value in [series.columns[column][index]]
                if value is not None
            ]

    def summary(self, address: str, windows: Windows, enforced_limit_w: Dict[str, Any]) -> Dict[str, Any]:
        """What nodeprep.probe/1 says of the compute phases.

        Args:
            address: The GPU.
            windows: Start and end of each in seconds of the run.
            enforced_limit_w: Reading of the power limit.
        """
        with self._lock:
            document = summary(self._series[address], windows, self._trouble)
            document["trouble"] = self._trouble
            document["cpu_of_run_fraction"] = self._cost
        document["file"] = telemetry_name(address)
        document["period_ms"] = self._period_s * 1000.0
        document["enforced_limit_w"] = enforced_limit_w
        return document

    # ---- the thread

    def _run(self) -> None:
        process = self._process
        assert process is not None  # noqa: S101 - the thread is started with it
        while True:
            ready, _, _ = select.select([process], [], [], SILENCE_S)
            messages = process.read() if ready else None
            if messages is None:
                self._lose(process, silent=not ready)
                return
            with self._lock:
                for message in messages:
                    self._take(message)

    def _lose(self, process: ChildProcess, silent: bool) -> None:
        """Nothing more will come."""
        if self._stop.is_set():
            return
        if silent:
            process.kill()
            why = "the telemetry process gave no sign of life for %.0f s, and was ended" % SILENCE_S
        else:
            why = "the telemetry process ended early: %s" % (process.ended(1.0) or "it closed its pipe")
        with self._lock:
            self._trouble = self._trouble or why

    def _take(self, message: Dict[str, Any]) -> None:
        if message["kind"] == "trouble":
            self._trouble = message["why"]
            return
        begun, done = message["start_s"], message["end_s"]
        for address, seen in message["gpus"].items():
            series = self._series[address]
            series.add(begun, done, seen["values"], seen["failures"])
            series.draws.extend((t, watts) for t, watts in seen["draws"])
            series.listening = message["listening"][address]
            if address in message["aer"]:
                # Only the first and the last are of use.
                series.aer = [*series.aer[:1], message["aer"][address]]
        self._events.extend(message["events"])
        if done > 0:
            self._cost = reading.ok(message["cpu_s"] / done)


def _added(before: Optional[Dict[str, Any]], after: Dict[str, Any]) -> Dict[str, Any]:
    """A hop's errors since the first look."""
    found = {"address": after["address"]}
    for kind in ("correctable", "non_fatal", "fatal"):
        if after[kind]["state"] != "ok":
            found[kind] = after[kind]
        elif before is None or before[kind]["state"] != "ok":
            found[kind] = reading.error("there was no such count at the start")
        else:
            found[kind] = reading.ok(after[kind]["value"] - before[kind]["value"])
    return found
