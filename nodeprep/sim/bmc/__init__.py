"""Simulated BMCs: any dump `{uri: body}` of a real one, served the way that vendor's BMCs behave.

    tls = tls_in(Path("/tmp/tls"))
    bmc = SimulatedBmc(read_dump(Path("dell.json")), user="admin", password="secret", faults=("busy",))
    with serving([bmc], tls=tls) as served:
        print(served[0].url, tls.ca)

See docs/sim-bmc.md.
"""

from nodeprep.sim.bmc.dump import Dump, read_dump
from nodeprep.sim.bmc.faults import FAULTS, Fault
from nodeprep.sim.bmc.host import Host, HostRefused, SimulatedHost
from nodeprep.sim.bmc.server import Served, many, serve_many, serving
from nodeprep.sim.bmc.service import SimulatedBmc
from nodeprep.sim.certificates import Tls, tls_in

__all__ = [
    "FAULTS",
    "Dump",
    "Fault",
    "Host",
    "HostRefused",
    "Served",
    "SimulatedBmc",
    "SimulatedHost",
    "Tls",
    "many",
    "read_dump",
    "serve_many",
    "serving",
    "tls_in",
]
