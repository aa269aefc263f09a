"""PCIe generation and width a GPU's link can reach, and the generation the policy pins it to.

Width is compared only: a slot decides it. A generation is pinned by the BIOS where it can be, else from the
host, at the port above the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodeprep.knobs._gpus import each_gpu
from nodeprep.knobs._knob import Knob
from nodeprep.knobs._link_method import LINK_KNOB, link_method
from nodeprep.model.bios import BiosSetting
from nodeprep.model.facts import Gpu, NodeFacts, PciDevice, PcieLinkUnit
from nodeprep.model.plan import Change, ChangeStatus
from nodeprep.model.reading import Reading
from nodeprep.model.spec import NodeSpec

# PCI Express Base Specification, Supported Link Speeds: generation by GT/s.
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
# Gigabytes per second, lane and direction: GT/s less the line code (8b/10b, then 128b/130b, then FLITs).
_LANE_GBPS = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}

_WHY = "the link must be able to reach what the load is judged by"
_WHY_PINNED = "a lower PCIe generation has more signal margin over risers, cables and switches"
_RISKS = (
    "a lower generation costs bandwidth; the probe measures how much",
    "a GPU can fail to come back when its link is trained anew; the next boot brings it back",
    "a unit of nodeprep's runs at every boot, before the driver loads: nodeprep-pcie-link.service",
)
_BY_HAND = "pin the slot's generation in the BIOS setup; the check of the link under load judges the effect"


def _plan(spec: NodeSpec, facts: NodeFacts) -> Iterator[Change]:
    if spec.pcie_gen is None and spec.pcie_width_lanes is None and not _pinned_ports(facts):
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
    return f"{gen} {width}".strip() or "not pinned"


@dataclass(frozen=True, slots=True)
class _Link:
    """One GPU's link, and the Change of it in the making.

    Attributes:
        gen: What GPU and system allow together, and no more than the port's target.
        allowed: The same without the port's target.
        target: Generation the port may train to; None when it is out of sight or gives no known speed.
    """

    gpu: Gpu
    port: PciDevice | None
    allowed: int
    target: int | None
    lanes: int
    spec: NodeSpec
    unit: PcieLinkUnit | None

    @property
    def gen(self) -> int:
        return self.allowed if self.target is None else min(self.allowed, self.target)

    @property
    def ours(self) -> bool:
        """Nodeprep's unit is told to pin it."""
        return self.unit is not None and self.port is not None and self.port.address in self.unit.ports

    def held_at_boot(self, gen: int) -> bool:
        """Nodeprep's unit will pin it to this generation."""
        return self.ours and self.unit is not None and self.unit.enabled and self.unit.gen == gen

    def change(
        self,
        status: ChangeStatus,
        reason: str = "",
        *,
        risks: tuple[str, ...] = (),
        needs_reboot: bool = True,
        old: str = "",
        new: str = "",
        attributes: tuple[BiosSetting, ...] = (),
    ) -> Change:
        pinned = self.spec.policy.pcie_link.gen is not None
        return Change(
            knob=KNOB.id,
            subject=self.gpu.pci_address,
            status=status,
            old=f"at most Gen{self.gen} x{self.lanes}{old}",
            new=new or _wanted(self.spec),
            why=_WHY_PINNED if pinned else _WHY,
            reason=reason,
            risks=risks,
            needs_reboot=needs_reboot and status != "ok",
            attributes=attributes,
        )


def _compare(gpu: Gpu, spec: NodeSpec, facts: NodeFacts) -> Change:
    port = _port_above(gpu, facts)
    link = _Link(
        gpu=gpu,
        port=port,
        allowed=gpu.link.max_gen.require("greatest link generation"),
        target=_target(port),
        lanes=gpu.link.max_width_lanes.require("greatest link width"),
        spec=spec,
        unit=facts.driver.pcie_link_unit.value,
    )
    if spec.pcie_width_lanes is not None and link.lanes < spec.pcie_width_lanes.value:
        return link.change(
            "unsupported", f"slot, riser or switch gives {link.lanes} lanes; no setting adds any"
        )
    if spec.policy.pcie_link.gen is not None:
        return _pin(link, spec.policy.pcie_link.gen, facts)
    if link.ours:
        # The pin of an earlier policy; left alone it would last for ever.
        return link.change("change", old=", pinned at boot", new="not pinned at boot", needs_reboot=False)
    if spec.pcie_gen is not None and link.gen < spec.pcie_gen.value:
        return link.change(
            "unsupported", f"slot, switch or BIOS holds the link at Gen{link.gen}; the host cannot raise it"
        )
    return link.change("ok")


def _pin(link: _Link, gen: int, facts: NodeFacts) -> Change:
    """What is due where the policy names a generation."""
    if link.allowed < gen:
        return link.change("unsupported", f"GPU, slot or switch holds the link at Gen{link.allowed}")
    method = link_method(link.spec, facts)
    if method == "bios":
        return _pin_by_bios(link, gen, facts)
    if link.gen < gen and not link.ours:
        return link.change(
            "refused",
            f"the port is held at Gen{link.gen}, and not by nodeprep: firmware, or the kernel after training "
            "failed; a pin from the host only lowers",
        )
    if link.gen == gen and not _to_be_kept(link, gen):
        return link.change("ok")
    if method == "unknown":
        return link.change("unknown", f"whether the BIOS can pin it is not known: {facts.bios.detail}")
    return _pin_by_host(link, gen, facts)


def _to_be_kept(link: _Link, gen: int) -> bool:
    """The port is pinned now, and nodeprep's unit should see to it and does not."""
    if link.target != gen or link.allowed == gen or link.held_at_boot(gen):
        return False
    # With "auto" a pin that nodeprep did not make is taken for the BIOS setup's.
    return link.ours or link.spec.policy.pcie_link.method == "host"


