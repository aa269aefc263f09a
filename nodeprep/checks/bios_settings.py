"""BIOS knobs that the policy asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from nodeprep.checks._check import Check, Context
from nodeprep.model.policy import BiosPolicy
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result. Facts hold no BIOS attributes, so a knob that is asked for is an unknown one.

    Its effect is judged elsewhere where it can be seen: aspm_off, iommu, pcie_link_speed_load.
    """
    knobs = {knob.name: getattr(context.spec.policy.bios, knob.name) for knob in fields(BiosPolicy)}
    asked = [f"{name}={value}" for name, value in knobs.items() if value is not None]
    if not asked:
        yield CHECK.result("SKIPPED", "node", "the policy asks for no BIOS knob")
        return
    yield CHECK.result(
        "ERROR",
        "node",
        f"the policy asks for {', '.join(asked)} in the BIOS, and this version cannot read BIOS attributes: "
        "confirm them by hand and waive this check, or take them out of the policy",
        source="policy bios",
    )


CHECK = Check(
    id="bios_settings",
    title="BIOS knobs are as asked",
    phase="static",
    evaluate=evaluate,
)
