"""Drift names exactly what changed, and keeps "could not look" apart from "nothing changed"."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from certify_samples import NOW

from nodeprep.certify import drift as drifting
from nodeprep.certify.drift import can_compare, exit_code
from nodeprep.errors import ExitCode
from nodeprep.model.certificate import Certificate
from nodeprep.model.facts import NodeFacts
from nodeprep.model.outputs import CertificateCheck, Drift

GPU = "/nvml/gpus/value/0"


def ok(value: Any) -> dict[str, Any]:
    return {"state": "ok", "value": value}


def check(problem: str = "", *, signature_valid: bool = True) -> CertificateCheck:
    return CertificateCheck(
        file="node07.json",
        accepted=not problem,
        signature_valid=signature_valid,
        problem=problem,
        message=f"as {problem or 'accepted'}",
    )


def compare(certificate: Certificate, facts: NodeFacts, problem: str = "") -> Drift:
    return drifting.compare(certificate, facts, check(problem), now=NOW)


def test_nothing_changed(certificate: Certificate, facts: Any) -> None:
    drift = compare(certificate, facts())
    assert (drift.verdict, drift.valid, drift.expired, drift.simulated) == ("certified", True, False, False)
    assert drift.differences == ()
    assert (drift.drifted, drift.comparable, drift.certificate) == (False, True, "node07.json")
    assert exit_code(drift) == ExitCode.OK


def nvlink(index: int, *, up: bool) -> dict[str, Any]:
    return {
        "index": index,
        "active": ok(up),
        **{name: ok(0) for name in ("replay_errors", "recovery_errors", "crc_errors")},
    }


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        (
            {f"{GPU}/uuid": ok("GPU-x")},
            ("gpu.0000:17:00.0.uuid", "GPU-76d98191-1b0c-40a2-388f-cb077f563274", "GPU-x"),
        ),
        ({f"{GPU}/serial": ok("1")}, ("gpu.0000:17:00.0.serial", "1654024031556", "1")),
        ({f"{GPU}/vbios_version": ok("97")}, ("gpu.0000:17:00.0.vbios_version", "96.00.A5.00.1A", "97")),
        ({"/driver/nvidia_version": ok("590.1")}, ("driver.version", "580.159.04", "590.1")),
        ({f"{GPU}/power/limit_w": ok(700.0)}, ("gpu.0000:17:00.0.power_limit_w", "650", "700")),
        ({f"{GPU}/power/enforced_w": ok(500.0)}, ("gpu.0000:17:00.0.power_enforced_w", "650", "500")),
        ({f"{GPU}/persistence": ok(False)}, ("gpu.0000:17:00.0.persistence", "true", "false")),
        ({f"{GPU}/ecc/enabled": ok(False)}, ("gpu.0000:17:00.0.ecc", "true", "false")),
        ({f"{GPU}/remap/correctable_rows": ok(1)}, ("gpu.0000:17:00.0.remapped_rows_correctable", "0", "1")),
        ({f"{GPU}/remap/pending": ok(True)}, ("gpu.0000:17:00.0.remap_pending", "false", "true")),
        ({"/dmi/bios_version": ok("2.5.0")}, ("bios.version", "2.4.1", "2.5.0")),
        ({"/dmi/board_serial": ok("B")}, ("machine.board_serial", "BSN-0007", "B")),
        ({"/cpu/online": ok(112)}, ("cpu.online", "224", "112")),
        ({"/iommu/units": ok(["dmar0"])}, ("iommu.units", "none", "dmar0")),
        ({"/pci/devices/value/0/link/aspm_enabled": ok(["L1"])}, ("pci.0000:16:01.0.aspm", "off", "L1")),
        (
            {"/pci/devices/value/1/link/cap_width_lanes": ok(8)},
            ("pci.0000:17:00.0.link_cap_lanes", "16", "8"),
        ),
        ({"/simulated": True}, ("simulated", "False", "True")),
        ({"/pci/devices/value/0/link/sta_width_lanes": ok(8)}, ("pci.0000:16:01.0.link_lanes", "16", "8")),
        (
            {"/pci/devices/value/0/aer/reporting": ok([])},
            ("pci.0000:16:01.0.aer_reporting", "correctable, fatal, non_fatal", "none"),
        ),
        (
            {"/pci/devices/value/0/aer/rootport_reporting": ok(["fatal"])},
            ("pci.0000:16:01.0.aer_root_reporting", "correctable, fatal, non_fatal", "fatal"),
        ),
        ({"/aer_ownership/noaer": ok(True)}, ("aer.noaer", "false", "true")),
        ({"/aer_ownership/ports_native": ok(True)}, ("aer.ports_native", "false", "true")),
        ({"/aer_ownership/firmware_first": ok(True)}, ("aer.firmware_first", "false", "true")),
        (
            {"/aer_ownership/root_bridges/value/0/controls": ok(["PME"])},
            ("aer.bridge.0000:16", "AER, PME", "PME"),
        ),
        (
            {f"{GPU}/nvlinks": ok([nvlink(0, up=True), nvlink(1, up=False)])},
            ("gpu.0000:17:00.0.nvlinks", "0 of 0 up", "1 of 2 up"),
        ),
        (
            {f"{GPU}/fabric": ok({"state": "in_progress", "status": 0, "health_mask": 0})},
            ("gpu.0000:17:00.0.fabric", "completed, status 0", "in_progress, status 0"),
        ),
        (
            {f"{GPU}/fabric": ok({"state": "completed", "status": 0, "health_mask": 16})},
            ("gpu.0000:17:00.0.fabric_health", "0x0", "0x10"),
        ),
        ({"/driver/nvidia_disk_version": ok("590.1")}, ("driver.disk_version", "580.159.04", "590.1")),
        ({"/driver/nouveau_loaded": ok(True)}, ("driver.nouveau", "false", "true")),
        ({"/driver/persistenced_running": ok(False)}, ("persistenced.running", "true", "false")),
        (
            {"/driver/persistenced_no_persistence_mode": ok(True)},
            ("persistenced.no_persistence_mode", "false", "true"),
        ),
        (
            {"/driver/gpu_power_unit": ok({"enabled": False, "limit": "650W", "persistence": True})},
            ("boot_unit.enabled", "true", "false"),
        ),
        (
            {"/driver/gpu_power_unit": ok({"enabled": True, "limit": "", "persistence": True})},
            ("boot_unit.limit", "650W", "left alone"),
        ),
        (
            {"/driver/gpu_power_unit": ok({"enabled": True, "limit": "650W", "persistence": None})},
            ("boot_unit.persistence", "true", "left alone"),
        ),
        ({"/nics/value/0/pci_address": ok("0000:02:00.0")}, ("nic.eth0", "0000:01:00.0", "0000:02:00.0")),
        ({"/memory/total_bytes": ok(2163000000000 - 64 * 1024**3)}, ("memory.total_gib", "2014", "1950")),
        ({"/iommu/groups": ok(12)}, ("iommu.groups", "0", "12")),
        (
            {"/iommu/group_types": ok({"identity": 2, "DMA": 10})},
            ("iommu.group_types", "none", "10 DMA, 2 identity"),
        ),
        ({f"{GPU}/mig_pending": ok(True)}, ("gpu.0000:17:00.0.mig_pending", "false", "true")),
        ({f"{GPU}/gsp_enabled": ok(False)}, ("gpu.0000:17:00.0.gsp", "true", "false")),
        ({f"{GPU}/inforom_valid": ok(False)}, ("gpu.0000:17:00.0.inforom_valid", "true", "false")),
        (
            {f"{GPU}/ecc/sram_threshold_exceeded": ok(True)},
            ("gpu.0000:17:00.0.sram_threshold_exceeded", "false", "true"),
        ),
        (
            {f"{GPU}/ecc/volatile_uncorrected": ok(1)},
            ("gpu.0000:17:00.0.ecc_volatile_uncorrected", "0", "1"),
        ),
        (
            {f"{GPU}/remap/histogram": ok({"max": 3071, "high": 0, "partial": 0, "low": 0, "none": 1})},
            ("gpu.0000:17:00.0.banks_without_spare_rows", "0", "1"),
        ),
        (
            {f"{GPU}/remap/channel_repair_pending": ok(True)},
            ("gpu.0000:17:00.0.channel_repair_pending", "false", "true"),
        ),
        (
            {f"{GPU}/remap/tpc_repair_pending": ok(True)},
            ("gpu.0000:17:00.0.tpc_repair_pending", "false", "true"),
        ),
    ],
)
def test_one_change_is_named_alone(
    certificate: Certificate, facts: Any, changes: dict[str, Any], difference: tuple[str, str, str]
) -> None:
    drift = compare(certificate, facts(changes))
    assert [(each.key, each.certified, each.now, each.kind) for each in drift.differences] == [
        (*difference, "changed")
    ]
    assert exit_code(drift) == ExitCode.DRIFT


def test_the_command_line(certificate: Certificate, facts: Any) -> None:
    drift = compare(certificate, facts({"/boot/cmdline": ok("ro quiet")}))
    assert [each.key for each in drift.differences] == ["kernel.cmdline"]
    assert drift.differences[0].now == "ro quiet"


@pytest.mark.parametrize(
    "changes",
    [
        {f"{GPU}/temperature/gpu_c": ok(70)},
        {f"{GPU}/link/gen": ok(5)},
        {f"{GPU}/pcie_errors/replays": ok(3)},
        {"/boot/boot_id": ok("another")},
        {"/boot/uptime_s": ok(5.0)},
        {"/pci/devices/value/0/link/sta_speed_gts": ok(2.5)},
        {"/memory/total_bytes": ok(2163000000000 - 600 * 1024**2)},
    ],
)
def test_what_changes_by_itself_is_no_drift(
    certificate: Certificate, facts: Any, changes: dict[str, Any]
) -> None:
    assert compare(certificate, facts(changes)).differences == ()


def test_a_gpu_that_is_gone(certificate: Certificate, facts: Any) -> None:
    now = facts()
    gpus = now.nvml.gpus.value[:1]
    now = replace(now, nvml=replace(now.nvml, gpus=replace(now.nvml.gpus, value=gpus)))
    drift = compare(certificate, now)
    kinds = {each.key: each.kind for each in drift.differences}
    assert kinds["nvml.gpus"] == "changed"
    assert kinds["gpu.0000:3b:00.0.power_limit_w"] == "missing"
    assert drift.drifted


def test_a_gpu_that_is_new(certificate: Certificate, facts: Any) -> None:
    drift = compare(certificate, facts({f"{GPU}/pci_address": "0000:99:00.0"}))
    kinds = {each.key: each.kind for each in drift.differences}
    assert kinds["gpu.0000:99:00.0.power_limit_w"] == "added"
    assert kinds["gpu.0000:17:00.0.power_limit_w"] == "missing"


def test_unreadable_now_is_no_answer(certificate: Certificate, facts: Any) -> None:
    drift = compare(certificate, facts({f"{GPU}/power/limit_w": {"state": "error", "detail": "GPU is lost"}}))
    (only,) = drift.differences
    assert (only.kind, only.now) == ("unreadable", "unreadable: GPU is lost")
    assert (drift.drifted, drift.comparable) == (False, False)
    assert exit_code(drift) == ExitCode.INCONCLUSIVE


def test_not_supported_now_is_a_change(certificate: Certificate, facts: Any) -> None:
    drift = compare(certificate, facts({f"{GPU}/ecc/enabled": {"state": "not_supported", "detail": "MIG"}}))
    assert [(each.kind, each.now) for each in drift.differences] == [("changed", "not supported")]


def test_a_hung_nvml_is_told_once(certificate: Certificate, facts: Any) -> None:
    drift = compare(certificate, facts({"/nvml/gpus": {"state": "error", "detail": "NVML hung"}}))
    assert [(each.key, each.kind) for each in drift.differences] == [
        ("gpu", "unreadable"),
        ("nvml", "unreadable"),
    ]
    assert exit_code(drift) == ExitCode.INCONCLUSIVE


def test_unreadable_pci_is_told_once(certificate: Certificate, facts: Any) -> None:
    drift = compare(certificate, facts({"/pci/devices": {"state": "error", "detail": "EIO"}}))
    assert [(each.key, each.now) for each in drift.differences] == [("pci", "unreadable: EIO")]


def test_changed_and_unreadable_is_inconclusive_and_says_both(certificate: Certificate, facts: Any) -> None:
    drift = compare(
        certificate,
        facts({"/dmi/bios_version": ok("9"), f"{GPU}/persistence": {"state": "error", "detail": "x"}}),
    )
    assert {each.kind for each in drift.differences} == {"changed", "unreadable"}
    assert exit_code(drift) == ExitCode.INCONCLUSIVE


def test_what_the_certificate_could_not_read_is_not_compared(certificate: Certificate, facts: Any) -> None:
    values = {**certificate.configuration.values, "driver.open": "unreadable: no such file"}
    partial = replace(certificate, configuration=replace(certificate.configuration, values=values))
    assert compare(partial, facts()).differences == ()


def test_a_lost_gpu_is_told(certificate: Certificate, facts: Any) -> None:
    now = facts()
    drift = compare(certificate, replace(now, nvml=replace(now.nvml, lost=("GPU 1 is lost",))))
    assert [(each.key, each.certified, each.now) for each in drift.differences] == [
        ("nvml.lost", "none", "GPU 1 is lost")
    ]


def test_a_nic_that_is_gone_is_told_by_name(certificate: Certificate, facts: Any) -> None:
    drift = compare(certificate, facts({"/nics/value": []}))
    assert [(each.key, each.kind) for each in drift.differences] == [
        ("nic.eth0", "missing"),
        ("nics", "changed"),
    ]


@pytest.mark.parametrize(
    ("pointer", "key"), [("/nics", "nic"), ("/aer_ownership/root_bridges", "aer.bridge")]
)
def test_an_unreadable_group_is_told_once(
    certificate: Certificate, facts: Any, pointer: str, key: str
) -> None:
    drift = compare(certificate, facts({pointer: {"state": "error", "detail": "EIO"}}))
    assert [(each.key, each.now, each.kind) for each in drift.differences] == [
        (key, "unreadable: EIO", "unreadable")
    ]


def test_an_nvlink_of_unknown_state_makes_their_number_unknown(certificate: Certificate, facts: Any) -> None:
    unknown = {**nvlink(0, up=True), "active": {"state": "error", "detail": "time-out"}}
    drift = compare(certificate, facts({f"{GPU}/nvlinks": ok([unknown])}))
    assert [(each.key, each.now) for each in drift.differences] == [
        ("gpu.0000:17:00.0.nvlinks", "unreadable: time-out")
    ]


def test_members_of_a_group_the_certificate_could_not_list_are_not_new(
    certificate: Certificate, facts: Any
) -> None:
    values = {key: text for key, text in certificate.configuration.values.items() if key != "nic.eth0"}
    values["nics"] = "unreadable: EIO"
    partial = replace(certificate, configuration=replace(certificate.configuration, values=values))
    assert compare(partial, facts()).differences == ()
    both = compare(partial, facts({"/nics": {"state": "error", "detail": "EIO"}}))
    assert both.differences == ()


def test_volatile_errors_that_a_new_driver_forgot_are_no_drift(certificate: Certificate, facts: Any) -> None:
    key = "gpu.0000:17:00.0.ecc_volatile_uncorrected"
    values = {**certificate.configuration.values, key: "3"}
    worn = replace(certificate, configuration=replace(certificate.configuration, values=values))
    assert compare(worn, facts()).differences == ()


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        ("rejected", ExitCode.REJECTED),
        ("expired", ExitCode.REJECTED),
        ("not_yet_valid", ExitCode.REJECTED),
        ("inconclusive", ExitCode.INCONCLUSIVE),
    ],
)
def test_a_certificate_that_does_not_hold_is_never_as_certified(
    certificate: Certificate, facts: Any, problem: str, code: ExitCode
) -> None:
    same = compare(certificate, facts(), problem)
    assert same.differences == ()
    assert (same.valid, same.problem, same.message) == (False, problem, f"as {problem}")
    assert exit_code(same) == code
    changed = compare(certificate, facts({"/dmi/bios_version": ok("9")}), problem)
    assert [each.key for each in changed.differences] == ["bios.version"]
    assert exit_code(changed) == code


def test_an_expired_certificate_says_so_whatever_its_verdict(certificate: Certificate, facts: Any) -> None:
    old = replace(certificate, verdict="rejected", expires=NOW.isoformat())
    drift = compare(old, facts(), "rejected")
    assert (drift.expired, drift.verdict, drift.expires) == (True, "rejected", NOW.isoformat())


def test_a_simulated_certificate_fits_its_simulated_node(certificate: Certificate, facts: Any) -> None:
    drift = compare(replace(certificate, simulated=True), facts({"/simulated": True}))
    assert (drift.differences, drift.simulated, exit_code(drift)) == ((), True, ExitCode.OK)


def test_what_can_be_compared_with() -> None:
    assert all(can_compare(check(problem)) for problem in ("", "rejected", "expired", "inconclusive"))
    for problem in ("simulated_key", "malformed", "bad_signature", "wrong_key", "not_canonical", "simulated"):
        assert not can_compare(check(problem))
    assert not can_compare(check("rejected", signature_valid=False))
