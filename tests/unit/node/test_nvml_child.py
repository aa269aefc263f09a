"""The child process that calls NVML: reports, markers, deadlines and every way to end badly."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodeprep.node import nvml_child
from nodeprep.node.nvml_child import Pipe
from nodeprep.node.vendor import pynvml


def test_messages_come_in_order() -> None:
    outcome = nvml_child.run(lambda pipe: [pipe.report(n=n) for n in range(3)] and None, 5)
    assert outcome.messages == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert (outcome.failure, outcome.hung) == ("", False)


def test_long_messages_come_whole() -> None:
    outcome = nvml_child.run(lambda pipe: pipe.report(text="x" * 300_000), 5)
    assert len(outcome.messages[0]["text"]) == 300_000


def test_a_deadline_keeps_what_was_said_before() -> None:
    def work(pipe: Pipe) -> None:
        pipe.report(n=1)
        pipe.mark("nvmlDeviceGetName", "0000:17:00.0")
        time.sleep(60)

    outcome = nvml_child.run(work, 0.3)
    assert outcome.messages == [{"n": 1}]
    assert outcome.hung
    assert outcome.failure.startswith("NVML hung in nvmlDeviceGetName on 0000:17:00.0 for")
    assert outcome.failure.endswith("killed")


def test_an_exception_is_a_failure_in_its_call() -> None:
    def work(pipe: Pipe) -> None:
        pipe.mark("nvmlInit")
        raise RuntimeError("odd")

    assert nvml_child.run(work, 5).failure == "RuntimeError: odd in nvmlInit"


def test_a_silent_end_is_a_failure() -> None:
    assert "ended early" in nvml_child.run(lambda _pipe: os._exit(0), 5).failure


def test_a_child_that_does_not_end_after_its_pipe_closed() -> None:
    def work(_pipe: Pipe) -> None:
        os.closerange(3, 64)
        time.sleep(60)

    outcome = nvml_child.run(work, 5)
    assert outcome.hung
    assert "hung while it closed the GPUs" in outcome.failure


def test_the_child_holds_none_of_the_callers_files(tmp_path: Path) -> None:
    # Ansible and ssh wait for the end of these pipes, also when a child has to be left behind.
    reader, writer = os.pipe()
    listed = tmp_path / "open"

    def work(_pipe: Pipe) -> None:
        listed.write_text("\n".join(str(Path(f"/proc/self/fd/{fd}").readlink()) for fd in (0, 1, 2)))
        try:
            os.fstat(writer)
        except OSError:
            return
        raise AssertionError("the caller's pipe is still open")

    outcome = nvml_child.run(work, 5)
    os.close(reader)
    os.close(writer)
    assert outcome.failure == ""
    assert listed.read_text().splitlines() == ["/dev/null"] * 3


def test_no_child_while_the_real_library_is_in_use_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(None))
    monkeypatch.setattr(pynvml, "_nvmlLib_refcount", 1)
    outcome = nvml_child.run(lambda pipe: pipe.report(n=1), 5)
    assert outcome.messages == []
    assert "does not survive a fork" in outcome.failure


def test_buffered_output_of_the_caller_is_not_printed_twice(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom nodeprep.node import nvml_child\n"
        "sys.stdout.write('once\\n')\nnvml_child.run(lambda pipe: None, 5)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "once\n"
