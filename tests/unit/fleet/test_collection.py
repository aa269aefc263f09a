"""The parts of the collection below its modules: bundles, bounded commands, unpacking, jobs."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeprep.fleet.content import collections_path

Load = Callable[[str], Any]


@pytest.fixture(scope="module")
def load() -> Load:
    """Imports a part of the collection as Ansible does."""
    sys.path.insert(0, str(collections_path()))
    return lambda name: importlib.import_module(f"ansible_collections.nodeprep.rack.plugins.{name}")


# ---- bundles ------------------------------------------------------------------------------------------


def read(path: Path) -> tuple[dict[str, bytes], dict[str, dict[str, Any]]]:
    """Contents by name, and the manifest's parts by name."""
    with tarfile.open(path) as archive:
        files = {entry.name: (archive.extractfile(entry) or io.BytesIO()).read() for entry in archive}
    parts = json.loads(files.pop("MANIFEST.json"))["parts"]
    return files, {part["name"]: part for part in parts}


def test_a_bundle_says_what_is_in_it_and_what_is_not(load: Load, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"content")
    (tmp_path / "link").symlink_to("/etc/passwd")
    bundle = load("module_utils.packing").Bundle(str(tmp_path / "out" / "b.tar.gz"), 1000)
    bundle.add_document("facts/now.json", {"b": 1, "a": 2})
    bundle.add_text("kernel.log", "line\n", "the whole log")
    bundle.add_file("there", str(tmp_path / "there"))
    bundle.add_file("absent", str(tmp_path / "absent"))
    bundle.add_file("link", str(tmp_path / "link"))
    assert not (tmp_path / "out" / "b.tar.gz").exists()
    bundle.close(simulated=True)
    bundle.abandon()
    files, parts = read(tmp_path / "out" / "b.tar.gz")
    assert files == {
        "facts/now.json": b'{\n  "a": 2,\n  "b": 1\n}\n',
        "kernel.log": b"line\n",
        "there": b"content",
    }
    assert parts["there"]["sha256"] == hashlib.sha256(b"content").hexdigest()
    assert parts["kernel.log"]["reason"] == "the whole log"
    assert parts["absent"] == {"name": "absent", "state": "missing", "reason": "No such file or directory"}
    assert parts["link"]["state"] == "missing"
    assert (tmp_path / "out" / "b.tar.gz").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.tar.gz"]


def test_a_bundle_cuts_logs_and_leaves_out_documents_that_do_not_fit(load: Load, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 101)
    bundle = load("module_utils.packing").Bundle(str(tmp_path / "b.tar.gz"), 100)
    bundle.add_document("facts.json", {"text": "x" * 200})
    bundle.add_file("large", str(tmp_path / "large"))
    bundle.add_text("kernel.log", "a" * 50 + "z" * 90)
    bundle.close()
    files, parts = read(tmp_path / "b.tar.gz")
    assert files == {"kernel.log": b"a" * 10 + b"z" * 90}
    assert (parts["kernel.log"]["state"], parts["kernel.log"]["reason"]) == (
        "cut",
        "the first 40 bytes were cut off",
    )
    assert "more than the 100 left" in parts["large"]["reason"]
    assert parts["facts.json"]["state"] == "missing"


def test_a_bundle_that_is_given_up_leaves_nothing(load: Load, tmp_path: Path) -> None:
    bundle = load("module_utils.packing").Bundle(str(tmp_path / "b.tar.gz"), 100)
    bundle.abandon()
    assert list(tmp_path.iterdir()) == []


