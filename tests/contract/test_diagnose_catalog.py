"""Every code has an answer, and every entry of the catalogue holds together."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from nodeprep.diagnose import catalog
from nodeprep.diagnose.correlate import incidents
from nodeprep.diagnose.decoders import all_decoders
from nodeprep.diagnose.line import Line

# What each of these means, in words that must not get lost: they are often told wrong.
MEANINGS = {
    31: ("MMU fault", "application", "error", "restart_app"),
    63: ("remapping", "hardware", "info", "observe"),
    69: ("class error", "application", "error", "restart_app"),
    79: ("fallen off the bus", "firmware_pcie", "critical", "drain"),
    94: ("contained", "hardware", "error", "restart_app"),
    95: ("not contained", "hardware", "critical", "reset_gpu"),
    119: ("GSP", "driver", "critical", "reset_gpu"),
    154: ("recovery", "driver", "info", "none"),
}


def events(*texts: str):  # type: ignore[no-untyped-def]
    lines = [Line(source="log", number=n, text=text, raw=text) for n, text in enumerate(texts, 1)]
    return [event for decoder in all_decoders().values() for event in decoder.decode(lines)]


@pytest.mark.parametrize("code", MEANINGS)
def test_the_right_meaning(code: int) -> None:
    meaning, layer, severity, action = MEANINGS[code]
    entry = catalog.xid(code)
    assert meaning in entry.meaning
    assert (entry.layer, entry.severity, entry.action) == (layer, severity, action)


@pytest.mark.parametrize("code", [31, 69])
def test_what_is_no_page_fault_and_no_lack_of_memory(code: int) -> None:
    assert "out of memory" not in catalog.xid(code).meaning
    assert catalog.xid(31).advice.startswith("Not out of memory")
    assert catalog.xid(69).advice == "Not a page fault."


def test_every_code_gives_an_answer() -> None:
    for code in range(1, 256):
        found = incidents(events(f"NVRM: Xid (PCI:0000:3d:00): {code}, words of the driver"))
        assert len(found) == 1, code
        incident = found[0]
        assert incident.xids == (code,)
        assert incident.device == "0000:3d:00.0"
        assert all(catalog.step(step) for step in incident.actions)
        if catalog.xid(code).role == "unknown":
            assert incident.severity == "warning"
            assert incident.action == "observe"
            assert "report_to_vendor" in incident.actions
            assert "words of the driver" in incident.why


def test_a_code_that_nobody_lists_is_not_given_a_meaning() -> None:
    entry = catalog.xid(250)
    assert entry.role == "unknown"
    assert entry.name == ""
    assert entry.sources == ()


def test_every_entry_has_sources_and_steps_with_words() -> None:
    families = {
        "xid": [(entry.sources, (entry.action, *entry.then)) for entry in catalog.all_xid().values()],
        "sxid": [(entry.sources, (entry.action, *entry.then)) for entry in catalog.all_sxid()],
        "cuda": [(entry.sources, (entry.action, *entry.then)) for entry in catalog.all_cuda().values()],
        "recovery": [
            (entry.sources, (entry.action, *entry.then)) for entry in catalog.all_recovery().values()
        ],
        "aer": [(entry.sources, ()) for entry in catalog.all_aer().values()],
    }
    for family, entries in families.items():
        for sources, steps in entries:
            assert catalog.sources(family, sources)
            assert all(catalog.step(step) for step in steps)


def test_ranges_of_nvswitch_errors_do_not_overlap() -> None:
    bounds = sorted((entry.first, entry.last) for entry in catalog.all_sxid())
    assert all(last < first for (_, last), (first, _) in pairwise(bounds))
    assert catalog.sxid(18123) is catalog.sxid(18000)
    assert catalog.sxid(24007) is None


def test_bits_of_an_error_register() -> None:
    assert [entry.id for entry in catalog.aer_bits("uncorrected", 0x00004020)] == [
        "surprise_down",
        "completion_timeout",
    ]
    assert [entry.id for entry in catalog.aer_bits("corrected", 0x00001001)] == [
        "receiver_error",
        "replay_timer_timeout",
    ]
    assert catalog.aer("RxErr") is catalog.aer("Receiver Error")
    assert catalog.aer("nonsense") is None


def test_recovery_by_number() -> None:
    assert catalog.recovery(1).action == "reset_gpu"
    assert catalog.recovery(2).action == "reboot_node"
    assert catalog.recovery(0).action == "none"
    unlisted = catalog.recovery(12)
    assert unlisted.action == "drain"
    assert unlisted.words == ()


@pytest.mark.parametrize(
    ("code", "info", "status", "driver", "unit", "first"),
    [
        (149, 0x004505C6, 0, "570.133.20", "NETIR_LINK_EVT/NETIR_LINK_DOWN", "reset_gpu"),
        (149, 0x025001C6, 0, "570.133.20", "NETIR_LINK_EVT/NETIR_LINK_DOWN", "reset_gpu"),
        (149, 0x00000013, 0x1, "580.10", "NETIR_BER_EVENT", "ignore"),
        (145, 0x0409A0C2, 0x8, "", "RLW_RXPIPE", "ignore"),
        (145, 0x00000004, 0x4, "580.95.05", "RLW_REMAP", "follow_recovery_action"),
        (150, 0, 0, "", "MSE_WATCHDOG", "reset_gpu"),
    ],
)
def test_nvlink5(*, code: int, info: int, status: int, driver: str, unit: str, first: str) -> None:
    rules = catalog.nvlink5(code, info, status, driver)
    assert [(rule.unit, rule.immediate) for rule in rules] == [(unit, first)]


def test_the_layout_of_nvlink5_follows_the_driver() -> None:
    """The same word means another unit before and after R575."""
    assert catalog.nvlink5(145, 0x00000004, 0x4, "570.10") == ()
    assert catalog.nvlink5(145, 0x00000082, 0x4, "570.10")[0].unit == "RLW_REMAP"


def test_patterns_of_nvlink5_are_of_bits() -> None:
    for rule in catalog.nvlink5_rules():
        for pattern in (rule.bits_before_r575, rule.bits_since_r575):
            assert re.fullmatch(r"[-01]{31,32}", pattern), rule
