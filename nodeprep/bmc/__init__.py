"""The ways around a node: its BMC (power, event log) and the log of its console.

Reading order: target and password (who is asked), controller (what can be asked), ipmi/ and redfish/ (how),
console, access (both ways of a host, from the inventory), evidence (what they say of a node that did not
come back), measuring (what its sensors say), recovery (power off and on), many (a rack at the same time).
"""

from nodeprep.bmc.access import OutOfBand, read_access
from nodeprep.bmc.console import ConsoleLog, ConsoleMark, ConsoleNews, ConsoleUnreadable
from nodeprep.bmc.controller import Controller, connect
from nodeprep.bmc.event_log import LogEntry, LogMark, LogNews
from nodeprep.bmc.evidence import Evidence, Marks, gather, set_marks
from nodeprep.bmc.failures import BmcLoginRefused, BmcRefused, BmcUnreachable
from nodeprep.bmc.identity import BmcIdentity
from nodeprep.bmc.many import for_all
from nodeprep.bmc.measuring import measure
from nodeprep.bmc.power import PowerAction, PowerState
from nodeprep.bmc.recovery import Recovery, RecoveryMethod, power_cycle_to_recover
from nodeprep.bmc.target import BmcTarget

__all__ = [
    "BmcIdentity",
    "BmcLoginRefused",
    "BmcRefused",
    "BmcTarget",
    "BmcUnreachable",
    "ConsoleLog",
    "ConsoleMark",
    "ConsoleNews",
    "ConsoleUnreadable",
    "Controller",
    "Evidence",
    "LogEntry",
    "LogMark",
    "LogNews",
    "Marks",
    "OutOfBand",
    "PowerAction",
    "PowerState",
    "Recovery",
    "RecoveryMethod",
    "connect",
    "for_all",
    "gather",
    "measure",
    "power_cycle_to_recover",
    "read_access",
    "set_marks",
]
