"""Dumps with a part missing or of another kind: the simulated BMC serves what is there and never breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sim_bmc_client import BIOS, MANAGER, REGISTRY, ROOT, SESSIONS, SYSTEM, Client, tree

from nodeprep.errors import UsageError

MISSING = object()
PLACES = (ROOT, SYSTEM, BIOS, f"{BIOS}/Settings", REGISTRY, SESSIONS, MANAGER, f"{ROOT}/Systems?$expand=*")
BODIES: tuple[Any, ...] = (
    {
        "Attributes": {
            "Iommu": "Disabled",
            "BusNumber": 9,
            "LinkSpeed": "Gen4",
            "Profile": "Quiet",
            "Sriov": False,
        }
    },
    {"Attributes": {"Iommu": ["Disabled"], "AssetTag": None}},
    {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}, "Attributes": {"AssetTag": "x"}},
    {"@Redfish.SettingsApplyTime": 7},
)


def paths(part: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries: list[tuple[Any, Any]] = []
    if isinstance(part, dict):
        entries = list(part.items())
    elif isinstance(part, list):
        entries = list(enumerate(part))
    for key, value in entries:
        yield (*above, key)
        yield from paths(value, (*above, key))


def broken(maker: str, path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made = tree(maker)
    part: Any = made
    for key in path[:-1]:
        part = part[key]
    if value is MISSING:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return made


def drive(bmc: Client) -> None:
    for _ in range(2):
        for uri in PLACES:
            bmc.get(uri)
        for body in BODIES:
            bmc.patch(f"{BIOS}/Settings", body, if_match="*")
        bmc.reset()
        bmc.clock.forward(20)
    bmc.post(f"{BIOS}/Actions/Bios.ResetBios")
    bmc.post(f"{MANAGER}/Oem/Dell/Jobs", {"TargetSettingsURI": f"{BIOS}/Settings"})


@pytest.mark.parametrize("maker", ["Dell Inc.", "HPE", "Acme"])
@pytest.mark.parametrize("value", [MISSING, None, [[]]], ids=["missing", "null", "list"])
def test_a_broken_part_breaks_nothing_else(maker: str, value: Any) -> None:
    tried = 0
    for path in paths(tree(maker)):
        try:
            bmc = Client(broken(maker, path, value))
        except UsageError:
            continue
        drive(bmc)
        tried += 1
        # The login still counts, whatever is broken.
        bmc.login = {}
        assert bmc.get(SYSTEM).status == 401, path
    assert tried > 100


def test_a_bios_and_its_registry_are_enough() -> None:
    whole = tree("AMI")
    client = Client({uri: whole[uri] for uri in (BIOS, REGISTRY)})
    assert client.get(f"{ROOT}/Systems").json["Members"] == [{"@odata.id": SYSTEM}]
    system = client.get(SYSTEM).json
    assert system["Bios"] == {"@odata.id": BIOS}
    assert system["Oem"]["Nodeprep"]["Simulated"] is True
    assert client.get(ROOT).json["Systems"] == {"@odata.id": f"{ROOT}/Systems"}
    assert client.get(BIOS).json["Attributes"]["Iommu"] == "Enabled"


def test_what_the_dump_has_is_not_made_up() -> None:
    whole = tree("AMI")
    whole[f"{ROOT}/Systems"] = {"@odata.id": f"{ROOT}/Systems", "Members": []}
    assert Client(whole).get(f"{ROOT}/Systems").json["Members"] == []
