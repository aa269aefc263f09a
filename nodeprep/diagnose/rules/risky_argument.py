"""Kernel arguments that take away what a GPU node needs, or that the kernel does not know."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed

# Source: Linux Documentation/admin-guide/kernel-parameters.txt, and what each costs on a server.
_RISKS = {
    "pci=noacpi": "the kernel no longer asks firmware for PCI windows, interrupts and control of "
    "AER and hot-plug",
    "pci=noaer": "PCI Express errors are no longer reported",
    "pci=nommconf": "extended configuration space is gone, and with it AER, ACS and SR-IOV",
    "pcie_aspm=force": "links sleep although devices said that they cannot",
    "noapic": "interrupts are routed as on a PC of 1995",
    "acpi=off": "firmware tables are not read",
}


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host for harmful arguments, one for unknown ones."""
    for host in evidence.hosts:
        booted = evidence.open("boot.cmdline", host=host)
        found = [word for word in (booted[-1].data["args"] if booted else ()) if word in _RISKS]
        if found:
            yield Finding(
                layer="config",
                severity="warning",
                summary=f"kernel argument {listed(found)} harms a GPU node",
                why=" ".join(f"With {word} {_RISKS[word]}." for word in found),
                events=tuple(booted[-1:]),
                action="fix_config",
                then=("remove_argument", "verify_proc_cmdline_after_reboot"),
                count=1,
            )
        unknown = evidence.open("boot.unknown_option", host=host)
        if unknown:
            options = listed(dict.fromkeys(str(event.data["option"]) for event in unknown))
            yield Finding(
                layer="config",
                severity="warning",
                summary=f"the kernel does not know the option pci={options}",
                why="It says so at boot and goes on without; whoever set it believes that it works.",
                events=tuple(unknown),
                action="fix_config",
                then=("remove_argument", "disable_acs_in_bios_or_setpci"),
                count=1,
            )


RULE = Rule(id="risky_argument", rank=71, explain=explain)
