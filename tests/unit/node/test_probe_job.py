"""The detached probe: started, polled, stopped, killed, and lost in a reboot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipapp
from pathlib import Path

import pytest

from nodeprep.node import probe_job

# A stand-in for the probe: the job only needs files and an exit status. It does what its last argument says.
PROGRAM = """
import json, os, signal, sys, time
out = sys.argv[sys.argv.index("--out") + 1]
mode = sys.argv[-1]
def say(text):
    with open(os.path.join(out, "progress.jsonl"), "a") as file:
        file.write(json.dumps({"message": text}) + "\\n")
def finish(state, code):
    with open(os.path.join(out, "result.json"), "w") as file:
        error = "" if state == "completed" else state + " it is"
        json.dump({"state": state, "error": error, "hint": "h"}, file)
    sys.exit(code)
def on_term(number, frame):
    finish("interrupted", 3)
signal.signal(signal.SIGTERM, signal.SIG_IGN if mode == "deaf" else on_term)
say("started")
if mode == "short":
    say("worked")
    finish("completed", 0)
if mode == "failing":
    finish("failed", 4)
if mode == "usage":
    print("error: no such level", file=sys.stderr)
    print("hint: try quick", file=sys.stderr)
    sys.exit(2)
if mode == "half":
    with open(os.path.join(out, "progress.jsonl"), "a") as file:
        file.write('{"message": "hal')
if mode == "damaged":
    with open(os.path.join(out, "result.json"), "w") as file:
        file.write("{")
    sys.exit(0)
time.sleep(60)
"""


class Job:
    """A job on a root of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.folder = str(folder / "job")
        self.pyz = str(folder / "probe.pyz")
        source = folder / "source"
        source.mkdir()
        (source / "__main__.py").write_text(PROGRAM)
        zipapp.create_archive(source, self.pyz)
        boot = self.root / probe_job.BOOT_ID
        boot.parent.mkdir(parents=True)
        boot.write_text("boot-1\n")

    def start(self, mode: str, **other):
        given = {"root": str(self.root), "python": sys.executable, "pyz": self.pyz, **other}
        return probe_job.start(given["root"], self.folder, given["python"], given["pyz"], [mode])

    def poll(self, wait_s: float = 0.0, after_line: int = 0):
        return probe_job.poll(self.folder, wait_s, after_line)

    def until_it_speaks(self):
        end = time.monotonic() + 10
        while not self.poll()["lines"]:
            assert time.monotonic() < end
            time.sleep(0.02)

    def write(self, name: str, text: str) -> None:
        (Path(self.folder) / name).write_text(text)


@pytest.fixture
def job(tmp_path):
    made = Job(tmp_path)
    yield made
    probe_job.stop(made.folder, 0.0)


def test_a_run_from_start_to_end(job):
    started = job.start("short")
    assert started["changed"]
    assert not started["failed"]
    assert started["job"]["boot_id"] == "boot-1"
    assert started["job"]["command"][2:6] == ["run", "--root", str(job.root), "--out"]
    polled = job.poll(60)
    assert polled["finished"]
    assert polled["state"] == "completed"
    assert [line["message"] for line in polled["progress"]] == ["started", "worked"]
    assert polled["lines"] == 2
    assert polled["exit"]["returncode"] == 0


def test_it_returns_at_once_and_is_in_a_session_of_its_own(job):
    began = time.monotonic()
    started = job.start("long")
    assert time.monotonic() - began < 20
    pid = started["job"]["pid"]
    assert os.getsid(pid) == pid
    assert os.getpgid(pid) == started["job"]["pgid"] == pid
    assert os.getsid(started["job"]["supervisor"]) not in (pid, os.getsid(0))


def test_it_holds_no_pipe_of_the_caller(job):
    """Ansible and ssh wait for the end of their pipes."""
    code = (
        "import sys; from nodeprep.node import probe_job;"
        "print(probe_job.start(*sys.argv[1:5], ['long'])['changed'])"
    )
    line = [sys.executable, "-c", code, str(job.root), job.folder, sys.executable, job.pyz]
    done = subprocess.run(line, capture_output=True, text=True, timeout=20, check=False)
    assert done.stdout == "True\n", done.stderr
    assert job.poll()["state"] == "running"


def test_polling_waits_only_as_long_as_asked(job):
    job.start("long")
    job.until_it_speaks()
    began = time.monotonic()
    polled = job.poll(0.3)
    assert 0.3 <= time.monotonic() - began < 20
    assert (polled["state"], polled["finished"]) == ("running", False)


def test_only_new_and_whole_lines(job):
    job.start("half")
    job.until_it_speaks()
    assert job.poll(0, 1)["progress"] == []
    assert job.poll(0, 0)["lines"] == 1


def test_starting_twice_changes_nothing(job):
    first = job.start("long")
    second = job.start("long")
    assert not second["changed"]
    assert second["job"]["pid"] == first["job"]["pid"]


def test_a_finished_job_is_replaced(job):
    job.start("failing")
    assert job.poll(60)["state"] == "failed"
    assert job.start("short")["changed"]
    polled = job.poll(60)
    assert polled["state"] == "completed"
    assert polled["lines"] == 2


def test_a_failed_probe_says_why(job):
    job.start("failing")
    polled = job.poll(60)
    assert (polled["state"], polled["error"], polled["hint"]) == ("failed", "failed it is", "h")
    assert polled["exit"]["returncode"] == 4


