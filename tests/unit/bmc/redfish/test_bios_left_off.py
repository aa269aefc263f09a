"""A run that was killed while it restarted the host: whatever comes next switches the host on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import bios_trees
import pytest
from bios_bench import Bench, Killed

from nodeprep.sim.bmc import Dump

MAKERS = pytest.mark.parametrize("dump", [bios_trees.dell, bios_trees.hpe, bios_trees.ami])
MakeDump = Callable[..., Dump]


def killed_off(dump: Dump, home: Path, *settings: str, faults: tuple[str, ...] = ()) -> Bench:
    """A bench whose run ended right after the operating system was asked to shut down."""
    bench = Bench(dump, home, faults=faults, post_s=20.0)

    def asked_to_go(method: str, path: str) -> None:
        if method == "POST" and path == bios_trees.RESET:
            bench.kill_at, bench.answered = len(bench.requests), True

    bench.script = asked_to_go
    with pytest.raises(Killed):
        bench.apply(*(settings or ("iommu=disabled",)))
    bench.kill_at, bench.script = 0, None
    bench.clock.wait(5.0)
    return bench


def seconds(bench: Bench, act: Callable[[], object]) -> float:
    begun = bench.clock.time
    act()
    return bench.clock.time - begun


@MAKERS
def test_the_next_apply_switches_on_at_once_and_says_so(dump: MakeDump, tmp_path: Path) -> None:
    bench = killed_off(dump(), tmp_path)
    bench.clock.wait(200.0)
    assert bench.bmc.state.host.power == "Off"
    begun = bench.clock.time
    switched_on: list[float] = []
    bench.script = lambda method, path: (
        switched_on.append(bench.clock.time) if (method, path) == ("POST", bios_trees.RESET) else None
    )
    done = bench.apply("iommu=disabled")
    assert (done.state, bench.current["IommuSupport"]) == ("applied", "Disabled")
    assert bench.bmc.state.host.power == "On"
    assert any("the host is off" in line for line in bench.said)
    assert switched_on[0] - begun < 60.0


@MAKERS
def test_the_next_rollback_leaves_the_host_on_and_the_values_as_they_were(
    dump: MakeDump, tmp_path: Path
) -> None:
    bench = killed_off(dump(), tmp_path)
    bench.clock.wait(200.0)
    done = bench.rollback()
    assert done.state in ("applied", "unchanged"), done.error
    assert (bench.current["IommuSupport"], bench.waiting) == ("Enabled", {})
    assert bench.bmc.state.host.power == "On"


def test_a_host_that_goes_off_while_it_is_waited_for_is_not_waited_for_any_longer(tmp_path: Path) -> None:
    bench = killed_off(bios_trees.dell(), tmp_path, faults=("graceful_ignored",))
    assert bench.bmc.state.host.power == "On"
    begun = bench.clock.time

    def goes_off(_method: str, _path: str) -> None:
        if bench.clock.time - begun > 20.0:
            bench.script = None
            bench.bmc.state.host.reset("ForceOff")

    bench.script = goes_off
    taken = seconds(bench, lambda: bench.apply("iommu=disabled"))
    assert (bench.bmc.state.host.power, bench.current["IommuSupport"]) == ("On", "Disabled")
    assert taken < 120.0


def test_without_reset_the_host_stays_off_and_a_rollback_with_one_switches_it_on(tmp_path: Path) -> None:
    bench = killed_off(bios_trees.ami(), tmp_path)
    bench.clock.wait(200.0)
    done = bench.rollback(reset=False)
    assert any("the host is off" in note for note in done.notes), done
    assert bench.bmc.state.host.power == "Off"
    assert bench.rollback().state in ("applied", "unchanged")
    assert bench.bmc.state.host.power == "On"


def test_values_in_effect_on_a_host_that_an_unfinished_run_left_off_switch_it_on(tmp_path: Path) -> None:
    bench = killed_off(bios_trees.ami(), tmp_path)
    bench.bmc.state.settings.current.update(bench.waiting)
    bench.bmc.state.settings.waiting.clear()
    done = bench.apply("iommu=disabled")
    assert (done.state, done.resets, bench.resets[-1]) == ("unchanged", 1, "On")
    assert bench.current["IommuSupport"] == "Disabled"
    assert any("did not see its end" in note for note in done.notes)


def test_a_host_that_somebody_else_switched_off_stays_off_where_nothing_is_to_be_written(
    tmp_path: Path,
) -> None:
    bench = Bench(bios_trees.dell(), tmp_path)
    bench.apply("iommu=disabled")
    resets = list(bench.resets)
    bench.bmc.state.host.reset("ForceOff")
    before = list(bench.resets)
    assert before != resets
    bench.plan("iommu=disabled")
    assert bench.apply("iommu=disabled").state == "unchanged"
    assert bench.resets == before


# How long an earlier reset is waited for


def young(bench: Bench, deadline_s: float) -> float:
    """Seconds of a rollback after a run whose reset is young and whose values stay staged."""
    return seconds(bench, lambda: bench.rollback(deadline_s=deadline_s, graceful_s=5.0))


def test_an_earlier_reset_is_waited_for_no_longer_than_the_deadline(tmp_path: Path) -> None:
    bench = killed_off(bios_trees.hpe(), tmp_path, faults=("graceful_ignored",))
    assert bench.bmc.state.host.power == "On"
    taken = young(bench, 15.0)
    assert taken < 120.0
    assert any("waiting for it, at most 15 s" in line for line in bench.said)
    assert bench.bmc.state.host.power == "On"


def test_where_post_cannot_be_seen_it_is_not_cut_short_by_a_small_deadline(tmp_path: Path) -> None:
    bench = killed_off(bios_trees.ami(), tmp_path, faults=("graceful_ignored",))
    before = list(bench.resets)
    done = bench.rollback(deadline_s=15.0)
    assert (done.state, bench.resets) == ("failed", before)
    assert "shows no POST" in done.error
    assert "--deadline-s" in done.hint


def test_a_reset_of_a_rollback_that_was_killed_counts_as_begun(tmp_path: Path) -> None:
    bench = Bench(bios_trees.ami(), tmp_path, post_s=20.0, faults=("early",))
    bench.apply("iommu=disabled")

    def asked_to_go(method: str, path: str) -> None:
        if method == "POST" and path == bios_trees.RESET:
            bench.kill_at, bench.answered = len(bench.requests), True

    bench.script = asked_to_go
    with pytest.raises(Killed):
        bench.rollback()
    bench.kill_at, bench.script = 0, None
    bench.clock.wait(200.0)
    assert bench.bmc.state.host.power == "Off"
    bench.rollback()
    assert bench.bmc.state.host.power == "On"
    assert bench.current["IommuSupport"] == "Enabled"
