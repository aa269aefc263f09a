"""BIOS knobs in a certificate: what is compared, and what could not be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from certify_samples import NOW

from nodeprep.certify import drift as drifting
from nodeprep.certify.configuration import configuration_of
from nodeprep.certify.identity import identity_of
from nodeprep.model.bios import BiosCandidate, BiosFacts, BiosKnobState, BiosMachine
from nodeprep.model.certificate import Certificate
from nodeprep.model.facts import NodeFacts
from nodeprep.model.outputs import CertificateCheck, Drift
from nodeprep.model.reading import Reading

ACCEPTED = CertificateCheck(file="n.json", accepted=True, signature_valid=True, problem="", message="")


def knob(name: str, value: str, *settings: tuple[str, str]) -> BiosKnobState:
    listed = tuple(
        BiosCandidate(name=one, display_name="", menu_path="", scope="global", current=now)
        for one, now in settings
    )
    return BiosKnobState(knob=name, found=bool(settings), value=value, reason="", settings=listed)


def bios(*knobs: BiosKnobState) -> Reading[BiosFacts]:
    machine = BiosMachine(vendor="dell", model="PowerEdge XE9680", bios="2.1.5", bmc_firmware="7.10")
    return Reading.ok(BiosFacts(bmc=machine, registry="found", serial="S1", knobs=knobs, answers=()))


OFF = bios(knob("iommu", "disabled", ("VT", "Disabled")), knob("acs", ""))
ON = bios(knob("iommu", "enabled", ("VT", "Enabled")), knob("acs", ""))
SILENT: Reading[BiosFacts] = Reading.error("the BMC does not answer")
NONE: Reading[BiosFacts] = Reading.not_supported("the inventory names no BMC")


def certified(certificate: Certificate, facts: NodeFacts) -> Certificate:
    return replace(certificate, configuration=configuration_of(facts), identity=identity_of(facts))


def compare(certificate: Certificate, was: NodeFacts, now: NodeFacts) -> Drift:
    return drifting.compare(certified(certificate, was), now, ACCEPTED, now=NOW)


def found(drift: Drift) -> list[tuple[str, str, str, str]]:
    return [(one.key, one.certified, one.now, one.kind) for one in drift.differences]


def test_the_configuration_holds_every_knob_and_the_identity_the_bmc(facts: Any) -> None:
    node = replace(facts(), bios=bios(knob("pcie_link_gen", "mixed", ("A", "Gen4"), ("B", "Auto"))))
    values = configuration_of(node).values
    assert (values["bios.knobs"], values["bios.knob.pcie_link_gen"]) == ("1", "A=Gen4, B=Auto")
    assert identity_of(node).bmc == "dell PowerEdge XE9680, firmware 7.10"
    assert configuration_of(replace(facts(), bios=OFF)).values["bios.knob.acs"] == "not supported"


def test_a_knob_that_was_set_back_is_named(certificate: Certificate, facts: Any) -> None:
    drift = compare(certificate, replace(facts(), bios=OFF), replace(facts(), bios=ON))
    assert found(drift) == [("bios.knob.iommu", "disabled", "enabled", "changed")]
    assert drift.drifted


def test_a_bmc_that_is_silent_now_is_no_answer(certificate: Certificate, facts: Any) -> None:
    for now in (SILENT, NONE):
        drift = compare(certificate, replace(facts(), bios=OFF), replace(facts(), bios=now))
        assert not drift.comparable
        assert {one.key for one in drift.differences} == {"bios.knob", "bmc"}
        assert {one.kind for one in drift.differences} == {"unreadable"}


def test_what_the_certificate_could_not_read_it_does_not_vouch_for(
    certificate: Certificate, facts: Any
) -> None:
    for was in (SILENT, NONE):
        drift = compare(certificate, replace(facts(), bios=was), replace(facts(), bios=ON))
        assert found(drift) == []


def test_a_certificate_from_before_there_were_knobs(certificate: Certificate, facts: Any) -> None:
    old = certified(certificate, facts())
    values = {k: v for k, v in old.configuration.values.items() if not k.startswith("bios.knob")}
    old = replace(old, configuration=replace(old.configuration, values=values))
    drift = drifting.compare(old, replace(facts(), bios=ON), ACCEPTED, now=NOW)
    assert found(drift) == []