def test_a_probe_that_refused_its_arguments(job):
    job.start("usage")
    polled = job.poll(60)
    assert polled["state"] == "failed"
    assert polled["error"] == "the probe ended with exit code 2: no such level"
    assert polled["hint"] == "try quick"


def test_a_killed_probe_died(job):
    pid = job.start("long")["job"]["pid"]
    job.until_it_speaks()
    os.kill(pid, signal.SIGKILL)
    polled = job.poll(60)
    assert polled["state"] == "died"
    assert polled["error"] == "the probe was killed by SIGKILL"
    assert polled["exit"]["signal"] == signal.SIGKILL
    assert "memory" in polled["hint"]


def test_everything_killed(job):
    started = job.start("long")["job"]
    job.until_it_speaks()
    os.kill(started["supervisor"], signal.SIGKILL)
    os.kill(started["pid"], signal.SIGKILL)
    polled = job.poll(60)
    assert polled["state"] == "died"
    assert polled["error"] == "the probe and its supervisor were killed"
    assert polled["exit"] is None


def test_a_killed_supervisor_costs_nothing(job):
    started = job.start("long")["job"]
    job.until_it_speaks()
    os.kill(started["supervisor"], signal.SIGKILL)
    assert job.poll()["state"] == "running"
    assert probe_job.stop(job.folder)["state"] == "interrupted"


def test_a_reboot_is_told_from_a_kill(job):
    pid = job.start("long")["job"]["pid"]
    job.until_it_speaks()
    os.kill(pid, signal.SIGKILL)
    job.poll(60)
    (Path(job.folder) / probe_job.EXIT).unlink()
    (job.root / probe_job.BOOT_ID).write_text("boot-2\n")
    polled = job.poll(60)
    assert polled["state"] == "died"
    assert polled["error"] == "the node rebooted while the probe ran"


def test_a_result_survives_a_reboot(job):
    job.start("short")
    job.poll(60)
    (job.root / probe_job.BOOT_ID).write_text("boot-2\n")
    assert job.poll()["state"] == "completed"


def test_another_process_with_the_same_number_is_not_the_probe(job):
    job.start("short")
    job.poll(60)
    record = json.loads((Path(job.folder) / probe_job.JOB).read_text())
    job.write(probe_job.JOB, json.dumps({**record, "pid": os.getpid(), "pgid": os.getpgid(0)}))
    assert job.poll()["state"] == "completed"
    assert not probe_job.stop(job.folder)["changed"]


def test_never_started(tmp_path):
    polled = probe_job.poll(str(tmp_path / "none"))
    assert (polled["state"], polled["finished"], polled["lines"]) == ("absent", True, 0)
    assert not probe_job.stop(str(tmp_path / "none"))["changed"]


def test_damaged_files(job):
    job.start("damaged")
    polled = job.poll(60)
    assert polled["state"] == "failed"
    assert "result.json is damaged" in polled["error"]
    job.write(probe_job.JOB, "{")
    assert job.poll()["state"] == "died"


def test_stop_lets_it_finish(job):
    job.start("long")
    job.until_it_speaks()
    began = time.monotonic()
    stopped = probe_job.stop(job.folder, 30.0)
    assert time.monotonic() - began < 20
    assert stopped["changed"]
    assert not stopped["killed"]
    assert stopped["state"] == "interrupted"
    assert stopped["exit"]["returncode"] == 3
    assert not probe_job.stop(job.folder)["changed"]


def test_stop_kills_what_does_not_listen(job):
    job.start("deaf")
    job.until_it_speaks()
    stopped = probe_job.stop(job.folder, 0.2)
    assert stopped["killed"]
    assert stopped["state"] == "died"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"python": ""}, "no Python for the probe is named"),
        ({"python": "/nowhere/python3"}, "/nowhere/python3 cannot be run: No such file or directory"),
        ({"python": "/bin/true"}, "/bin/true does not work"),
        ({"pyz": "/nowhere/probe.pyz"}, "/nowhere/probe.pyz is missing on the node"),
        ({"pyz": __file__}, "is damaged"),
    ],
)
def test_what_cannot_be_started(job, change, complaint):
    started = job.start("short", **change)
    assert started["failed"]
    assert not started["changed"]
    assert complaint in started["error"]
    assert started["hint"]
    assert job.poll()["state"] == "absent"


def test_an_old_python(job, tmp_path):
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 3.6\n")
    old.chmod(0o755)
    assert "3.8 is the oldest" in job.start("short", python=str(old))["error"]


def test_a_folder_that_cannot_be_made(job, tmp_path):
    (tmp_path / "job").write_text("a file")
    started = job.start("short")
    assert started["failed"]
    assert "cannot write" in started["error"]
    assert started["hint"]


def test_a_full_disk(job, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(probe_job.os, "makedirs", full)
    assert job.start("short")["error"].startswith("the disk is full: cannot write ")


def test_a_full_disk_explains_a_missing_result(job, monkeypatch):
    job.start("usage")
    job.poll(60)
    monkeypatch.setattr(probe_job, "_disk_is_full", lambda _: True)
    polled = job.poll()
    assert polled["state"] == "failed"
    assert "the disk is full" in polled["error"]
