"""Drift names exactly what changed, and keeps "could not look" apart from "nothing changed"."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nodeprep.certify.drift import compare, exit_code
from nodeprep.errors import ExitCode
from nodeprep.model.certificate import Certificate

GPU = "/nvml/gpus/value/0"


def ok(value: Any) -> dict[str, Any]:
    return {"state": "ok", "value": value}


def test_nothing_changed(certificate: Certificate, facts: Any) -> None:
    drift = compare(certificate, facts(), file="node07.json")
    assert drift.differences == ()
    assert (drift.drifted, drift.comparable, drift.certificate) == (False, True, "node07.json")
    assert exit_code(drift) == ExitCode.OK


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
        {"/nics/value": []},
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
