"""Power and event logs over the trees that real BMCs served: Dell, HPE, Lenovo and Gigabyte."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nodeprep.bmc.redfish.controller import RedfishController
from nodeprep.sim.bmc import read_dump

ROOT = Path(__file__).parents[2]
TREES = ROOT.parent / "shared" / "field-data" / "redfish"
sys.path.insert(0, str(ROOT / "tests" / "unit" / "bmc" / "redfish"))

from bios_bench import TARGET, Bench  # noqa: E402

pytestmark = pytest.mark.skipif(not TREES.is_dir(), reason=f"the real trees are not at {TREES}")
LOGS = {
    "dell": ("Sel", "Lclog"),
    "gigabyte": ("BIOS", "SEL", "EventLog"),
    "hpe": ("IML", "Event"),
    "lenovo": ("PlatformLog", "ActiveLog"),
}
CYCLES = {"dell": "PowerCycle"}


@pytest.mark.parametrize("name", LOGS)
def test_power_logs_and_identity(name: str, tmp_path: Path) -> None:
    bench = Bench(read_dump(TREES / f"{name}.json"), tmp_path)
    with RedfishController(
        TARGET, connect_s=20, operation_s=30, connection=bench.connect(TARGET)
    ) as controller:
        assert controller.power_state().on
        mark = controller.log_mark()
        assert {uri.split("/")[-2] for uri in mark.logs} == set(LOGS[name])
        assert controller.log_since(mark).entries == ()
        # Only Dell of these four has a power cycle; the others are reset, and recovery goes by off and on.
        assert controller.set_power("cycle" if name in CYCLES else "reset")
        assert bench.resets == [CYCLES.get(name, "ForceRestart")]
        news = controller.log_since(mark)
        assert [entry.text.split(": ")[2] for entry in news.entries] == ["Reset of the host"]
        assert news.note == ""
        assert controller.identity().manufacturer
    assert bench.bmc.state.sessions.ids() == []
