"""BIOS settings of a node in the words of inspect, plan and apply."""

from __future__ import annotations

from nodeprep.cli._bios import attribute_lines, done_lines, fact_lines
from nodeprep.model.bios import (
    BiosApplication,
    BiosFacts,
    BiosKnobState,
    BiosMachine,
    BiosOutcome,
    BiosPlan,
    BiosSetting,
)

MACHINE = BiosMachine(vendor="dell", model="PowerEdge XE9680", bios="2.1.5", bmc_firmware="")


def test_an_attribute_says_what_it_is_what_waits_and_what_it_will_be() -> None:
    settings = [
        BiosSetting(name="Vt", current="Enabled", pending=None, value="Disabled", scope="global"),
        BiosSetting(name="Gen", current="Auto", pending="Gen4", value="Gen4", scope="slot 3", phase=2),
        BiosSetting(name="Aspm", current="Disabled", pending=None, value="Disabled", scope="global"),
    ]
    assert list(attribute_lines(settings)) == [
        "Vt: Enabled -> Disabled",
        "Gen [slot 3]: Auto (staged: Gen4) -> Gen4, after the reset of what is above (phase 2)",
        "Aspm: Disabled",
    ]


def test_facts_tell_what_is_found_missing_and_in_the_way() -> None:
    knobs = (
        BiosKnobState(knob="iommu", found=True, value="enabled", reason="", settings=()),
        BiosKnobState(knob="acs", found=False, value="", reason="", settings=()),
    )
    facts = BiosFacts(
        bmc=MACHINE, registry="found", serial="S1", knobs=knobs, answers=(), simulated=True,
        blocked_by=("lockdown mode is on",), tls="certificate not verified (insecure)",
        notes=("no registry",),
    )  # fmt: skip
    told = "\n".join(fact_lines(facts))
    for words in ("simulated", "firmware ?", "insecure", "iommu enabled", "acs", "lockdown", "no registry"):
        assert words in told


def test_what_was_done_names_each_attribute_and_its_end() -> None:
    plan = BiosPlan(bmc=MACHINE, registry="found", knobs=(), needs_reset=True)
    lost = BiosOutcome(
        name="Vt", knob="iommu", before="Enabled", wanted="Disabled", after="Enabled", result="lost",
        detail="POST did not keep it",
    )  # fmt: skip
    done = BiosApplication(
        bmc=MACHINE,
        state="failed",
        before=plan,
        after=None,
        outcomes=(lost,),
        resets=1,
        restore_file="/r.json",
    )
    assert list(done_lines([done])) == [
        "BIOS failed, 1 reset(s), restore point /r.json",
        "  Vt: Enabled -> Disabled, lost: POST did not keep it",
    ]