def _pin_by_bios(link: _Link, gen: int, facts: NodeFacts) -> Change:
    if link.ours:
        return link.change("unsupported", f"nodeprep's unit pins it, not the BIOS: {_BY_HAND}")
    if link.gen == gen:
        return link.change("ok")
    bios = facts.bios.value
    answer = bios.answer(LINK_KNOB, str(gen)) if bios is not None else None
    if bios is None or answer is None:
        return _by_hand(link, gen, facts)
    if answer.status == "ok":
        return _beyond_bios(link, gen, facts)
    if answer.status == "change" and not bios.blocked_by:
        risks = (_cost(link, gen),) if link.allowed > gen else _RISKS[:1]
        return link.change("change", "by the BIOS", risks=risks, attributes=answer.attributes)
    why = "; ".join(bios.blocked_by) if answer.status == "change" else answer.reason
    return link.change("unsupported" if answer.status == "unsupported" else "refused", why)


def _by_hand(link: _Link, gen: int, facts: NodeFacts) -> Change:
    """A BIOS that nobody here can write, or that did not answer."""
    if link.gen < gen:
        return link.change(
            "unsupported", f"the BIOS holds the link at Gen{link.gen}: raise it in the BIOS setup"
        )
    unread = facts.bios.state == "error"
    why = facts.bios.detail or "the BIOS was not asked about it"
    return link.change("unknown" if unread else "unsupported", f"{why}: {_BY_HAND}", risks=_RISKS[:1])


def _beyond_bios(link: _Link, gen: int, facts: NodeFacts) -> Change:
    """A link that is not as the BIOS was set: below a switch on the baseboard it is out of a slot's reach."""
    if link.gen < gen:
        return link.change("unsupported", f"the BIOS allows Gen{gen}, and the port is held at Gen{link.gen}")
    if link.spec.policy.pcie_link.method == "auto":
        return _pin_by_host(link, gen, facts)
    words = "the BIOS is set so, and does not reach this link: method host pins it at the port above"
    return link.change("unsupported", words)


def _pin_by_host(link: _Link, gen: int, facts: NodeFacts) -> Change:
    if link.port is None:
        return link.change(
            "unsupported",
            "the port above is out of sight: in a virtual machine only the machine below it can pin the link",
        )
    lockdown = facts.kernel_use.lockdown
    if lockdown.value is not None and lockdown.value != "none":
        return link.change(
            "refused",
            f"kernel lockdown ({lockdown.value}, it comes with secure boot) lets no program write the port: "
            f"{_BY_HAND}",
        )
    unit = facts.driver.pcie_link_unit
    if unit.value is None:
        status: ChangeStatus = "unsupported" if unit.state == "not_supported" else "unknown"
        return link.change(status, f"what pins links at boot: {unit.detail}")
    # What the port is told now must be known before it is told something else.
    link.port.link.target_speed_gts.require("target speed of the port above")
    return link.change(
        "change",
        old=_at_boot(link, gen),
        risks=(_cost(link, gen), *_RISKS[1:]) if link.allowed > gen else _RISKS[1:],
        needs_reboot=link.gen != gen and _has_driver(link, facts),
    )


def _at_boot(link: _Link, gen: int) -> str:
    """What nodeprep's unit makes of a link that is not as it should be."""
    if link.gen == gen:
        return ", not pinned at boot"
    if link.held_at_boot(gen):
        return f", Gen{gen} from the next boot"
    told = link.ours and link.unit is not None and link.unit.gen == gen
    return ", its unit failed or is off: systemctl status nodeprep-pcie-link" if told else ""


def _cost(link: _Link, gen: int) -> str:
    """The price of the pin in numbers."""
    now, then = (_LANE_GBPS[one] * link.lanes for one in (link.allowed, gen))
    return (
        f"{_RISKS[0]}: Gen{gen} x{link.lanes} carries {then:.1f} GB/s each way at most, "
        f"Gen{link.allowed} {now:.1f} GB/s"
    )


def _has_driver(link: _Link, facts: NodeFacts) -> bool:
    """A driver has the GPU, or may have: its link is then left alone until the next boot."""
    device = facts.pci_device(link.gpu.pci_address)
    return device is None or device.driver.value != ""


def _port_above(gpu: Gpu, facts: NodeFacts) -> PciDevice | None:
    hops = next((path.hops for path in facts.pci.gpu_paths.value or () if path.gpu == gpu.pci_address), ())
    return facts.pci_device(hops[-2]) if len(hops) > 1 else None


def _target(port: PciDevice | None) -> int | None:
    speed: Reading[float] | None = port.link.target_speed_gts if port else None
    return _GENERATIONS.get(speed.value) if speed is not None and speed.value is not None else None


def _pinned_ports(facts: NodeFacts) -> tuple[str, ...]:
    unit = facts.driver.pcie_link_unit.value
    return unit.ports if unit else ()


def _settings(spec: NodeSpec, changes: tuple[Change, ...]) -> Mapping[str, Any]:
    gen = spec.policy.pcie_link.gen
    if gen is None:
        return {"pcie_link": {"state": "absent"}}
    # What the BIOS does is written with its knob.
    gpus = [change.subject for change in changes if change.status == "change" and not change.attributes]
    return {"pcie_link": {"gen": gen, "gpus": gpus}} if gpus else {}


KNOB = Knob(
    id="pcie_link",
    title="PCIe generation and width",
    risks=_RISKS,
    needs_reboot=True,
    plan=_plan,
    settings=_settings,
)
