"""BIOS knobs, through the node's BMC: what the policy asks for against what its BIOS has for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.knobs._knob import Knob
from nodeprep.knobs._link_method import LINK_KNOB, due_in_bios
from nodeprep.model.bios import BiosKnobPlan
from nodeprep.model.facts import NodeFacts
from nodeprep.model.plan import Change, ChangeStatus
from nodeprep.model.spec import NodeSpec

_WHYS = {
    "pcie_link_gen": "a lower PCIe generation has more signal margin over risers, cables and switches",
    "iommu": "with the IOMMU off, DMA is not translated on its way to the GPU",
    "aspm": "a link that never leaves L0 cannot fail on the way back",
    "xhci_handoff": "firmware that keeps its hands on USB can hold the node up for milliseconds",
    "above_4g": "GPUs have memory windows of many GiB, for which there is no room below 4 GiB",
    "resizable_bar": "a window as large as the GPU's memory lets the CPU reach all of it at once",
    "sriov": "virtual functions take bus numbers and memory windows that a node without guests does not need",
    "acs": "with ACS redirection, copies between GPUs go up to the root port and back",
    "relaxed_ordering": "writes that may pass each other keep PCIe full",
    "ten_bit_tags": "more requests under way at once hide the latency of long paths",
    "package_c_states": "DMA that meets a sleeping CPU package waits until it is awake",
}
_RISKS = ("takes effect with the next reset",)
_NO_BMC = "nodeprep bios apply --bmc URL sets it without an inventory"


def _plan(spec: NodeSpec, facts: NodeFacts) -> Iterator[Change]:
    asked = spec.policy.bios.asked()
    for name, wanted in spec.policy.bios_wanted().items():
        # What only pcie_link asks for is told there, unless the BIOS is to do it.
        if name in asked or (name == LINK_KNOB and due_in_bios(spec, facts)):
            yield _compare(spec, facts, name, wanted)


def _compare(spec: NodeSpec, facts: NodeFacts, name: str, wanted: str) -> Change:
    bios = facts.bios.value
    if bios is None and facts.bios.state == "not_supported":
        return _change(name, wanted, "unsupported", reason=f"{facts.bios.detail}; {_NO_BMC}")
    if bios is None:
        return _change(name, wanted, "unknown", reason=facts.bios.detail)
    answer = bios.answer(name, wanted)
    if answer is None:
        return _change(name, wanted, "unknown", reason=f"the BIOS was not asked about {name} {wanted}")
    return _answered(spec, answer, bios.blocked_by)


def _answered(spec: NodeSpec, answer: BiosKnobPlan, blocked_by: tuple[str, ...]) -> Change:
    name, wanted = answer.knob, answer.wanted
    if answer.status == "unsupported":
        return _unsupported(spec, answer)
    if answer.status == "change" and blocked_by:
        return _change(name, wanted, "refused", answer, reason="; ".join(blocked_by))
    if answer.status == "change":
        return _change(name, wanted, "change", answer, reason=_staged(answer))
    if answer.status == "ok":
        return _change(name, wanted, "ok", answer)
    return _change(name, wanted, "refused", answer, reason=_with_candidates(answer))


def _unsupported(spec: NodeSpec, answer: BiosKnobPlan) -> Change:
    if spec.policy.bios.unsupported == "accept" and answer.knob in spec.policy.bios.asked():
        old = f"{answer.knob} is not in this BIOS, which the policy accepts"
        return _change(answer.knob, answer.wanted, "ok", answer, old=old)
    return _change(answer.knob, answer.wanted, "unsupported", answer, reason=answer.reason)


def _change(
    name: str,
    wanted: str,
    status: ChangeStatus,
    answer: BiosKnobPlan | None = None,
    *,
    reason: str = "",
    old: str = "",
) -> Change:
    due = status != "ok"
    return Change(
        knob=KNOB.id,
        subject="node",
        status=status,
        old=old or _now(name, answer),
        new=f"{name} {wanted}",
        why=_WHYS[name],
        reason=reason,
        risks=(*(answer.risks if answer else ()), *_RISKS) if due else (),
        needs_reboot=due,
        attributes=answer.attributes if answer else (),
    )


def _now(name: str, answer: BiosKnobPlan | None) -> str:
    if answer is None:
        return f"{name} not read"
    if not answer.attributes:
        return f"{name}: no attribute"
    return ", ".join(f"{one.name}={one.current}" for one in answer.attributes)


def _staged(answer: BiosKnobPlan) -> str:
    """Where all is written and only the reset is missing, the plan says so."""
    open_ones = [one for one in answer.attributes if one.current != one.value]
    waits = open_ones and all(one.pending == one.value for one in open_ones)
    return "staged already, waits for a reset" if waits else ""


def _with_candidates(answer: BiosKnobPlan) -> str:
    if not answer.candidates:
        return answer.reason
    names = ", ".join(f"{one.name} ({one.menu_path or one.display_name})" for one in answer.candidates)
    return f"{answer.reason}: {names}"


def _settings(_spec: NodeSpec, changes: tuple[Change, ...]) -> Mapping[str, Any]:
    """The knobs to be written with one reset, by name; the BMC is given these and not the node."""
    due = [change.new.partition(" ") for change in changes if change.status == "change"]
    return {"bios": {name: wanted for name, _, wanted in due}}


KNOB = Knob(id="bios", title="BIOS settings", risks=_RISKS, needs_reboot=True, plan=_plan, settings=_settings)
