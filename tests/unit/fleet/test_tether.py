"""What becomes of ansible-playbook when the controller has no time to end it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeprep.fleet import tether

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Sleep
      ansible.builtin.command: {argv: [sleep, "%s"]}
"""
CONTROLLER = """
import sys
from pathlib import Path
from nodeprep.fleet import Fleet, engine
run_dir, inventory, playbook = map(Path, sys.argv[1:])
engine.playbook_path = lambda _name: playbook
fleet = Fleet(run_dir=run_dir, inventory=inventory)
fleet.run("play.yml", fleet.targets(None), phase="x")
"""
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has PR_SET_PDEATHSIG")


def alive(text: str) -> list[str]:
    """Command lines of the living processes that have the text in theirs."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@linux_only
def test_ansible_does_not_outlive_a_controller_that_was_killed(
    run_dir: Path, tmp_path: Path, write_inventory: Callable[[dict[str, dict[str, Any]]], Path]
) -> None:
    seconds = f"78.{os.getpid()}"
    playbook = tmp_path / "play.yml"
    playbook.write_text(PLAY % seconds)
    inventory = write_inventory({"n1": {}, "n2": {}})
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(run_dir), str(inventory), str(playbook)]
    )
    try:
        assert wait_until(lambda: len(alive(f"sleep {seconds}")) >= 2, 30)
        assert any("ansible-playbook" in line for line in alive(str(run_dir)))
    finally:
        controller.send_signal(signal.SIGKILL)
        controller.wait()
    assert wait_until(lambda: alive(str(run_dir)) == [], 30), alive(str(run_dir))
    assert wait_until(lambda: alive(f"sleep {seconds}") == [], 30)


@linux_only
def test_a_controller_that_died_before_the_launch_is_noticed() -> None:
    launcher = [sys.executable, "-I", "-S", tether.__file__]
    arguments = ["/bin/echo", "started"]
    # Process 1 is never the parent of a test.
    late = subprocess.run([*launcher, "1", *arguments], capture_output=True, text=True, check=False)
    assert (late.returncode, late.stdout, late.stderr) == (1, "", "the controller is gone\n")
    good = subprocess.run(
        [*launcher, str(os.getpid()), *arguments], capture_output=True, text=True, check=False
    )
    assert (good.returncode, good.stdout) == (0, "started\n")


# Each thread of the dead controller that Linux hands a child to reports its end anew.
MANY_THREADS = """
import os, subprocess, sys, threading, time
for _ in range(20):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
threading.Thread(target=subprocess.run, args=([*sys.argv[1:5], str(os.getpid()), *sys.argv[5:]],)).start()
time.sleep(60)
"""
COUNTER = """
import pathlib, signal, sys, time
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
pathlib.Path(sys.argv[1], "ready").touch()
deadline = time.monotonic() + 30
while not told and time.monotonic() < deadline:
    time.sleep(0.01)
time.sleep(0.5)
part = pathlib.Path(sys.argv[1], "part")
part.write_text(str(len(told)))
part.rename(pathlib.Path(sys.argv[1], "told"))
"""


@linux_only
def test_the_program_is_told_once_however_many_threads_the_controller_had(tmp_path: Path) -> None:
    launcher = [sys.executable, "-I", "-S", tether.__file__]
    program = [sys.executable, "-c", COUNTER, str(tmp_path)]
    controller = subprocess.Popen([sys.executable, "-c", MANY_THREADS, *launcher, *program])
    try:
        assert wait_until((tmp_path / "ready").exists, 30)
    finally:
        controller.kill()
        controller.wait()
    assert wait_until((tmp_path / "told").exists, 30)
    assert (tmp_path / "told").read_text() == "1"


@linux_only
@pytest.mark.parametrize(
    ("program", "status"),
    [(["/bin/sh", "-c", "exit 4"], 4), (["/bin/sh", "-c", "kill -TERM $$"], 128 + 15)],
)
def test_the_exit_status_is_the_program_s(program: list[str], status: int) -> None:
    launcher = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid())]
    assert subprocess.run([*launcher, *program], check=False).returncode == status
