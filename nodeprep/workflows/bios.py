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
from nodeprep.bmc.redfish.jobs import Job
from nodeprep.bmc.redfish.reading import BiosReading, machine_of, read_all
from nodeprep.bmc.redfish.registry import no_registry
from nodeprep.bmc.redfish.service import Service, read_service
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import Inconclusive
from nodeprep.model.bios import BiosPlan, BiosState
from nodeprep.model.bios_restore import RestorePoint
from nodeprep.workflows.bios_own import is_own, own_staged
from nodeprep.workflows.bios_restore import RestoreStore, serial_of
from nodeprep.workflows.home import Home

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


def plan(
    target: BmcTarget, wanted: Mapping[str, Wanted], connect: Connect = Connection, home: Home | None = None
) -> BiosPlan:
    """What would change in a BIOS.

    Args:
        home: Of this controller, whose own unfinished run is then told from others.

    Raises:
        As `show`.
    """
    with readable(), connect(target) as connection:
        found = look(connection)
        return plan_of(connection, found, wanted, earlier_of(home, target, found))


def earlier_of(home: Home | None, target: BmcTarget, found: BiosReading | NoBios) -> RestorePoint | None:
    """The restore point of this controller's last run on a machine, as long as it is not taken back."""
    if home is None or isinstance(found, NoBios):
        return None
    try:
        last = RestoreStore(home, target, serial_of(found.service)).last()
    except OSError:
        # A plan needs no folder; a change does, and says what is wrong with it.
        return None
    return last[1] if last is not None else None


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


def plan_of(
    connection: Connection,
    found: BiosReading | NoBios,
    wanted: Mapping[str, Wanted],
    earlier: RestorePoint | None = None,
) -> BiosPlan:
    """The plan over a BIOS that was read.

    Args:
        earlier: Of the last run of this controller.

    Raises:
        BmcUnreachable: No answer to what keeps it from taking changes.
    """
    if isinstance(found, NoBios):
        plan_ = plan_knobs(machine_of(found.service), nothing_known(), wanted)
    else:
        plan_ = plan_knobs(found.machine, found.view, wanted, logical_cpus=found.logical_cpus)
        if any(knob.status == "change" for knob in plan_.knobs):
            writes = bool(plan_.to_write(1) or plan_.to_write(2))
            settings = found.settings

            def own(job: Job) -> bool:
                return earlier is not None and is_own(job, earlier, settings)

            plan_ = replace(plan_, blocked_by=blocks(connection, found.service, writes=writes, own=own))
    return replace(
        plan_,
        simulated=is_simulated(found.service),
        tls=connection.trust,
        notes=(*notes_of(found), *_staged_besides(found, plan_, earlier)),
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


def _staged_besides(
    found: BiosReading | NoBios, plan_: BiosPlan, earlier: RestorePoint | None
) -> tuple[str, ...]:
    """Values that come into effect with the same reset, and are not of this plan."""
    if isinstance(found, NoBios):
        return ()
    ours = {setting.name for knob in plan_.knobs for setting in knob.attributes}
    own = own_staged(earlier, found.settings)
    besides = {name: value for name, value in found.settings.pending.items() if name not in ours}
    of_own = [f"{name}={value}" for name, value in besides.items() if name in own]
    of_others = [f"{name}={value}" for name, value in besides.items() if name not in own]
    notes = []
    if of_own:
        notes.append(
            f"staged by an earlier run of nodeprep, in effect with the next reset: {_few(of_own)} "
            "(`nodeprep bios rollback --bmc URL` takes it back)"
        )
    if of_others:
        notes.append(f"staged by others, in effect with the next reset: {_few(of_others)}")
    return tuple(notes)


def _few(texts: list[str]) -> str:
    more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return f"{', '.join(texts[:_MOST_NAMED])}{more}"
