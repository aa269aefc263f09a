"""The BIOS of one machine over Redfish: what it is, what would change, changing it, and taking it back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodeprep.bmc.bios import BiosView
from nodeprep.bmc.bios import plan as plan_knobs
from nodeprep.bmc.bios import show as show_knobs
from nodeprep.bmc.bios.wanted import Wanted
from nodeprep.bmc.redfish.blocks import blocks
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import Missing, RedfishError
from nodeprep.bmc.redfish.reading import BiosReading, machine_of, read_all
from nodeprep.bmc.redfish.registry import no_registry
from nodeprep.bmc.redfish.service import Service, read_service
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import Inconclusive
from nodeprep.model.bios import BiosPlan, BiosState

Connect = Callable[[BmcTarget], Connection]
_MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class NoBios:
    """A BMC without BIOS settings over Redfish.

    Attributes:
        why: In a sentence.
    """

    service: Service
    why: str


def show(target: BmcTarget, connect: Connect = Connection) -> BiosState:
    """What a BIOS is set to.

    Raises:
        Inconclusive: The BMC answers, and its settings cannot be read.
        BmcUnreachable: No answer, or no login.
    """
    with readable(), connect(target) as connection:
        found = look(connection)
        if isinstance(found, NoBios):
            state = show_knobs(machine_of(found.service), nothing_known())
        else:
            state = show_knobs(found.machine, found.view)
        return replace(
            state,
            simulated=is_simulated(found.service),
            tls=connection.trust,
            notes=notes_of(found),
        )


def plan(target: BmcTarget, wanted: Mapping[str, Wanted], connect: Connect = Connection) -> BiosPlan:
    """What would change in a BIOS.

    Raises:
        As `show`.
    """
    with readable(), connect(target) as connection:
        return plan_of(connection, look(connection), wanted)


def look(connection: Connection) -> BiosReading | NoBios:
    """The BIOS as it is now, or that there is none.

    Raises:
        RedfishError: It cannot be read.
        BmcUnreachable: No answer.
    """
    service = read_service(connection)
    try:
        return read_all(connection, service)
    except Missing as error:
        # A system that names its Bios, and a Bios that is gone: that is not known, and not "there is none".
        if error.path or service.system.body.get("Bios") is not None:
            raise
        return NoBios(service, error.message)


def plan_of(connection: Connection, found: BiosReading | NoBios, wanted: Mapping[str, Wanted]) -> BiosPlan:
    """The plan over a BIOS that was read.

    Raises:
        BmcUnreachable: No answer to what keeps it from taking changes.
    """
    if isinstance(found, NoBios):
        plan_ = plan_knobs(machine_of(found.service), nothing_known(), wanted)
    else:
        plan_ = plan_knobs(found.machine, found.view, wanted, logical_cpus=found.logical_cpus)
        if any(knob.status == "change" for knob in plan_.knobs):
            writes = bool(plan_.to_write(1) or plan_.to_write(2))
            plan_ = replace(plan_, blocked_by=blocks(connection, found.service, writes=writes))
    return replace(
        plan_,
        simulated=is_simulated(found.service),
        tls=connection.trust,
        notes=(*notes_of(found), *_staged_by_others(found, plan_)),
    )


def is_simulated(service: Service) -> bool:
    """Whether the BMC says that it is nodeprep's simulator."""
    mark: Any = service.system.body
    for key in ("Oem", "Nodeprep", "Simulated"):
        mark = mark.get(key) if isinstance(mark, Mapping) else None
    return mark is True


def notes_of(found: BiosReading | NoBios) -> tuple[str, ...]:
    """What a reader of a document must know of how it came about."""
    if isinstance(found, NoBios):
        return (found.why,)
    notes: list[str] = []
    registry = found.registry
    if registry.absent:
        notes.append(f"no attribute registry at {', '.join(registry.looked_for)}")
    if registry.faults:
        shown = "; ".join(registry.faults[:_MOST_NAMED])
        notes.append(f"{len(registry.faults)} faults in the registry {registry.uri}: {shown}")
    return tuple(notes)


def nothing_known() -> BiosView:
    """The attributes of a machine without a BIOS over Redfish."""
    return BiosView(registry=no_registry({}), current={})


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """A BMC that answers with what cannot be read: nothing is known, and nothing failed to be applied.

    Raises:
        Inconclusive: In place of RedfishError.
    """
    try:
        yield
    except RedfishError as error:
        raise Inconclusive(error.message, hint=error.hint) from error


def _staged_by_others(found: BiosReading | NoBios, plan_: BiosPlan) -> tuple[str, ...]:
    """Values that come into effect with the same reset, and are not of this plan."""
    if isinstance(found, NoBios):
        return ()
    ours = {setting.name for knob in plan_.knobs for setting in knob.attributes}
    others = [f"{name}={value}" for name, value in found.settings.pending.items() if name not in ours]
    if not others:
        return ()
    shown = ", ".join(others[:_MOST_NAMED])
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return (f"staged by others, in effect with the next reset: {shown}{more}",)
