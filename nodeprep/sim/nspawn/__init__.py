"""Hosts with a real systemd in systemd-nspawn, for what needs no kernel of its own. A public tool.

`make_container` makes one, `Container` finds it again, `obstacle` says why none can run here.
"""

from nodeprep.sim.nspawn.container import Container, make_container
from nodeprep.sim.nspawn.host import obstacle

__all__ = ["Container", "make_container", "obstacle"]
