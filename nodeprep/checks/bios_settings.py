"""BIOS knobs that the policy asks for, as the node's BMC reports them."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.model.bios import BiosKnobPlan
from nodeprep.model.facts import NodeFacts
from nodeprep.model.policy import Policy
from nodeprep.model.result import CheckResult

_LINK_KNOB = "pcie_link_gen"
_HINT = "name its BMC in the inventory (nodeprep_bmc, protocol redfish), or waive this"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a knob that is asked for: its present value, not what is staged for the next reset.

    It has to be so before the load and after it.

    Its effect on the running node is judged elsewhere: aspm_off, iommu, pcie_link_speed_load.
    """
    asked = context.spec.policy.bios.asked()
    if not asked:
        yield CHECK.result("SKIPPED", "node", "the policy asks for no BIOS knob")
        return
    policy, after = context.spec.policy, context.after
    for name, wanted in asked.items():
        result = CHECK.on(name, "facts.before#/bios", _judge, context.before, policy, name, wanted)
        if result.status == "PASS" and after is not None:
            result = CHECK.on(name, "facts.after#/bios", _judge, after, policy, name, wanted)
        yield result


def _judge(facts: NodeFacts, policy: Policy, name: str, wanted: str) -> CheckResult:
    source = f"policy bios.{name}"
    if facts.bios.state == "not_supported":
        words = f"{name} {wanted} is asked for, and nobody can tell: {facts.bios.detail} (hint: {_HINT})"
        return CHECK.result("ERROR", name, words, source=source)
    answer = facts.bios.require(f"the BIOS setting {name}").answer(name, wanted)
    if answer is None:
        words = f"the BIOS was asked about other values than the policy's {wanted}: look at the node again"
        return CHECK.result("ERROR", name, words, source=source)
    if answer.status == "ambiguous":
        listed = ", ".join(one.name for one in answer.candidates)
        return CHECK.result("ERROR", name, f"{answer.reason}: {listed}", source=source)
    if answer.status == "unsupported":
        return _unsupported(policy, answer, source)
    now = ", ".join(f"{one.name}={one.current}" for one in answer.attributes)
    if answer.status == "ok":
        return CHECK.result(
            "PASS", name, f"{name} is {wanted}: {now}", measured=now, limit=wanted, source=source
        )
    waits = ", ".join(f"{one.name}={one.pending}" for one in answer.attributes if one.pending is not None)
    words = f"{name} is not {wanted}: {now or 'no value'}"
    words += f"; staged for the next reset: {waits}" if waits else ""
    words += f"; {answer.reason}" if answer.status == "refused" else ""
    return CHECK.result("FAIL", name, words, measured=now or "no value", limit=wanted, source=source)


def _unsupported(policy: Policy, answer: BiosKnobPlan, source: str) -> CheckResult:
    name, wanted = answer.knob, answer.wanted
    link = policy.pcie_link
    if name == _LINK_KNOB and link.gen is not None and link.method != "bios":
        words = f"this BIOS has no such setting, and the host pins links to Gen{link.gen} (pcie_link)"
        return CHECK.result("SKIPPED", name, words, source="policy pcie_link")
    if policy.bios.unsupported == "accept":
        words = f"this BIOS has no such setting, which the policy accepts: {answer.reason}"
        return CHECK.result("SKIPPED", name, words, source="policy bios.unsupported")
    words = f"{name} {wanted} is asked for, and this BIOS has no such setting: {answer.reason}"
    return CHECK.result("ERROR", name, words, source=source)


CHECK = Check(
    id="bios_settings",
    title="BIOS knobs are as asked",
    phase="static",
    evaluate=evaluate,
)
