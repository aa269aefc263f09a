"""Memory, steps of load, cool-down and soaks in the report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nodeprep.model.probe import ProbeResult
from nodeprep.model.probe_phases import MemoryFault, XidEvent
from nodeprep.model.probe_soak import Soak, SoakGap
from nodeprep.model.reading import Reading
from nodeprep.model.run import TelemetrySeries
from nodeprep.reports import _phases
from tests.cases.base.documents import context


def probe() -> ProbeResult:
    found = context().probe
    assert found is not None
    return found


def with_first(result: ProbeResult, **values: Any) -> ProbeResult:
    first, *others = result.gpus
    return replace(result, gpus=(replace(first, **values), *others))


def texts(result: ProbeResult) -> list[str]:
    return [figure.text for figure in _phases.table(result, ()).rows[0].figures]


def test_figures_of_a_healthy_gpu() -> None:
    found = texts(probe())
    assert found[0].replace("\u202f", "").replace("\u00a0", "").endswith("830")
    assert "76" in found[2]
    assert found[3] == "0"
    assert (found[4], found[5]) == ("904", "105")
    assert found[-1] == "0"
    assert len(found) == len(_phases.HEADINGS)


def test_what_could_not_be_read_says_why() -> None:
    blind = with_first(
        probe(), hbm_walk=Reading.error("out of memory"), hbm_bandwidth=Reading.error("not reached")
    )
    table = _phases.table(blind, ())
    assert len(table.rows[0].figures) == len(_phases.HEADINGS)
    assert any("out of memory" in note for note in table.notes)
    assert any("not reached" in note for note in table.notes)


def test_changed_words_are_listed_with_their_place() -> None:
    walk = probe().gpus[0].hbm_walk.require("walk")
    fault = MemoryFault(offset_bytes=4096, pattern="random", expected="aa", got="ab", again=True)
    bad = with_first(probe(), hbm_walk=Reading.ok(replace(walk, errors=1, faults=(fault,))))
    table = _phases.table(bad, ())
    assert table.rows[0].figures[3].grave
    assert [(row.offset, row.pattern, row.again) for row in table.faults] == [
        ("0x1000", "random", "wrong again")
    ]


def test_an_xid_is_a_fault_with_its_second() -> None:
    event = XidEvent(t_s=31.4, xid=79, kind="0x8")
    cell = _phases.table(with_first(probe(), xid_events=Reading.ok((event,))), ()).rows[0].figures[-1]
    assert (cell.text, cell.small, cell.grave) == ("79", "31.4 s", True)


def test_gaps_of_a_soak_are_told() -> None:
    gap = SoakGap(start_s=7200.0, end_s=7500.0, why="the node rebooted", rebooted=True)
    soak = Soak(wanted_s=86400.0, lasted_s=86400.0, legs=47, lost_legs=1, gaps=(gap,))
    told = _phases.table(replace(probe(), soak=Reading.ok(soak)), ()).soak
    assert "47 legs, 1 lost" in told[0]
    assert "the node rebooted" in told[1]
    assert _phases.table(probe(), ()).soak == ()


def test_the_gpu_with_the_least_step_is_drawn_within_the_frame() -> None:
    result = probe()
    first = result.gpus[0]
    waves = first.transients.require("waves")
    weak = replace(
        waves.periods[1],
        power=Reading.ok(replace(waves.periods[1].power.require("power"), peak_of_limit=0.5)),
    )
    result = with_first(result, transients=Reading.ok(replace(waves, periods=(weak,))))
    series = [
        TelemetrySeries(
            gpu=run.pci_address,
            simulated=False,
            period_ms=100.0,
            columns={},
            transient_t_s=tuple(40.0 + 0.02 * n for n in range(2000)),
            transient_power_w=tuple(900.0 if n // 12 % 2 else 100.0 for n in range(2000)),
        )
        for run in result.gpus
    ]
    drawn = _phases.table(result, series).waves
    assert drawn is not None
    assert drawn.gpu in first.pci_address
    assert "between 100 and 900 W" in drawn.words
    points = [tuple(map(float, pair.split(","))) for pair in drawn.points.split()]
    assert len(points) <= 400
    assert all(0 <= x <= drawn.width and 0 <= y <= drawn.height for x, y in points)
    assert drawn.limit_y is not None
    assert 0 < drawn.limit_y < drawn.height
