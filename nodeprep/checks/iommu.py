"""The IOMMU is in the state that the policy's kernel arguments or BIOS knob ask for."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._asked import asked_argument
from nodeprep.checks._check import Check, Context
from nodeprep.model.facts import Iommu
from nodeprep.model.policy import Policy
from nodeprep.model.result import CheckResult

_OFF = ("iommu=off", "intel_iommu=off", "amd_iommu=off")
_PASSTHROUGH = ("iommu=pt", "iommu.passthrough=1")
_ON = (*_PASSTHROUGH, "intel_iommu=on", "iommu=force")


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result: what the kernel runs, from its own list of units and groups, not from log lines."""
    policy, iommu = context.spec.policy, context.before.iommu
    off = _asked(policy, _OFF, "disabled")
    on = _asked(policy, _ON, "enabled")
    if off and on:
        yield CHECK.result("ERROR", "node", f"the policy contradicts itself: {off} and {on}")
    elif off:
        yield CHECK.on("node", "facts.before#/iommu", _judge_off, iommu, off)
    elif on:
        identity = bool(asked_argument(policy, _PASSTHROUGH))
        yield CHECK.on("node", "facts.before#/iommu", _judge_on, iommu, on, identity)
    else:
        yield CHECK.result("SKIPPED", "node", "the policy asks for no IOMMU state")


def _asked(policy: Policy, arguments: tuple[str, ...], knob: str) -> str:
    by_bios = f"policy bios.iommu ({knob})" if policy.bios.iommu == knob else ""
    return asked_argument(policy, arguments) or by_bios


def _judge_off(iommu: Iommu, source: str) -> CheckResult:
    units = iommu.units.require("the list of IOMMU units")
    groups = iommu.groups.require("the number of IOMMU groups")
    active = bool(units or groups)
    return CHECK.result(
        "FAIL" if active else "PASS",
        "node",
        f"the IOMMU is on ({', '.join(units) or 'no unit'}, {groups} groups), off wanted"
        if active
        else "the IOMMU is off: no units, no groups",
        measured=groups,
        limit=0,
        unit="groups",
        source=source,
    )


def _judge_on(iommu: Iommu, source: str, identity: bool) -> CheckResult:
    units = iommu.units.require("the list of IOMMU units")
    types = iommu.group_types.require("the types of the IOMMU groups")
    others = {kind: count for kind, count in types.items() if kind != "identity"} if identity else {}
    if not units or not types:
        status, reason = "FAIL", "the IOMMU is off, on wanted: check that it is enabled in the BIOS"
    elif others:
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        status, reason = "FAIL", f"some IOMMU groups translate addresses ({listed}), identity wanted for all"
    else:
        status = "PASS"
        reason = f"the IOMMU is on ({', '.join(units)})" + (", all groups are identity" if identity else "")
    return CHECK.result(
        "PASS" if status == "PASS" else "FAIL",
        "node",
        reason,
        measured=", ".join(f"{count} {kind}" for kind, count in sorted(types.items())) or "no groups",
        limit="identity groups only" if identity else "at least one unit and group",
        source=source,
    )


CHECK = Check(
    id="iommu",
    title="the IOMMU is as asked",
    phase="static",
    evaluate=evaluate,
)
