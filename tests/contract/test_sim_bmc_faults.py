"""Every fault of a simulated BMC does something, and its page tells of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprep.sim.bmc.faults import FAULTS
from nodeprep.sim.bmc.vendors import CONDUCTS

PAGE = Path(__file__).parents[2] / "docs" / "sim-bmc.md"
TESTS = Path(__file__).parents[1] / "unit" / "sim" / "bmc"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_how_a_bmc_behaves(name: str) -> None:
    fault = FAULTS[name]
    assert fault.put(CONDUCTS["generic"]) != CONDUCTS["generic"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_on_the_page_and_in_a_test(name: str) -> None:
    assert f"| `{name}` | {FAULTS[name].title} |" in PAGE.read_text()
    assert any(f'"{name}"' in file.read_text() for file in TESTS.glob("test_*.py"))


def test_the_page_tells_of_no_fault_that_is_gone() -> None:
    rows = [
        line.split("`")[1]
        for line in PAGE.read_text().split("## Faults")[1].splitlines()
        if line.startswith("| `")
    ]
    assert [name for name in rows if not name.startswith("--") and name not in FAULTS] == []


@pytest.mark.parametrize("vendor", CONDUCTS)
def test_every_vendor_is_on_the_page(vendor: str) -> None:
    assert f"| `{vendor}` |" in PAGE.read_text()
