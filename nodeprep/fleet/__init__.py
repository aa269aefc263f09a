"""Running Ansible over many hosts and remembering how far each came.

Reading order: inventory (who), vault (BMC passwords of an inventory), play (one ansible-playbook),
events (what became of each host), engine (the Fleet), ledger (what is on disk), stop (ending probes
after Ctrl-C), archive (the programs that are put on nodes). Run as processes of their own: stopper,
tether.
"""

from nodeprep.fleet.disk import DiskError
from nodeprep.fleet.engine import Fleet, FleetInterrupted
from nodeprep.fleet.events import FleetEvent, Outcome
from nodeprep.fleet.inventory import Target
from nodeprep.fleet.ledger import Ledger
from nodeprep.fleet.vault import bmc_passwords

__all__ = [
    "DiskError",
    "Fleet",
    "FleetEvent",
    "FleetInterrupted",
    "Ledger",
    "Outcome",
    "Target",
    "bmc_passwords",
]
