"""`nodeprep bios sensors`: what a BMC measures of its machine."""

from __future__ import annotations

from rich.markup import escape

from nodeprep.bmc import measure
from nodeprep.cli import _command
from nodeprep.cli._bmc import Access, of_a_bmc
from nodeprep.cli._output import Output
from nodeprep.cli._sensors import UNITS
from nodeprep.errors import ExitCode
from nodeprep.model.bmc import BmcSensor, BmcSensors


@of_a_bmc
def sensors(access: Access, out: Output) -> ExitCode:
    """Show temperatures, supplies, fans and links as the BMC tells them. Exit 21 when part was unreadable."""
    target = access.target()
    with _command.interrupts():
        found = measure(target)
    out.document(found)
    _show(found, out)
    return ExitCode.INCONCLUSIVE if _is_partial(found) else ExitCode.OK


def _is_partial(found: BmcSensors) -> bool:
    return not found.sensors or bool(found.notes) or bool(_unreadable(found))


def _unreadable(found: BmcSensors) -> list[BmcSensor]:
    return [one for one in found.sensors if one.state == "unreadable"]


def _show(found: BmcSensors, out: Output) -> None:
    table = _command.table(("at", "sensor", "reads", "limit", "health"))
    for one in sorted(found.sensors, key=lambda sensor: sensor.place):
        limit = "" if one.upper_critical is None else f"{one.upper_critical:g}"
        table.add_row(one.place, escape(one.name), escape(_reading(one)), limit, escape(one.health))
    out.show(table)
    for link in found.links:
        now = f"generation {link.generation or '?'} x{link.lanes or '?'}"
        most = f"generation {link.max_generation or '?'} x{link.max_lanes or '?'}"
        out.show(
            f"link of {escape(link.name or link.device)}: {now} of {most} (the BMC's word; see the host)"
        )
    lost = _unreadable(found)
    if lost:
        names = escape(", ".join(one.name for one in lost))
        out.show(f"unreadable: {len(lost)} of {len(found.sensors)} sensors: {names}")
    for note in found.notes:
        out.show(f"note: {escape(note)}")


def _reading(sensor: BmcSensor) -> str:
    if sensor.value is None:
        return f"{sensor.state.replace('_', ' ')}: {sensor.detail}"
    return f"{sensor.value:g} {UNITS[sensor.kind]}"
