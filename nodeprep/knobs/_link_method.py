"""Who pins the PCIe generation of links: the BIOS or the host. One of them, so that they do not fight."""

from __future__ import annotations

from typing import Literal

from nodeprep.model.facts import NodeFacts
from nodeprep.model.spec import NodeSpec

LINK_KNOB = "pcie_link_gen"


def link_method(spec: NodeSpec, facts: NodeFacts) -> Literal["host", "bios", "unknown"]:
    """Who pins; "unknown" where "auto" cannot tell because the BIOS could not be read.

    "auto" is for the BIOS where it has the setting and takes it. A pin that nodeprep's unit makes already
    stays with the host: to move it would cost a reset and gain nothing.
    """
    link = spec.policy.pcie_link
    if link.method != "auto":
        return link.method
    unit = facts.driver.pcie_link_unit.value
    if link.gen is None or facts.bios.state == "not_supported" or (unit is not None and unit.gen is not None):
        return "host"
    bios = facts.bios.value
    answer = bios.answer(LINK_KNOB, str(link.gen)) if bios is not None else None
    if bios is None:
        return "unknown"
    if answer is None:
        # The policy's `bios` asks for another value of it ("auto"), and so leaves the pin to the host.
        return "host"
    if answer.status == "ok" or (answer.status == "change" and not bios.blocked_by):
        return "bios"
    return "host"


def due_in_bios(spec: NodeSpec, facts: NodeFacts) -> bool:
    """Whether the BIOS is to pin links that are not as the policy's `pcie_link` wants them."""
    gen = spec.policy.pcie_link.gen
    links = [gpu.link.max_gen.value for gpu in facts.nvml.gpus.value or ()]
    return link_method(spec, facts) == "bios" and any(found != gen for found in links)
