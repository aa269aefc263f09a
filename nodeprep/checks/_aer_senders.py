"""Who sent the error messages that a root port counted: the kernel's log names them, its counters do not.

A fatal error makes its device unreachable, so that the kernel can read and count nothing there: the root
port's total is then the only number, and its line in the log the only name.
Source: drivers/pci/pcie/aer.c of Linux, aer_print_port_info(); worded otherwise before 6.9 and 4.18.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nodeprep.model.facts import NodeFacts
from nodeprep.node.pci_address import PATTERN, normalise

_LINE = re.compile(
    r".*AER: (?:Multiple )?(?P<severity>Corrected|Correctable|Uncorrect(?:ed|able) \((?:Non-)?Fatal\)) error "
    rf"(?:message )?received(?: from|:) (?P<sender>{PATTERN})"
)


def senders(after: NodeFacts, root_port: str, severity: str, names: Mapping[str, str]) -> str:
    """Half a sentence on who sent a root port its messages of one severity.

    Args:
        after: Facts whose kernel log reads on from before the load.
        root_port: Address of the port that counted.
        severity: "correctable", "non_fatal" or "fatal".
        names: How to speak of devices, by address.
    """
    events = after.kernel_log.events
    if events.value is None:
        return f"the kernel log, which names the sender, is unreadable: {events.detail}"
    lines = [_LINE.match(event.text) for event in events.value if event.device == root_port]
    found = [
        normalise(line.group("sender"))
        for line in lines
        if line and _severity(line.group("severity")) == severity
    ]
    if not found:
        return "the kernel log names no sender"
    return "sent by " + " and ".join(names.get(address, address) for address in dict.fromkeys(found))


def _severity(words: str) -> str:
    if words.startswith("Correct"):
        return "correctable"
    return "non_fatal" if "Non-Fatal" in words else "fatal"
