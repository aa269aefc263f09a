"""What the next boot brings besides an argument, and what must not be written at all."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from nodeprep.knobs._kernel_guards import forbidden, write_obstacle
from nodeprep.knobs._kernel_risks import next_boot_risks, removal_risks
from nodeprep.model.codec import decode
from nodeprep.model.facts import NodeFacts
from nodeprep.node.kernel_cmdline import Argument
from nodeprep.profiles import resolve, settings_from_variables

FACTS = Path(__file__).parents[2] / "cases" / "knobs" / "facts.json"


def facts(**changes: Any) -> NodeFacts:
    """The healthy node with readings changed; "boot_loader__default_kernel" names one."""
    document = json.loads(FACTS.read_text())
    for name, reading in changes.items():
        part, _, field = name.partition("__")
        assert field in document[part]
        document[part][field] = reading
    return decode(json.dumps(document), NodeFacts, source="facts")


def ok(value: Any) -> dict[str, Any]:
    return {"state": "ok", "value": value}


def error(detail: str) -> dict[str, Any]:
    return {"state": "error", "detail": detail}


def test_nothing_stands_against_the_healthy_node() -> None:
    node = facts()
    assert write_obstacle(node) is None
    assert next_boot_risks(node) == ()


@pytest.mark.parametrize(("free", "status"), [((4 << 20) - 1, "refused"), (0, "refused"), (4 << 20, None)])
def test_a_full_boot_file_system_is_not_written(free: int, status: str | None) -> None:
    obstacle = write_obstacle(facts(boot_loader__boot_free_bytes=ok(free)))
    assert (obstacle and obstacle[0]) == status
    assert obstacle is None or "does not boot" in obstacle[1]


def test_a_boot_file_system_of_unknown_room_is_not_written() -> None:
    obstacle = write_obstacle(facts(boot_loader__boot_free_bytes=error("statvfs: EIO")))
    assert obstacle == ("unknown", "whether /boot has room cannot be told: statvfs: EIO")


def test_a_pending_kernel_upgrade_is_told() -> None:
    (risk,) = next_boot_risks(facts(boot_loader__default_kernel=ok("6.8.0-99-generic")))
    assert "from 6.8.0-60-generic to 6.8.0-99-generic" in risk


@pytest.mark.parametrize("name", ["boot_loader__default_kernel", "boot__kernel_release"])
def test_a_kernel_nobody_can_name_is_told(name: str) -> None:
    (risk,) = next_boot_risks(facts(**{name: error("unreadable")}))
    assert "cannot be told: unreadable" in risk


def test_a_refusal_outweighs_what_cannot_be_read() -> None:
    node = facts(kernel_use__vfio_devices=ok(["0000:63:00.0"]), kernel_use__confidential=error("log lost"))
    found = forbidden(Argument("iommu", "off"), node, present=False)
    assert found is not None
    assert found[0] == "refused"
    assert "log lost" not in found[1]


def test_a_long_list_of_devices_is_cut() -> None:
    functions = [f"0000:18:00.{number}" for number in range(1, 6)]
    found = forbidden(
        Argument("iommu", "off"), facts(kernel_use__virtual_functions=ok(functions)), present=False
    )
    assert found is not None
    assert "5 (0000:18:00.1, 0000:18:00.2, 0000:18:00.3, ...)" in found[1]


def test_a_machine_without_apic_ids_is_judged_by_its_cpus() -> None:
    arm = {"state": "not_supported", "detail": "no apicid"}
    assert forbidden(Argument("iommu", "off"), facts(cpu__max_apic_id=arm), present=False) is None
    many = facts(cpu__max_apic_id=arm, cpu__present=ok(256))
    found = forbidden(Argument("iommu", "off"), many, present=False)
    assert found is not None
    assert found[0] == "refused"


def test_facts_of_older_node_code_are_no_consent() -> None:
    document = json.loads(FACTS.read_text())
    del document["kernel_use"]
    old = decode(json.dumps(document), NodeFacts, source="facts")
    found = forbidden(Argument("intel_iommu", "off"), old, present=False)
    assert found is not None
    assert found[0] == "unknown"
    assert "not looked for" in found[1]


@pytest.mark.parametrize(
    ("present", "removed", "blind"),
    [
        (["pcie_aspm=off"], Argument("pcie_ports", None), True),
        (["pcie_aspm=off"], Argument("pcie_ports", "native"), True),
        (["pcie_aspm=off"], Argument("pci", "noaer"), False),
        (["iommu=off"], Argument("pcie_ports", "native"), False),
    ],
)
def test_who_takes_native_ports_away_takes_aer_away(
    present: list[str], removed: Argument, blind: bool
) -> None:
    policy = {"kernel_args": {"present": present, "absent": [str(removed)], "aer_ownership": "leave"}}
    asked = settings_from_variables({"nodeprep_policy": policy}, source="x", known_checks=())
    node = facts()
    spec = resolve(node.host, asked, node, today=date(2026, 11, 30))
    risks = removal_risks(removed, spec, node)
    assert any("blinds AER" in risk for risk in risks) is blind
