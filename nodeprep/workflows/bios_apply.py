"""Changing the BIOS of one machine and taking it back, with a restore point before the first change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from nodeprep.bmc.bios.wanted import Wanted
from nodeprep.bmc.redfish.bios import BiosSettings
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.bmc.redfish.post import power_of
from nodeprep.bmc.redfish.reading import BiosReading
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import DocumentError, Inconclusive, UsageError
from nodeprep.model.bios import BiosApplication, BiosPlan, BiosValue
from nodeprep.model.bios_restore import RestorePoint
from nodeprep.workflows.bios import Connect, NoBios, earlier_of, is_simulated, look, plan_of, readable
from nodeprep.workflows.bios_restore import (
    RestoreStore,
    read_restore_point,
    serial_of,
)
from nodeprep.workflows.bios_work import Asked, Notify, Work
from nodeprep.workflows.home import Home

_STAYS_OFF = "the host is off since an earlier run, which did not end: a run with a reset switches it on"


def apply(
    asked: Asked,
    wanted: Mapping[str, Wanted],
    home: Home,
    *,
    confirm: Callable[[BiosPlan], bool] = lambda _: True,
    notify: Notify = lambda _: None,
    connect: Connect = Connection,
    clock: Clock | None = None,
) -> BiosApplication:
    """Brings knobs into effect.

    Args:
        confirm: Asked once, before anything is written; False changes nothing.

    Raises:
        Inconclusive: The BIOS cannot be read; nothing was written.
        BmcUnreachable: No answer, or no login; nothing was written.
        UsageError: Another run is at work on this BMC.
        Interrupted: Broken off; the next run goes on from there.
    """
    with _reading(asked.target, connect) as (connection, found):
        earlier = earlier_of(home, asked.target, found)
        before = plan_of(connection, found, wanted, earlier)
        steps = [step for step in (_step(before, 1), _step(before, 2)) if step]
        if isinstance(found, NoBios):
            return _nothing_to_do(before)
        if not steps:
            store = RestoreStore(home, asked.target, serial_of(found.service))
            off = _left_off(earlier, found)
            if not off or not asked.reset or not confirm(before):
                notes = (_STAYS_OFF,) if off else _ended_now(store, found.settings)
                return _nothing_to_do(before, notes)
        elif before.blocked_by:
            return _blocked(before)
        elif not confirm(before):
            return BiosApplication(
                bmc=before.bmc, state="unchanged", before=before, after=before, outcomes=(),
                notes=("nothing was written, as asked",), simulated=before.simulated, tls=before.tls,
            )  # fmt: skip
        work = Work(asked, connection, found, home, notify=notify, clock=clock or Clock(), verb="bios_apply")
        with work.opened():
            done = work.apply(steps) if steps else work.switch_on()
            after = work.plan_again(wanted)
            document = work.document(before, after, done, steps, _knob_of(before))
            work.close(document)
        if steps or document.state == "failed":
            return document
        return replace(document, notes=(*document.notes, *_ended_now(store, work.settings)))


def rollback(
    asked: Asked,
    home: Home,
    *,
    restore: Path | None = None,
    confirm: Callable[[dict[str, object]], bool] = lambda _: True,
    notify: Notify = lambda _: None,
    connect: Connect = Connection,
    clock: Clock | None = None,
) -> BiosApplication:
    """Takes back what `apply` changed.

    Args:
        restore: The restore point; None for the last one of this BMC.
        confirm: Told the values that will be written.

    Raises:
        UsageError: There is no restore point, or it is of another machine.
        As `apply`.
    """
    with _reading(asked.target, connect) as (connection, found):
        if isinstance(found, NoBios):
            raise Inconclusive(found.why)
        store = RestoreStore(home, asked.target, serial_of(found.service))
        source, point = _restore_point(store, restore)
        store.check(point, found.machine, source)
        empty = BiosPlan(
            bmc=found.machine,
            registry=found.view.registry_state,
            knobs=(),
            needs_reset=False,
            simulated=is_simulated(found.service),
            tls=connection.trust,
        )
        work = Work(
            asked, connection, found, home, notify=notify, clock=clock or Clock(), verb="bios_rollback"
        )
        steps = work.steps_back(point)
        if steps and not confirm({name: value for step in steps for name, value in step.items()}):
            return BiosApplication(
                bmc=empty.bmc, state="unchanged", before=empty, after=None, outcomes=(), undone=True,
                notes=("nothing was written, as asked",), simulated=empty.simulated, tls=empty.tls,
            )  # fmt: skip
        with work.opened(point, source if restore is None else None):
            if restore is None:
                # Until it ends, the older values stay those that count.
                # The reset of a run that came to its end is over, and no later run waits for it.
                reset_at = 0.0 if point.finished else point.reset_at
                store.write(source, replace(point, finished=False, reset_at=reset_at))
            done = work.undo(point, steps)
            document = replace(
                work.document(empty, None, done, steps, {}), undone=True, restore_file=str(source)
            )
            work.close(document)
            if document.state in ("unchanged", "applied") and not done.left_off:
                store.end(source, datetime.now(UTC).isoformat(timespec="seconds"))
        return document


@contextmanager
def _reading(target: BmcTarget, connect: Connect) -> Iterator[tuple[Connection, BiosReading | NoBios]]:
    with readable(), connect(target) as connection:
        yield connection, look(connection)


def _step(plan_: BiosPlan, phase: int) -> dict[str, BiosValue]:
    """What must be in effect after a phase: what is to be written, and what is staged already."""
    return {
        one.name: one.value
        for knob in plan_.knobs
        if knob.status == "change"
        for one in knob.attributes
        if one.phase == phase and (one.current != one.value or one.pending is not None)
    }


def _knob_of(plan_: BiosPlan) -> dict[str, str]:
    return {one.name: knob.knob for knob in plan_.knobs for one in knob.attributes}


def _nothing_to_do(before: BiosPlan, notes: tuple[str, ...] = ()) -> BiosApplication:
    return BiosApplication(
        bmc=before.bmc,
        state="unchanged",
        before=before,
        after=before,
        outcomes=(),
        notes=(*before.notes, *notes),
        simulated=before.simulated,
        tls=before.tls,
    )


def _left_off(earlier: RestorePoint | None, found: BiosReading) -> bool:
    """Whether a run of this controller switched the host off, and came no further."""
    begun = earlier is not None and not earlier.finished and earlier.reset_at > 0
    return begun and power_of(found.service.system) == "Off"


def _ended_now(store: RestoreStore, settings: BiosSettings) -> tuple[str, ...]:
    """A run that was killed after its values took effect: nothing is left, and now it is finished."""
    with store.locked():
        last = store.last()
        if last is None or last[1].finished or not _in_effect(last[1], settings):
            return ()
        path, point = last
        store.write(path, replace(point, finished=True, after=dict(settings.current)))
    return (f"an earlier run did not see its end: it is in effect; restore point {path}",)


def _in_effect(point: RestorePoint, settings: BiosSettings) -> bool:
    return all(settings.current.get(name) == value for name, value in point.planned.items())


def _blocked(before: BiosPlan) -> BiosApplication:
    return BiosApplication(
        bmc=before.bmc,
        state="failed",
        before=before,
        after=None,
        outcomes=(),
        error="; ".join(before.blocked_by),
        hint="nothing was written",
        notes=before.notes,
        simulated=before.simulated,
        tls=before.tls,
    )


def _restore_point(store: RestoreStore, restore: Path | None) -> tuple[Path, RestorePoint]:
    if restore is not None:
        try:
            return restore, read_restore_point(restore)
        except FileNotFoundError as error:
            raise DocumentError(f"there is no {restore}") from error
    last = store.last()
    ended = store.taken_back() if last is None else None
    if ended is not None:
        raise UsageError(
            f"the last change of the BIOS behind {store.address} was taken back already, at {ended.at}: "
            f"{ended.restore_point}",
            hint="there is nothing left to take back; --restore FILE names an older restore point",
        )
    if last is None:
        raise UsageError(
            f"nodeprep has no restore point of the BMC {store.address}",
            hint="--restore FILE names one; without one it is not known what could be taken back",
        )
    return last
