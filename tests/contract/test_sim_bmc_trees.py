"""Simulated BMCs over four real trees: a change, a reset, and the change in force, in each vendor's way."""

from __future__ import annotations

import datetime
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from nodeprep.sim.bmc import Dump, SimulatedBmc, read_dump, serving, tls_in

TREES = Path(__file__).parents[2].parent / "shared" / "field-data" / "redfish"
USER, PASSWORD = "admin", "secret"
ON_RESET = {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}

pytestmark = pytest.mark.skipif(not TREES.is_dir(), reason="the real trees are not beside this checkout")


@dataclass(frozen=True)
class Case:
    """One tree, and a change that its BMC takes."""

    system: str
    settings: str
    name: str
    old: Any
    new: Any
    attributes: int
    status: int
    vendor: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


CASES = {
    "dell": Case(
        "System.Embedded.1",
        "Bios/Settings",
        "ProcVirtualization",
        "Enabled",
        "Disabled",
        455,
        202,
        body=ON_RESET,
    ),
    "hpe": Case("1", "bios/settings/", "MaxPcieSpeed", "PerPortCtrl", "PcieGen3", 277, 200),
    "lenovo": Case("1", "Bios/Pending", "DevicesandIOPorts_PCIeGen_Slot3", "Auto", "Gen4", 348, 200),
    "gigabyte": Case(
        "Self", "Bios/SD", "USB003", "Enabled", "Disabled", 550, 204, "ami", headers={"If-Match": "*"}
    ),
}


@cache
def dump(name: str) -> Dump:
    return read_dump(TREES / f"{name}.json")


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def spoken(case: str, tmp_path: Path) -> Iterator[httpx.Client]:
    tls = tls_in(tmp_path)
    bmc = SimulatedBmc(dump(case), user=USER, password=PASSWORD, post_s=0.2)
    trust = ssl.create_default_context(cafile=tls.ca)
    with (
        serving([bmc], tls=tls) as (served,),
        httpx.Client(
            base_url=served.url,
            auth=(USER, PASSWORD),
            verify=trust,
            follow_redirects=True,
            timeout=30,
        ) as client,
    ):
        yield client


def test_vendors_are_told_from_their_trees(case: str) -> None:
    bmc = SimulatedBmc(dump(case), user=USER, password=PASSWORD)
    assert bmc.conduct.vendor == (CASES[case].vendor or case)


def test_a_change_comes_into_force_with_a_reset(case: str, spoken: httpx.Client) -> None:
    wanted = CASES[case]
    system = f"/redfish/v1/Systems/{wanted.system}"
    bios, settings = f"{system}/Bios", f"{system}/{wanted.settings}"
    before = spoken.get(bios).json()["Attributes"]
    assert (before[wanted.name], len(before)) == (wanted.old, wanted.attributes)

    staged = spoken.patch(
        settings, json={**wanted.body, "Attributes": {wanted.name: wanted.new}}, headers=wanted.headers
    )
    assert staged.status_code == wanted.status, staged.text
    assert spoken.get(settings).json()["Attributes"][wanted.name] == wanted.new
    assert spoken.get(bios).json()["Attributes"][wanted.name] == wanted.old

    reset = spoken.post(f"{system}/Actions/ComputerSystem.Reset", json={"ResetType": "ForceRestart"})
    assert reset.status_code == 204
    time.sleep(0.4)
    after = spoken.get(bios).json()
    assert after["Attributes"][wanted.name] == wanted.new
    if "Location" in staged.headers:
        assert spoken.get(staged.headers["Location"]).json()["TaskState"] == "Completed"


def test_every_resource_is_served_as_the_dump_has_it(case: str, spoken: httpx.Client) -> None:
    alive = {"Oem", "@odata.etag", "PowerState", "Attributes", "Members", "Members@odata.count"}
    for uri, body in dump(case).resources.items():
        answer = spoken.get(uri)
        if answer.status_code == 404:
            assert body.get("Attributes") == {}, uri
            continue
        assert answer.status_code == 200, uri
        found = answer.json()
        same = {key: value for key, value in body.items() if key not in alive}
        assert {key: value for key, value in found.items() if key in same} == same, uri


def test_dell_makes_aspm_writable_with_a_custom_profile() -> None:
    settings = SimulatedBmc(dump("dell"), user=USER, password=PASSWORD).state.settings
    other = "Enabled" if settings.current["PcieAspmL1"] == "Disabled" else "Disabled"
    assert settings.current["SysProfile"] != "Custom"
    assert "PcieAspmL1" in settings.problems({"PcieAspmL1": other})
    assert settings.problems({"SysProfile": "Custom", "PcieAspmL1": other}) == {}


def test_dell_a_profile_decides_other_values() -> None:
    settings = SimulatedBmc(dump("dell"), user=USER, password=PASSWORD).state.settings
    assert settings.current["ProcPwrPerf"] == "MaxPerf"
    settings.stage({"SysProfile": "PerfPerWattOptimizedOs"}, due=1)
    settings.promote(1, datetime.datetime.now(datetime.UTC))
    assert settings.current["ProcPwrPerf"] == "OsDbpm"


def test_lenovo_drops_what_its_operating_mode_decides() -> None:
    settings = SimulatedBmc(dump("lenovo"), user=USER, password=PASSWORD).state.settings
    settings.stage({"OperatingModes_ChooseOperatingMode": "MaximumPerformance"}, due=1)
    settings.promote(1, datetime.datetime.now(datetime.UTC))
    mode = settings.current["OperatingModes_ChooseOperatingMode"]
    old = settings.current["Processors_CStates"]
    new = "Disabled" if old != "Disabled" else "Autonomous"
    settings.stage({"Processors_CStates": new}, due=2)
    settings.promote(2, datetime.datetime.now(datetime.UTC))
    assert (mode, settings.current["Processors_CStates"]) == ("MaximumPerformance", old)