def test_results_are_what_the_probe_wrote_with_the_result_first(load: Load, tmp_path: Path) -> None:
    for name in ("result.json", "a.json", "probe.pyz", "results.tar.gz", ".reserve", "x.7.new", "probe.log"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder").mkdir()
    assert load("module_utils.packing").results(str(tmp_path)) == ["result.json", "a.json", "probe.log"]


def _since(state: str = "ok", boot: str = "b1") -> dict[str, Any]:
    position = {"state": state, "value": 40_000_000}
    return {"boot_id": boot, "sequence": position, "monotonic_us": position}


@pytest.mark.parametrize(
    ("since", "limit"),
    [
        (None, []),
        (_since(), ["--since=-85s"]),
        # Of another boot, or of no position: the whole journal of this one.
        (_since(boot="b2"), []),
        (_since(state="error"), []),
    ],
)
def test_the_journal_begins_where_the_kernel_log_does(
    load: Load, tmp_path: Path, since: dict[str, Any] | None, limit: list[str]
) -> None:
    proc = tmp_path / "proc"
    (proc / "sys" / "kernel" / "random").mkdir(parents=True)
    (proc / "sys" / "kernel" / "random" / "boot_id").write_text("b1\n")
    (proc / "uptime").write_text("125.90 99.0\n")
    module = load("modules.bundle")
    given = {"root": str(tmp_path), "since": since}
    assert module._only_new(["journalctl", "-k"], given) == limit
    assert module._only_new(["lspci", "-D"], given) == []


# ---- commands that end --------------------------------------------------------------------------------


def test_a_command_that_does_not_end_is_killed_with_its_children(load: Load, tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path / 'child'}; echo begun; wait"
    with (tmp_path / "out").open("wb") as output:
        began = time.monotonic()
        said = load("module_utils.bounded").run(["sh", "-c", script], 1.0, output)
    assert said == "no end within 1 s; killed"
    assert time.monotonic() - began < 30
    assert (tmp_path / "out").read_text() == "begun\n"
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 20
    while Path(f"/proc/{child}/stat").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.02)
    else:
        assert not Path(f"/proc/{child}").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["true"], ""),
        (["sh", "-c", "exit 3"], "exit code 3"),
        (["/absent/x"], "/absent/x: No such file or directory"),
    ],
)
def test_how_a_command_ended(load: Load, tmp_path: Path, command: list[str], said: str) -> None:
    with (tmp_path / "out").open("wb") as output:
        assert load("module_utils.bounded").run(command, 5.0, output) == said


# ---- unpacking what a node sent -------------------------------------------------------------------------


def archive(path: Path, *entries: tarfile.TarInfo, content: bytes = b"") -> str:
    with tarfile.open(path, "w:gz") as made:
        for entry in entries:
            entry.size = len(content) if entry.isfile() else 0
            made.addfile(entry, io.BytesIO(content))
    return str(path)


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


def test_plain_files_are_unpacked(load: Load, tmp_path: Path) -> None:
    packed = archive(tmp_path / "a.tar.gz", entry("b.json"), entry("a.json"), content=b"{}")
    assert load("action.retrieve")._unpack(packed, str(tmp_path / "out"), 100) == ["a.json", "b.json"]
    assert (tmp_path / "out" / "a.json").read_bytes() == b"{}"


@pytest.mark.parametrize(
    "evil",
    [
        entry("../outside"),
        entry("a/../../outside"),
        entry("link", tarfile.SYMTYPE, "/etc/passwd"),
        entry("hard", tarfile.LNKTYPE, "/etc/passwd"),
        entry("device", tarfile.CHRTYPE),
        entry("fifo", tarfile.FIFOTYPE),
    ],
    ids=lambda each: each.name,
)
def test_what_a_node_must_not_send_is_refused(load: Load, tmp_path: Path, evil: tarfile.TarInfo) -> None:
    packed = archive(tmp_path / "a.tar.gz", evil, content=b"x")
    (tmp_path / "in").mkdir()
    with pytest.raises(tarfile.TarError):
        load("action.retrieve")._unpack(packed, str(tmp_path / "in" / "out"), 100)
    assert not (tmp_path / "in" / "outside").exists()
    assert not (tmp_path / "outside").exists()


def test_an_absolute_name_stays_inside(load: Load, tmp_path: Path) -> None:
    packed = archive(tmp_path / "a.tar.gz", entry("/absolute"), content=b"x")
    load("action.retrieve")._unpack(packed, str(tmp_path / "out"), 100)
    assert (tmp_path / "out" / "absolute").read_bytes() == b"x"


