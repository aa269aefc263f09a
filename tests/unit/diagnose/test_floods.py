"""Floods of one message: what is said of their times, and what is not."""

from __future__ import annotations

from reading import told

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.folding import MAX_ALIKE, MAX_FOLDED, folded
from nodeprep.diagnose.line import Line

START = "[    0.000000] Linux version 6.8.0-79-generic (buildd@host)\n"
LOST = "NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def flood(count: int, every_s: float, begin_s: float = 1000.0) -> list[tuple[float, str]]:
    return [
        (begin_s + number * every_s + after_ms / 1e3, text)
        for number in range(count)
        for after_ms, text in (
            (0, "pcieport 0000:17:00.0: AER: Correctable error message received from 0000:18:00.0"),
            (
                1,
                "nvidia 0000:18:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer",
            ),
            (2, "nvidia 0000:18:00.0:   device [10de:2330] error status/mask=00000001/0000a000"),
            (3, "nvidia 0000:18:00.0:    [ 0] RxErr                  (First)"),
        )
    ]


def dmesg(*said: tuple[float, str]) -> str:
    return START + "".join(f"[{seconds:12.6f}] {text}\n" for seconds, text in sorted(said))


def test_the_last_of_many_errors_is_the_one_before_the_loss() -> None:
    found = told(dmesg=dmesg(*flood(400, 10), (1000 + 399 * 10 + 0.5, LOST)))
    (incident,) = found.incidents
    assert incident.root.event == "aer.corrected.receiver_error"
    assert "on record" not in incident.why
    assert "came 400 times, the first 67 min before" in incident.why


def test_a_loss_in_the_middle_of_many_errors() -> None:
    found = told(dmesg=dmesg(*flood(400, 10), (3000.5, LOST)))
    lost = found.incidents[0]
    assert lost.root.event == "aer.corrected.receiver_error"
    assert "on record" not in lost.why


def test_without_a_kernel_log_nothing_is_said_of_the_time_before_a_loss() -> None:
    lost = "2026-05-01 10:00:00,123 ERROR app: NVML: GPU is lost for 0000:18:00.0\n"
    alone = told(app_log=lost).incidents[0]
    assert "on record" not in alone.why
    assert "no kernel log of its host" in alone.why
    beside = told(app_log=lost, dmesg=dmesg((5.0, "Command line: BOOT_IMAGE=/vmlinuz ro"))).incidents[0]
    assert "on record" in beside.why
    assert "on record" in told(dmesg=dmesg((5000.0, LOST))).incidents[0].why


def test_of_too_many_errors_it_is_not_known_how_near_one_came() -> None:
    found = told(dmesg=dmesg(*flood(5000, 40), (100_000.5, LOST)))
    lost = found.incidents[0]
    assert lost.root.event == "xid.79"
    assert "on record" not in lost.why
    assert "whether one came in the 120 s before it is not known" in lost.why


def test_one_error_every_half_hour_is_no_burst() -> None:
    (incident,) = told(dmesg=dmesg(*flood(300, 1800))).incidents
    assert incident.severity == "warning"
    assert incident.count == 300
    assert "300 times within 149.5 h" in incident.why
    assert "within 5 min" not in incident.why


def test_a_burst_after_many_slow_errors_is_one() -> None:
    slow = flood(200, 1800)
    (incident,) = told(dmesg=dmesg(*slow, *flood(600, 1, begin_s=500_000))).incidents
    assert incident.severity == "error"
    assert "At least" in incident.why


def test_two_sources_of_one_flood_count_it_once() -> None:
    said = flood(400, 10)
    journal = "".join(f"[{seconds:12.6f}] n1 kernel: {text}\n" for seconds, text in said)
    (incident,) = told(dmesg=dmesg(*said), journal=journal).incidents
    assert incident.count == 400


def alike(number: int, time_s: float | None = None) -> Event:
    line = Line(source="log", number=number, text="", raw="", uptime_s=time_s)
    return Event(kind="aer.corrected.receiver_error", lines=(line,))


def test_a_flood_of_any_length_is_a_few_events() -> None:
    for length in (61, 120, 121, 122, 1000, 123_457):
        kept = list(folded(alike(number) for number in range(length)))
        assert len(kept) <= MAX_ALIKE + MAX_FOLDED
        assert sum(each.count for each in kept) == length
        assert (kept[-1].last or kept[-1].lines[0]).number == length - 1
        again = list(folded(kept))
        assert [(each.count, each.lines) for each in again] == [(each.count, each.lines) for each in kept]


def test_the_times_of_a_folded_event() -> None:
    kept = list(folded(alike(number, float(number)) for number in range(1000)))
    clock = Evidence(kept).clock
    first, second = kept[-2:]
    assert first.count == 16
    assert clock.span([first]) == 15.0
    assert clock.gap(first, second) == 1.0
    assert clock.seconds(first, second) == 16.0
    assert clock.nearest(first, second) == 1.0
    assert clock.within(first, second, 2.0)
