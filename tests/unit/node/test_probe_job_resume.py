"""A soak that died is started again with the command of its first start; nothing else is."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import zipapp
from pathlib import Path
from typing import Any

import pytest

from nodeprep.node import probe_job

# Leaves a line of progress in each life, and ends by itself in its third.
PROGRAM = """
import json, os, sys, time
out = sys.argv[sys.argv.index("--out") + 1]
path = os.path.join(out, "progress.jsonl")
lives = len(open(path).readlines()) + 1 if os.path.exists(path) else 1
with open(path, "a") as file:
    file.write(json.dumps({"message": "life %d" % lives}) + "\\n")
if lives == 3:
    with open(os.path.join(out, "result.json"), "w") as file:
        json.dump({"state": "completed", "error": "", "hint": ""}, file)
    sys.exit(0)
time.sleep(60)
"""
BOOT = "boot-%d\n"


class Job:
    """A job on a root of its own."""

    def __init__(self, folder: Path) -> None:
        self.root, self.folder, self._pyz = folder / "root", str(folder / "job"), str(folder / "probe.pyz")
        (folder / "source").mkdir()
        (folder / "source" / "__main__.py").write_text(PROGRAM)
        zipapp.create_archive(folder / "source", self._pyz)
        (self.root / probe_job.BOOT_ID).parent.mkdir(parents=True)
        self.boot(1)

    def boot(self, number: int) -> None:
        (self.root / probe_job.BOOT_ID).write_text(BOOT % number)

    def start(self, level: str = "soak") -> int:
        begun = probe_job.start(str(self.root), self.folder, sys.executable, self._pyz, ["--level", level])
        assert not begun["failed"], begun
        self.wait_for_lines(1)
        return int(begun["job"]["pid"])

    def wait_for_lines(self, count: int) -> None:
        end = time.monotonic() + 20
        while self.poll()["lines"] < count:
            assert time.monotonic() < end
            time.sleep(0.02)

    def poll(self, wait_s: float = 0.0) -> dict[str, Any]:
        return probe_job.poll(self.folder, wait_s)

    def kill(self) -> None:
        os.kill(self.poll()["job"]["pid"], signal.SIGKILL)
        assert self.poll(10.0)["state"] == "died"


@pytest.fixture
def job(tmp_path: Path):
    made = Job(tmp_path)
    yield made
    probe_job.stop(made.folder, 0.5)


def test_a_killed_soak_goes_on_until_it_completes(job: Job) -> None:
    job.start()
    for lives in (2, 3):
        job.kill()
        assert probe_job.resume(job.folder) == {"changed": True, "error": ""}
        job.wait_for_lines(lives)
        assert job.poll()["job"]["resumed"] == lives - 1
    assert job.poll(10.0)["state"] == "completed"
    assert not probe_job.resume(job.folder)["changed"]


def test_a_soak_goes_on_after_a_reboot(job: Job) -> None:
    job.start()
    job.kill()
    job.boot(2)
    assert "rebooted" in job.poll()["error"]
    assert probe_job.resume(job.folder)["changed"]
    job.wait_for_lines(2)
    assert job.poll()["state"] == "running"


def test_a_running_soak_is_left_alone(job: Job) -> None:
    job.start()
    assert not probe_job.resume(job.folder)["changed"]


def test_other_levels_are_not_started_again(job: Job) -> None:
    job.start("extended")
    job.kill()
    assert probe_job.resume(job.folder) == {"changed": False, "error": ""}


def test_a_soak_that_was_stopped_by_force_stays_stopped(job: Job) -> None:
    pid = job.start()
    os.kill(pid, signal.SIGSTOP)
    assert probe_job.stop(job.folder, 0.1)["killed"]
    assert not probe_job.resume(job.folder)["changed"]


def test_one_that_dies_over_and_over_is_given_up(job: Job) -> None:
    job.start()
    job.kill()
    path = Path(job.folder, probe_job.JOB)
    path.write_text(json.dumps({**json.loads(path.read_text()), "resumed": probe_job.MOST_RESUMES}))
    found = probe_job.resume(job.folder)
    assert not found["changed"]
    assert "not started again" in found["error"]


def test_without_a_job_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    assert probe_job.resume(str(tmp_path)) == {"changed": False, "error": ""}