def test_an_archive_that_unpacks_to_too_much_is_refused(load: Load, tmp_path: Path) -> None:
    packed = archive(tmp_path / "a.tar.gz", entry("zeros"), content=b"\0" * 1_000_000)
    assert Path(packed).stat().st_size < 10_000
    with pytest.raises(tarfile.TarError, match="more than 999999 bytes"):
        load("action.retrieve")._unpack(packed, str(tmp_path / "out"), 999_999)


# ---- jobs -----------------------------------------------------------------------------------------------


class Probe:
    """Stands for nodeprep.node.probe_job: which folders have a probe that runs, and what was asked."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.started: list[tuple[Any, ...]] = []
        self.stopped: list[str] = []
        self.lines: list[dict[str, Any]] = []
        self.began = time.time()

    def poll(self, job_dir: str, wait_s: float = 0.0, after_line: int = 0) -> dict[str, Any]:
        runs = job_dir in self.running
        state = "running" if runs else "completed" if Path(job_dir).is_dir() else "absent"
        return {
            "state": state,
            "finished": not runs,
            "progress": self.lines[after_line:],
            "lines": len(self.lines),
            "error": "no probe was started" if state == "absent" else "",
            "hint": "",
            "job": {"started": self.began},
        }

    def start(self, *given: Any) -> dict[str, Any]:
        self.started.append(given)
        return {"changed": True, "failed": False, "error": "", "hint": "", "job": {"started": self.began}}

    def stop(self, job_dir: str, grace_s: float) -> dict[str, Any]:
        was = job_dir in self.running
        self.running.discard(job_dir)
        self.stopped.append(job_dir)
        return {**self.poll(job_dir), "changed": was, "killed": False, "state": "interrupted"}


@pytest.fixture
def probe(load: Load, monkeypatch: pytest.MonkeyPatch) -> Probe:
    made = Probe()
    monkeypatch.setattr(load("module_utils.job"), "probe_job", made)
    return made


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "var" / "lib" / "nodeprep" / "runs"
    folder.mkdir(parents=True)
    return folder


def given(runs: Path, run_id: str = "new", **options: Any) -> dict[str, Any]:
    defaults = {
        "root": str(runs.parents[3]),
        "job_dir": str(runs / run_id),
        "python": "",
        "program": None,
        "level": "quick",
        "workload": "vit-g",
        "inject": "",
        "gpus": [],
        "duration_s": 0.0,
        "nvml_deadline_s": 30.0,
        "wait_s": 0.0,
        "deadline_s": 0.0,
        "grace_s": 1.0,
        "keep": 5,
        "max_bytes": 1000,
    }
    return {**defaults, **options}


def test_starting_keeps_the_last_five_jobs(load: Load, probe: Probe, runs: Path) -> None:
    for number in range(7):
        (runs / f"old{number}").mkdir()
        os.utime(runs / f"old{number}", (1000 + number, 1000 + number))
    changed, account = load("module_utils.job").started(given(runs), False)
    assert (changed, account["state"]) == (True, "running")
    assert sorted(path.name for path in runs.iterdir()) == ["new", "old3", "old4", "old5", "old6"]


def test_a_second_probe_on_a_node_is_refused_and_nothing_is_removed(
    load: Load, probe: Probe, runs: Path
) -> None:
    job = load("module_utils.job")
    for number in range(7):
        (runs / f"old{number}").mkdir()
    probe.running.add(str(runs / "old3"))
    with pytest.raises(job.JobError, match="probe of run old3 is still running") as caught:
        job.started(given(runs), False)
    assert "nodeprep_run_id=old3" in caught.value.hint
    assert len(list(runs.iterdir())) == 7
    assert probe.started == []


def test_what_the_probe_is_started_with(load: Load, probe: Probe, runs: Path) -> None:
    asked = given(
        runs, workload={"name": "mine", "width": 64}, gpus=["0000:17:00.0"], inject="flip:block=7,bit=0"
    )
    load("module_utils.job").started(asked, False)
    [(root, job_dir, python, program, arguments)] = probe.started
    assert (root, job_dir, python) == (asked["root"], asked["job_dir"], sys.executable)
    assert program == str(runs / "new" / "probe.pyz")
    workload = arguments[arguments.index("--workload") + 1]
    assert json.loads(Path(workload).read_text()) == {"name": "mine", "width": 64}
    assert arguments[-4:] == ["--gpu", "0000:17:00.0", "--inject", "flip:block=7,bit=0"]


def test_the_prepared_environment_is_found(load: Load, probe: Probe, runs: Path) -> None:
    prepared = runs.parent / "probe-runtime" / "bin" / "python"
    prepared.parent.mkdir(parents=True)
    prepared.write_text("")
    load("module_utils.job").started(given(runs), False)
    load("module_utils.job").started(given(runs, python="/opt/python"), False)
    assert [each[2] for each in probe.started] == [str(prepared), "/opt/python"]


def test_each_poll_brings_what_the_last_one_did_not(load: Load, probe: Probe, runs: Path) -> None:
    job = load("module_utils.job")
    job.started(given(runs), False)
    probe.running.add(str(runs / "new"))
    probe.lines = [{"message": "one"}, {"message": "two"}]
    assert job.polled(given(runs), False)[1]["progress"] == probe.lines
    probe.lines = [*probe.lines, {"message": "three"}]
    assert job.polled(given(runs), False)[1]["progress"] == [{"message": "three"}]
    assert job.polled(given(runs), False)[1]["progress"] == []
    job.started(given(runs), False)
    assert len(job.polled(given(runs), False)[1]["progress"]) == 3


def test_a_probe_that_comes_to_no_end_is_stopped(load: Load, probe: Probe, runs: Path) -> None:
    job = load("module_utils.job")
    job.started(given(runs), False)
    probe.running.add(str(runs / "new"))
    assert job.polled(given(runs, deadline_s=300.0), False)[1]["finished"] is False
    probe.began -= 301
    account = job.polled(given(runs, deadline_s=300.0), False)[1]
    assert (account["finished"], probe.stopped) == (True, [str(runs / "new")])
    assert account["error"] == "the probe came to no end within 300 s and was stopped"


def test_polling_nothing_is_a_failure(load: Load, probe: Probe, runs: Path) -> None:
    job = load("module_utils.job")
    with pytest.raises(job.JobError, match="no probe was started"):
        job.polled(given(runs), False)


def test_stopping_says_what_it_did(load: Load, probe: Probe, runs: Path) -> None:
    job = load("module_utils.job")
    probe.running.add(str(runs / "new"))
    changed, account = job.stopped(given(runs), False)
    assert (changed, account["message"]) == (True, "the probe stopped")
    changed, account = job.stopped(given(runs), False)
    assert (changed, account["message"]) == (False, "the probe was not running")


def test_check_mode_touches_nothing(load: Load, probe: Probe, runs: Path) -> None:
    job = load("module_utils.job")
    assert job.started(given(runs), True)[0] is True
    (runs / "new").mkdir()
    (runs / "new" / "result.json").write_text("{}")
    probe.running.add(str(runs / "new"))
    assert job.stopped(given(runs), True)[0] is True
    assert job.collected(given(runs), True)[0] is True
    job.polled(given(runs), True)
    assert (probe.started, probe.stopped) == ([], [])
    assert [path.name for path in (runs / "new").iterdir()] == ["result.json"]


def test_results_are_collected_also_when_the_probe_is_gone(load: Load, probe: Probe, runs: Path) -> None:
    job = load("module_utils.job")
    (runs / "new").mkdir()
    assert job.collected(given(runs), False)[1]["archive"] == ""
    (runs / "new" / "progress.jsonl").write_text('{"message": "iteration 7"}\n')
    changed, account = job.collected(given(runs), False)
    files, _ = read(Path(account["archive"]))
    assert changed
    assert files == {"progress.jsonl": b'{"message": "iteration 7"}\n'}
    with pytest.raises(job.JobError, match="no results in"):
        job.collected(given(runs, "absent"), False)
