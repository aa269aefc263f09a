"""PCIe generation and width a GPU's link can reach. Compared only: the BIOS, or a slot, decides it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodeprep.knobs._gpus import each_gpu
from nodeprep.knobs._knob import Knob
from nodeprep.model.facts import Gpu, NodeFacts
from nodeprep.model.plan import Change
from nodeprep.model.reading import Reading
from nodeprep.model.spec import NodeSpec

# PCI Express Base Specification, Supported Link Speeds: generation by GT/s.
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}

_WHY = "the link must be able to reach what the load is judged by"
_WHY_PINNED = "a lower PCIe generation has more signal margin over risers, cables and switches"
_RISKS = ("a lower generation costs bandwidth; the probe measures how much",)


def _plan(spec: NodeSpec, facts: NodeFacts) -> Iterator[Change]:
    if spec.pcie_gen is None and spec.pcie_width_lanes is None:
        return
    pinned = spec.policy.pcie_link.gen is not None
    yield from each_gpu(
        KNOB.id,
        facts,
        wanted=_wanted(spec),
        why=_WHY_PINNED if pinned else _WHY,
        compare=lambda gpu: _compare(gpu, spec, facts),
    )


def _wanted(spec: NodeSpec) -> str:
    gen = f"Gen{spec.pcie_gen.value:g}" if spec.pcie_gen else ""
    width = f"x{spec.pcie_width_lanes.value:g}" if spec.pcie_width_lanes else ""
    return f"{gen} {width}".strip()


def _compare(gpu: Gpu, spec: NodeSpec, facts: NodeFacts) -> Change:
    pinned = spec.policy.pcie_link.gen is not None
    gen = _reachable_gen(gpu, facts)
    lanes = gpu.link.max_width_lanes.require("greatest link width")

    def change(status: Any, reason: str = "", risks: tuple[str, ...] = ()) -> Change:
        return Change(
            knob=KNOB.id,
            subject=gpu.pci_address,
            status=status,
            old=f"at most Gen{gen} x{lanes}",
            new=_wanted(spec),
            why=_WHY_PINNED if pinned else _WHY,
            reason=reason,
            risks=risks,
            needs_reboot=status != "ok",
        )

    if spec.pcie_width_lanes is not None and lanes < spec.pcie_width_lanes.value:
        return change("unsupported", f"slot, riser or switch gives {lanes} lanes; no setting adds any")
    if spec.pcie_gen is not None and gen < spec.pcie_gen.value:
        return change(
            "unsupported", f"slot, switch or BIOS holds the link at Gen{gen}; this version does not write it"
        )
    if pinned and spec.pcie_gen is not None and gen > spec.pcie_gen.value:
        return change(
            "unsupported",
            "this version does not write it: pin the slot's generation in the BIOS setup; the check of the "
            "link under load judges the effect",
            _RISKS,
        )
    return change("ok")


def _reachable_gen(gpu: Gpu, facts: NodeFacts) -> int:
    """What GPU and system allow together, and no more than the target speed of the port above."""
    gen = gpu.link.max_gen.require("greatest link generation")
    target = _port_above(gpu, facts)
    return gen if target is None else min(gen, target)


def _port_above(gpu: Gpu, facts: NodeFacts) -> int | None:
    """Generation the port above may train to; None when it is out of sight or gives no known speed."""
    hops = next((path.hops for path in facts.pci.gpu_paths.value or () if path.gpu == gpu.pci_address), ())
    port = facts.pci_device(hops[-2]) if len(hops) > 1 else None
    speed: Reading[float] | None = port.link.target_speed_gts if port else None
    return _GENERATIONS.get(speed.value) if speed is not None and speed.value is not None else None


KNOB = Knob(id="pcie_link", title="PCIe generation and width", risks=_RISKS, needs_reboot=True, plan=_plan)
