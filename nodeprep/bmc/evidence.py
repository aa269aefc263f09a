"""What can be said about a node that did not come back, without the node."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from nodeprep.bmc.access import OutOfBand
from nodeprep.bmc.console import VARIABLE as CONSOLE_VARIABLE
from nodeprep.bmc.console import ConsoleMark, ConsoleNews
from nodeprep.bmc.controller import connect
from nodeprep.bmc.event_log import LogMark, LogNews
from nodeprep.bmc.power import PowerState
from nodeprep.bmc.target import VARIABLE as BMC_VARIABLE
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import Interrupted, NodeprepError
from nodeprep.model.reading import Reading

T = TypeVar("T")
M = TypeVar("M")

_NO_BMC = f"not configured: {BMC_VARIABLE} names no BMC"
_NO_CONSOLE = f"not configured: {CONSOLE_VARIABLE} names no console log"


@dataclass(frozen=True, slots=True)
class Marks:
    """Where the event log and the console log ended before something was tried. Plain, to be kept as JSON.

    "not_supported" is what the inventory does not name; "error" is what could not be marked, and why.
    """

    log: Reading[LogMark]
    console: Reading[ConsoleMark]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What BMC and console say. Each reading is ok, "not_supported" (not configured) or an error in words."""

    power: Reading[PowerState]
    log: Reading[LogNews]
    console: Reading[ConsoleNews]


def set_marks(ways: OutOfBand, *, cancelled: threading.Event | None = None) -> Marks:
    """Marks the logs of a node, before it is rebooted into something that is not known to be good.

    Raises:
        Interrupted: Broken off. All else that fails is in the marks.
    """
    log: Reading[LogMark] = Reading.not_supported(_NO_BMC)
    if ways.bmc is not None:
        target = ways.bmc
        log = _attempt(lambda: _log_mark(target, cancelled))
    console: Reading[ConsoleMark] = Reading.not_supported(_NO_CONSOLE)
    if ways.console is not None:
        console = _attempt(ways.console.mark)
    return Marks(log, console)


def gather(
    ways: OutOfBand, marks: Marks, *, boot: str = "", cancelled: threading.Event | None = None
) -> Evidence:
    """Power state, event log and console since the marks. Ask before the node is power cycled.

    Args:
        boot: Word on the kernel command line of the one boot whose console is wanted; "" for all of it.

    Raises:
        Interrupted: Broken off. All else that fails is in the evidence.
    """
    power: Reading[PowerState] = Reading.not_supported(_NO_BMC)
    log: Reading[LogNews] = Reading.not_supported(_NO_BMC)
    if ways.bmc is not None:
        power, log = _ask(ways.bmc, marks.log, cancelled)
    console: Reading[ConsoleNews] = Reading.not_supported(_NO_CONSOLE)
    if ways.console is not None:
        log_file = ways.console
        console = _since(
            marks.console, lambda mark: log_file.of_boot(mark, boot) if boot else log_file.since(mark)
        )
    return Evidence(power, log, console)


def _log_mark(target: BmcTarget, cancelled: threading.Event | None) -> LogMark:
    with connect(target, cancelled=cancelled) as bmc:
        return bmc.log_mark()


def _ask(
    target: BmcTarget, mark: Reading[LogMark], cancelled: threading.Event | None
) -> tuple[Reading[PowerState], Reading[LogNews]]:
    try:
        with connect(target, cancelled=cancelled) as bmc:
            return _attempt(bmc.power_state), _since(mark, bmc.log_since)
    except Interrupted:
        raise
    except NodeprepError as error:
        return Reading.error(error.message), Reading.error(error.message)


def _since(mark: Reading[M], read: Callable[[M], T]) -> Reading[T]:
    if mark.value is None:
        return Reading.error(f"no place in it was marked before: {mark.detail}")
    place = mark.value
    return _attempt(lambda: read(place))


def _attempt(read: Callable[[], T]) -> Reading[T]:
    try:
        return Reading.ok(read())
    except Interrupted:
        raise
    except NodeprepError as error:
        return Reading.error(error.message)
