"""GPU power settings come back by themselves after a reboot."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import facts, latest
from nodeprep.model.facts import GpuPowerUnit
from nodeprep.model.result import CheckResult

SOURCE = "policy gpu.power_limit and gpu.persistence"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for the node; only a limit makes a node differ silently after a reboot."""
    wanted = context.spec.policy.gpu.power_limit
    if wanted is None:
        yield CHECK.result("SKIPPED", "node", "the policy names no power limit, so a reboot loses none")
        return
    which = latest(context)
    # At boot the unit sets limits through NVML; where that does not answer now, nothing is shown.
    facts(context, which).nvml.gpus.require("the GPU list of NVML")
    unit = facts(context, which).driver.gpu_power_unit.require("what sets GPU power at boot")
    held = unit.enabled and unit.limit == wanted
    yield CHECK.result(
        "PASS" if held else "FAIL",
        "node",
        f"the limit {wanted} is set again at every boot" if held else _why_not(unit, wanted),
        measured=unit.limit if unit.enabled and unit.limit else "none",
        limit=wanted,
        source=SOURCE,
        evidence=(f"facts.{which}#/driver/gpu_power_unit",),
    )


def _why_not(unit: GpuPowerUnit, wanted: str) -> str:
    if not unit.enabled:
        return f"nothing sets the limit {wanted} at boot: the next reboot loses it"
    return f"the next boot sets the limit {unit.limit or 'to none'}, not {wanted}"


CHECK = Check(
    id="power_boot", title="power limit comes back after a reboot", phase="static", evaluate=evaluate
)
