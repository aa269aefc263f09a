"""The driver's module could not be loaded, or may not have the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._symptoms import WINDOW_S
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
    needs: str = ""
    """One of the kinds that must be there; the others are of this case only beside it."""


_CASES = (
    _Case(
        ("driver.key_rejected",), "config", "error",
        "the kernel refuses a module: Secure Boot does not know the key it is signed with",
        "Under Secure Boot, or lockdown, the kernel loads only modules signed with a key that it trusts.",
        "fix_config", ("sign_module_or_enroll_key", "reboot_node"),
    ),
    _Case(
        ("gpu.held_for_guests", "gpu.not_probed", "driver.nouveau_conflict"), "config", "warning",
        "vfio-pci holds the GPU for guests, and the host's driver was loaded beside it",
        "That is as it should be on a host that passes its GPUs through; programs of this host have no GPU.",
        "fix_config", ("take_gpu_from_vfio_or_drop_host_driver",),
        needs="gpu.held_for_guests",
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
        ("driver.gpu_legacy", "driver.gpu_unsupported"), "config", "error",
        "this driver no longer supports the GPU; an older branch does",
        "Drivers end their support by generation, and this one says which branch still has it.",
        "update_driver", ("use_legacy_driver",),
        needs="driver.gpu_legacy",
    ),
    _Case(
        ("driver.gpu_unsupported", "driver.gpu_unsupported_noted"), "config", "error",
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
_FOLLOW = ("driver.not_loaded", "gpu.none_found", "gpu.init_failed", "gpu.init_failed_noted",
           "gpu.probe_failed", "nvml.no_devices", "cuda.no_device", "nvml.driver_not_loaded",
           "nvml.failed")  # fmt: skip

_NOT_LOADED = ("read_kernel_log", "rebuild_module_for_kernel", "check_driver_and_gpu_count")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host and reason; a driver that is not there for no reason on record comes last."""
    for host in evidence.hosts:
        for case in _CASES:
            events = evidence.open(*case.kinds, host=host)
            if events and (not case.needs or any(event.kind == case.needs for event in events)):
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
        if missing and all(event.kind == "gpu.none_found" for event in missing):
            yield _no_gpu(missing)
        elif missing and not evidence.seen("gpu.init_failed", "xid.", host=host):
            # Services that start before the module ask in vain, which a boot's order explains.
            loaded = any(
                _came_later(evidence, missing[-1], e) for e in evidence.seen("driver.loaded", host=host)
            )
            yield Finding(
                layer="driver",
                severity="info" if loaded else "error",
                summary="programs reached no driver until it was loaded"
                if loaded
                else "no program reaches a driver",
                why="The module came later in the same log."
                if loaded
                else "The module is not loaded, or failed to load, and nothing in this log says why.",
                events=tuple(missing + evidence.open("nvml.no_devices", "cuda.no_device", host=host)),
                action="none" if loaded else "run_diagnostics",
                then=() if loaded else _NOT_LOADED,
            )


def _came_later(evidence: Evidence, missing: Event, loaded: Event) -> bool:
    """Whether times say so: a paste shows nvidia-smi first and then a kernel log that is older."""
    apart = evidence.clock.seconds(missing, loaded)
    return apart is not None and 0.0 <= apart <= WINDOW_S


def _no_gpu(found: list[Event]) -> Finding:
    return Finding(
        layer="driver",
        severity="error",
        summary="the driver's module finds no NVIDIA GPU on the bus",
        why="It was loaded and ended, since no device of its vendor was there: this machine has none, or the "
        "bus has lost it, or never enumerated it.",
        events=tuple(found),
        action="run_diagnostics",
        then=("check_driver_and_gpu_count", "compare_with_inventory", "read_kernel_log"),
    )


RULE = Rule(id="driver_refused", rank=52, explain=explain)
