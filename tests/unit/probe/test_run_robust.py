"""Kills, hangs and faults under load: the result says what happened, in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from probe_root import _command_line, children, make_root, result, run, start, wait_until_dead

from nodeprep.checks._runs import telemetry
from nodeprep.model.reading import Unreadable
from nodeprep.sim import hardware


def sampler(pid: int) -> int:
    return next(child for child in children(pid) if b"probe.sampler" in _command_line(child))


def test_a_killed_sampler_is_said_and_its_samples_prove_nothing(tmp_path: Path) -> None:
    process = start(make_root(tmp_path / "root"), tmp_path / "out")
    os.kill(sampler(process.pid), signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    found = result(tmp_path / "out")
    for gpu in found.gpus:
        assert "killed by SIGKILL" in gpu.telemetry.trouble
        with pytest.raises(Unreadable, match="is not whole"):
            telemetry(gpu)
        # Nobody listened to events any more, and nobody saw the square waves.
        assert gpu.xid_events.state == "error"
        assert all(period.power.state == "error" for period in gpu.transients.require("waves").periods)
        # The load itself went on.
        assert gpu.digests.require("digests").mismatch_count == 0
    assert "killed by SIGKILL" in (tmp_path / "out" / "progress.jsonl").read_text()


def test_no_process_outlives_a_killed_probe(tmp_path: Path) -> None:
    process = start(make_root(tmp_path / "root"), tmp_path / "out", "--duration-s", "60")
    left = list(children(process.pid))
    assert len(left) == 3
    process.kill()
    process.communicate()
    wait_until_dead(*left)


def test_an_xid_fails_its_gpu_with_code_and_time_and_the_other_goes_on(tmp_path: Path) -> None:
    done = run(make_root(tmp_path / "root", hardware.xid(79, after_s=1.0)), tmp_path / "out")
    assert done.returncode == 4
    healthy, fallen = result(tmp_path / "out").gpus
    assert (healthy.state, healthy.xid_events.require("events")) == ("completed", ())
    assert fallen.state == "failed"
    assert "Xid 79 at " in fallen.error
    event = fallen.xid_events.require("events")[0]
    assert (event.xid, event.kind) == (79, "0x8")
    assert event.t_s > 0


def test_an_event_without_an_xid_fails_nothing_and_is_told(tmp_path: Path) -> None:
    done = run(make_root(tmp_path / "root", hardware.xid(999, after_s=0.2)), tmp_path / "out")
    assert done.returncode == 0
    event = result(tmp_path / "out").gpus[1].xid_events.require("events")[0]
    assert event.xid is None


def test_a_cell_that_keeps_a_bit_set_is_found_with_its_place(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", hardware.bad_cell(block=3, word=17, bit=5))
    assert run(root, tmp_path / "out", "--duration-s", "0.5").returncode == 0
    healthy, broken = (gpu.hbm_walk.require("walk") for gpu in result(tmp_path / "out").gpus)
    assert (healthy.errors, healthy.faults) == (0, ())
    # Set already in some patterns, so seen in the others.
    assert 1 <= broken.errors <= 3
    for fault in broken.faults:
        assert fault.offset_bytes == 3 * (16 << 20) + 8 * 17
        assert int(fault.expected, 16) ^ int(fault.got, 16) == 1 << 5


def test_a_stopped_worker_is_given_up_within_its_deadline(tmp_path: Path) -> None:
    """A hung CUDA call looks like this: the process is there and says nothing."""
    program = (
        "import sys\nfrom nodeprep.probe import __main__ as m, run\nrun.LEAST_SILENCE_S = 3.0\n"
        "sys.exit(m.main(sys.argv[1:]))"
    )
    out = tmp_path / "out"
    arguments = ["run", "--root", str(make_root(tmp_path / "root")), "--workload", "tiny", "--out", str(out)]
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], stderr=subprocess.PIPE)
    end = time.monotonic() + 30
    while not (out / "progress.jsonl").exists() or "TFLOP/s" not in (out / "progress.jsonl").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
    stopped = next(child for child in children(process.pid) if b"probe.worker" in _command_line(child))
    os.kill(stopped, signal.SIGSTOP)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 4, said
    failed = [gpu for gpu in result(out).gpus if gpu.state == "failed"]
    assert len(failed) == 1
    assert "no sign of life for 3 s" in failed[0].error
    wait_until_dead(stopped)


def test_memory_taken_by_a_neighbour_is_named(tmp_path: Path) -> None:
    """What torch raises when somebody else took the memory between the look and the allocation."""
    from nodeprep.probe.child import explain

    class OutOfMemoryError(RuntimeError):
        pass

    told = explain(OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"))
    assert "Tried to allocate" in told["error"]
    assert "another process" in told["hint"]
