"""One look at what a BMC measures, in a session of its own."""

from __future__ import annotations

import threading

from nodeprep.bmc.controller import SENSORS_S, connect
from nodeprep.bmc.target import BmcTarget
from nodeprep.model.bmc import BmcSensors


def measure(target: BmcTarget, *, cancelled: threading.Event | None = None) -> BmcSensors:
    """The sensors of a machine, over whatever its BMC speaks.

    Raises:
        BmcUnreachable, BmcRefused: Nothing could be read.
        Interrupted: Broken off.
    """
    with connect(target, cancelled=cancelled, operation_s=SENSORS_S) as bmc:
        return bmc.sensors()
