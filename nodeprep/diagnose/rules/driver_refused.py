"""The driver's module could not be loaded, or may not have the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.model.diagnosis import Action, Layer, Severity


@dataclass(frozen=True, slots=True)
class _Case:
    """One reason for which there is no driver on a GPU."""

    kinds: tuple[str, ...]
    layer: Layer
    severity: Severity
    summary: str
    why: str
    action: Action
    then: tuple[str, ...]


_CASES = (
    _Case(
        ("driver.key_rejected",), "config", "error",
        "the kernel refuses a module: Secure Boot does not know the key it is signed with",
        "Under Secure Boot, or lockdown, the kernel loads only modules signed with a key that it trusts.",
        "fix_config", ("sign_module_or_enroll_key", "reboot_node"),
    ),
    _Case(
        ("driver.nouveau_conflict", "gpu.not_probed"), "config", "error",
        "another driver (nouveau, vfio-pci) holds the GPU",
        "The driver found GPUs that it could not take, since another driver had taken them at boot.",
        "fix_config", ("unload_nouveau", "reboot_node"),
    ),
    _Case(
        ("driver.needs_open_module",), "config", "error",
        "the GPU needs the open kernel module, and the proprietary one is loaded",
        "GPUs from Blackwell on have no proprietary module.",
        "update_driver", ("use_open_kernel_module",),
    ),
    _Case(
        ("driver.gpu_unsupported",), "config", "error",
        "the loaded driver does not support this GPU",
        "The open module needs a GPU with a GSP (Turing or newer); other drivers end their support "
        "by generation.",
        "update_driver", ("use_proprietary_kernel_module",),
    ),
    _Case(
        ("driver.wrong_kernel",), "driver", "error",
        "the driver's module was built for another kernel",
        "Symbols or version of the module are not those of the running kernel.",
        "update_driver", ("rebuild_module_for_kernel",),
    ),
    _Case(
        ("driver.peermem_refused",), "config", "warning",
        "nvidia_peermem was built for other RDMA modules than are loaded",
        "It takes its symbols from ib_core; those of the loaded modules (MLNX_OFED, DOCA or the kernel's "
        "own) are others. The GPUs work; GPUDirect RDMA does not.",
        "fix_config", ("rebuild_peermem_for_rdma_modules",),
    ),
    _Case(
        ("gpu.power_cable_missing",), "hardware", "critical",
        "the GPU lacks its power cables",
        "The board measures that its auxiliary power is not plugged in.",
        "drain", ("check_power_cables", "inspect_hardware"),
    ),
)  # fmt: skip
# Programs see no GPU then; that is no news.
_FOLLOW = ("driver.not_loaded", "gpu.none_found", "gpu.init_failed", "gpu.probe_failed", "nvml.no_devices",
           "cuda.no_device", "nvml.driver_not_loaded", "nvml.failed")  # fmt: skip


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host and reason; a driver that is not there for no reason on record comes last."""
    for host in evidence.hosts:
        for case in _CASES:
            events = evidence.open(*case.kinds, host=host)
            if events:
                events += evidence.open(*_FOLLOW, host=host)
                yield Finding(
                    layer=case.layer,
                    severity=case.severity,
                    device=next((event.device for event in events if event.device), ""),
                    summary=case.summary,
                    why=case.why,
                    events=tuple(events),
                    action=case.action,
                    then=case.then,
                )
        missing = evidence.open("driver.not_loaded", "gpu.none_found", "nvml.driver_not_loaded", host=host)
        if missing and not evidence.seen("gpu.init_failed", "xid.", host=host):
            yield Finding(
                layer="driver",
                severity="error",
                summary="nvidia-smi reaches no driver",
                why="The module is not loaded, or failed to load, and nothing in this log says why.",
                events=tuple(missing + evidence.open("nvml.no_devices", "cuda.no_device", host=host)),
                action="run_diagnostics",
                then=("read_kernel_log", "rebuild_module_for_kernel", "check_driver_and_gpu_count"),
            )


RULE = Rule(id="driver_refused", rank=52, explain=explain)
