"""Soaks: what survives, what counts as a gap, and how legs become one result."""

from __future__ import annotations

import copy
import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from probe_root import command, make_root, progress, result, run

from nodeprep.model.probe import ProbeResult
from nodeprep.probe import soak_merge, soak_state
from nodeprep.probe.soak_state import Leg, SoakState


def leg(number: int, started: float, ended: float | None, boot_id: str = "a") -> Leg:
    return Leg(number, started, boot_id, ended, "completed" if ended else "")


def test_a_change_of_legs_is_no_gap() -> None:
    state = SoakState("x", 0.0, (leg(1, 1.0, 100.0), leg(2, 110.0, 200.0)))
    assert state.gaps(205.0, 120.0) == []


def test_a_lost_leg_is_a_gap_from_its_start() -> None:
    state = SoakState("x", 0.0, (leg(1, 0.0, 100.0), leg(2, 100.0, None), leg(3, 150.0, 250.0)))
    (gap,) = state.gaps(250.0, 120.0)
    assert (gap.start_s, gap.end_s, gap.rebooted) == (100.0, 150.0, False)
    assert "killed" in gap.why


def test_another_boot_id_is_a_reboot_however_short() -> None:
    state = SoakState("x", 0.0, (leg(1, 0.0, 100.0), leg(2, 100.0, None), leg(3, 101.0, 200.0, "b")))
    (gap,) = state.gaps(200.0, 120.0)
    assert (gap.rebooted, gap.why) == (True, "the node rebooted")


def test_a_last_leg_that_was_lost_is_a_gap_to_the_end() -> None:
    state = SoakState("x", 0.0, (leg(1, 0.0, 100.0), leg(2, 100.0, None)))
    assert [(gap.start_s, gap.end_s) for gap in state.gaps(130.0, 120.0)] == [(100.0, 130.0)]


def test_standing_still_is_a_gap_too() -> None:
    state = SoakState("x", 0.0, (leg(1, 0.0, 100.0), leg(2, 400.0, 500.0)))
    assert [(gap.start_s, gap.end_s) for gap in state.gaps(500.0, 120.0)] == [(100.0, 400.0)]


def test_the_state_survives(tmp_path: Path) -> None:
    state = SoakState("x", 5.0, (leg(1, 5.0, 9.0), leg(2, 9.0, None)))
    soak_state.save(str(tmp_path), state)
    assert soak_state.load(str(tmp_path), "x") == state


@pytest.mark.parametrize("text", ["", "{", '{"legs": 3}', '{"identity": "other", "started": 1, "legs": []}'])
def test_what_is_no_state_of_this_soak_starts_a_new_one(tmp_path: Path, text: str) -> None:
    (tmp_path / soak_state.STATE).write_text(text)
    assert soak_state.load(str(tmp_path), "x").legs == ()


@pytest.fixture(scope="module")
def one_leg(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("leg")
    assert run(make_root(folder / "root"), folder / "out", "--duration-s", "1").returncode == 0
    document: dict[str, Any] = json.loads((folder / "out" / "result.json").read_text())
    return document


ACCOUNT = {"wanted_s": 20.0, "lasted_s": 21.0, "legs": 2, "lost_legs": 0, "gaps": []}


def merge(*legs: dict[str, Any]) -> ProbeResult:
    starts = [10.0 * number for number in range(len(legs))]
    return msgspec.convert(soak_merge.merged(legs, starts, ACCOUNT), type=ProbeResult)


def test_counts_add_up_and_times_are_the_soaks(one_leg: dict[str, Any]) -> None:
    alone, both = merge(one_leg).gpus[0], merge(one_leg, one_leg).gpus[0]
    assert both.iterations == 2 * alone.iterations
    assert both.telemetry.samples == 2 * alone.telemetry.samples
    assert both.copies.bytes_h2d == 2 * alone.copies.bytes_h2d
    assert both.hbm_walk.require("walk").walks == 2
    assert both.iteration_s.require("s").count == 2 * alone.iterations
    assert both.telemetry.power_w.require("power").max == alone.telemetry.power_w.require("power").max
    # The second leg's reference is compared with the first leg's as well.
    compared = alone.digests.require("digests").iterations_compared
    assert both.digests.require("digests").iterations_compared == 2 * compared + 1
    assert both.phases[len(alone.phases)].start_s == 10.0
    assert merge(one_leg, one_leg).soak.require("account").legs == 2


def test_a_leg_with_other_bits_from_the_start_is_a_mismatch(one_leg: dict[str, Any]) -> None:
    other = copy.deepcopy(one_leg)
    other["gpus"][0]["digests"]["value"]["reference"][4] = "0" * 16
    digests = merge(one_leg, other).gpus[0].digests.require("digests")
    assert digests.mismatch_count == 1
    assert digests.mismatches[0].block == 4


def test_what_was_unreadable_in_one_leg_stays_so(one_leg: dict[str, Any]) -> None:
    blind = copy.deepcopy(one_leg)
    blind["gpus"][0]["telemetry"]["power_w"] = {"state": "error", "detail": "GPU is lost"}
    blind["gpus"][0]["telemetry"]["trouble"] = "killed"
    for order in ((one_leg, blind), (blind, one_leg), (one_leg, blind, one_leg)):
        telemetry = merge(*order).gpus[0].telemetry
        assert telemetry.power_w.state == "error"
        assert telemetry.trouble == "killed"


def test_the_worst_leg_is_the_state(one_leg: dict[str, Any]) -> None:
    failed = copy.deepcopy(one_leg)
    failed["state"], failed["error"] = "failed", "1 of 2 GPUs failed"
    failed["gpus"][1]["state"], failed["gpus"][1]["error"] = "failed", "Xid 79"
    found = merge(failed, one_leg)
    assert (found.state, found.error) == ("failed", "1 of 2 GPUs failed")
    assert (found.gpus[1].state, found.gpus[1].error) == ("failed", "Xid 79")
    assert found.gpus[0].state == "completed"


def test_a_killed_soak_goes_on_and_names_the_gap(tmp_path: Path) -> None:
    root, out = make_root(tmp_path / "root"), tmp_path / "out"
    more = ("--level", "soak", "--duration-s", "25")
    first = subprocess.Popen(command(root, out, *more), stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not any(line["phase"] == "end" for line in progress(out)):
        assert time.monotonic() < end
        time.sleep(0.1)
    time.sleep(1.5)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not (out / "result.json").exists()
    done = run(root, out, *more)
    assert done.returncode == 0, done.stderr
    found = result(out)
    soak = found.soak.require("account")
    assert (found.level, found.state) == ("soak", "completed")
    assert soak.legs >= 1
    assert soak.lost_legs == 1
    assert len(soak.gaps) == 1
    assert not soak.gaps[0].rebooted
    assert any("going on after 1 legs" in line["message"] for line in progress(out))


def test_a_stopped_soak_says_so(tmp_path: Path) -> None:
    root, out = make_root(tmp_path / "root"), tmp_path / "out"
    process = subprocess.Popen(
        command(root, out, "--level", "soak", "--duration-s", "300"), stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + 60
    while not any("TFLOP/s" in line["message"] for line in progress(out)):
        assert time.monotonic() < end
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 3
    assert result(out).state == "interrupted"
