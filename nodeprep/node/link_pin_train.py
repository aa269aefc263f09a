"""Sets a port's target speed and trains its link anew, and tells whether the hardware obeyed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, Optional, Tuple

from .link_pin_bus import BANDWIDTH_CHANGED, LNKCTL, LNKCTL2, LNKSTA, RETRAIN, TARGET, Bus, LinkSpace
from .reading import NotSupported

# As long as Linux waits for a link (PCIE_LINK_RETRAIN_TIMEOUT_MS in drivers/pci/pci.h).
TRAINING_S = 1.0
# As long as a device may take until it answers again (PCI Express Base Specification 6.0, 6.6.1).
ANSWER_S = 1.0
_PAUSE_S = 0.01


class TrainingError(Exception):
    """The link did not come out as it was to be; the message says how."""


@dataclass(frozen=True)
class LinkState:
    """One link as both ends tell it.

    Attributes:
        target: Highest generation that the port trains to.
        gen: Generation the port says it runs at.
        gpu_gen: The same from the GPU.
        width: Lanes in use, as the port says.
        common: Generations that both ends can do.
    """

    target: int
    gen: int
    gpu_gen: int
    width: int
    common: Tuple[int, ...]

    @property
    def fastest(self) -> int:
        """The higher of what the two ends say."""
        return max(self.gen, self.gpu_gen)


def look(bus: Bus, port: str, gpu: str) -> LinkState:
    """The link between a port and a GPU now.

    Raises:
        OSError, ValueError, NotSupported: An end is gone, or has no such register.
    """
    above, below = bus.read(port), bus.read(gpu)
    common = tuple(sorted(set(above.generations()) & set(below.generations())))
    return LinkState(above.target_gen(), above.gen(), below.gen(), above.sta_width_lanes(), common)


def set_target(bus: Bus, port: str, gen: int) -> None:
    """Writes the port's target speed; all other bits stay. This alone does not disturb the link.

    Raises:
        TrainingError: The port ignores the write.
        WriteForbidden: The kernel refuses it.
        OSError, ValueError, NotSupported: The port is gone or has no such register.
    """
    old = bus.read(port).control2()
    bus.write(port, LNKCTL2, old & ~TARGET | gen)
    found = bus.read(port).control2() & TARGET
    if found != gen:
        # Emulated ports do that: QEMU's root ports take the write and change nothing.
        raise TrainingError(
            f"not effective: the port {port} ignores its target speed: set to Gen{gen}, it reads Gen{found}"
        )


def retrain(bus: Bus, port: str) -> None:
    """Trains the link below a port anew.

    Raises:
        TrainingError: The link does not get out of training.
        WriteForbidden: The kernel refuses the write.
        OSError, ValueError, NotSupported: The port is gone or has no such register.
    """
    # A link that trains by itself may use the old target: wait, as the note to Retrain Link says.
    _await_trained(bus, port, "before it was told to train")
    bus.write(port, LNKCTL, bus.read(port).control() | RETRAIN)
    _await_trained(bus, port, "after it was told to train")
    # Left set it would read as the hardware's own change of speed. Source: pcie_retrain_link() of Linux.
    if bus.read(port).status() & BANDWIDTH_CHANGED:
        bus.write(port, LNKSTA, BANDWIDTH_CHANGED)


def confirm(bus: Bus, port: str, gpu: str, before: LinkState, gen: int) -> LinkState:
    """What came of it. A link slower than the pin is left to the check under load: idle GPUs go to Gen1.

    Args:
        bus: Of the machine.
        port: Above the link.
        gpu: Below it.
        before: From before the link was trained.
        gen: The pin.

    Raises:
        TrainingError: The GPU is gone, the link is down, faster than the pin, or narrower than before.
    """
    state = _await_gpu(bus, port, gpu)
    if state.target != gen:
        raise TrainingError(f"not effective: {port} has the target Gen{state.target} again, not Gen{gen}")
    if state.fastest > gen:
        raise TrainingError(
            f"not effective: the link of {gpu} runs at Gen{state.fastest} after training, above Gen{gen}"
        )
    if state.width < before.width:
        raise TrainingError(
            f"the link of {gpu} came back with {state.width} of {before.width} lanes: bad contact or lane"
        )
    return state


def _await_trained(bus: Bus, port: str, when: str) -> None:
    if _within(TRAINING_S, lambda: not bus.read(port).is_training()):
        return
    raise TrainingError(f"the link below {port} was still training {TRAINING_S:g} s {when}")


def _await_gpu(bus: Bus, port: str, gpu: str) -> LinkState:
    found: Optional[LinkState] = None
    why = f"{port} says that the link is down"

    def answers() -> bool:
        nonlocal found, why
        try:
            if bus.read(port).is_active() is False:
                return False
            found = look(bus, port, gpu)
        except (OSError, ValueError, NotSupported) as error:
            why = str(error)
        return found is not None

    if _within(ANSWER_S, answers) and found is not None:
        return found
    raise TrainingError(f"{gpu} does not answer {ANSWER_S:g} s after its link was trained: {why}")


def _within(seconds: float, done: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= end:
            return False
        time.sleep(_PAUSE_S)
    return True


def port_problem(space: LinkSpace) -> str:
    """Why a function is no port whose link can be trained, "" when it is one.

    Raises:
        OSError, ValueError, NotSupported: It cannot be told.
    """
    kind = space.port_type()
    return "" if kind in ("root_port", "downstream_port") else f"is no port whose link can be trained: {kind}"
