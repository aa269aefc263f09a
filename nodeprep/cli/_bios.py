"""BIOS settings of a node in words, for several commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nodeprep.model.bios import BiosApplication, BiosFacts, BiosSetting


def attribute_lines(settings: Iterable[BiosSetting]) -> Iterator[str]:
    """Each attribute: now, staged, and as it is to be."""
    for one in settings:
        scope = "" if one.scope == "global" else f" [{one.scope}]"
        staged = "" if one.pending is None else f" (staged: {one.pending})"
        later = f", after the reset of what is above (phase {one.phase})" if one.phase > 1 else ""
        to = f" -> {one.value}{later}" if one.current != one.value else ""
        yield f"{one.name}{scope}: {one.current}{staged}{to}"


def fact_lines(bios: BiosFacts) -> Iterator[str]:
    """Whose BIOS it is, and what its knobs are set to."""
    who = bios.bmc
    mark = " (simulated)" if bios.simulated else ""
    yield (
        f"BMC{mark}: {who.vendor} {who.model}, firmware {who.bmc_firmware or '?'}, BIOS {who.bios or '?'}, "
        f"{bios.tls or 'no TLS'}"
    )
    found = [f"{one.knob} {one.value or 'other'}" for one in bios.knobs if one.found]
    missing = [one.knob for one in bios.knobs if not one.found]
    yield f"BIOS: {', '.join(found) or 'none of the knobs'}"
    if missing:
        yield f"  not in this BIOS: {', '.join(missing)}"
    for reason in bios.blocked_by:
        yield f"  takes no change: {reason}"
    for note in bios.notes:
        yield f"  note: {note}"


def done_lines(done: Iterable[BiosApplication]) -> Iterator[str]:
    """What was done to a BIOS, step by step."""
    for one in done:
        verb = "taken back" if one.undone else one.state
        resets = f", {one.resets} reset(s)" if one.resets else ""
        yield f"BIOS {verb}{resets}" + (f", restore point {one.restore_file}" if one.restore_file else "")
        for outcome in one.outcomes:
            detail = f": {outcome.detail}" if outcome.detail else ""
            yield f"  {outcome.name}: {outcome.before} -> {outcome.wanted}, {outcome.result}{detail}"
