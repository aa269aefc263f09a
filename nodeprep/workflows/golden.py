"""What a site holds to be the right bits: looking at it, vouching for it, forgetting it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from nodeprep.errors import UsageError
from nodeprep.fleet.disk import explained
from nodeprep.model.codec import decode, digest
from nodeprep.model.golden import answers, bits_of
from nodeprep.model.outputs import GoldenAnswer, GoldenEntry, GoldenList
from nodeprep.model.probe import ProbeResult
from nodeprep.model.sighting import Sighting, sightings_of
from nodeprep.workflows.home import Home
from nodeprep.workflows.session import now_text
from nodeprep.workflows.site_memory import SiteMemory


def listed(home: Home) -> GoldenList:
    """Every GPU model, build and workload that was seen, and how far its bits can be trusted."""
    memory = SiteMemory(home)
    records = memory.recall()
    entries = tuple(_entry(key, found) for key, found in sorted(_grouped(records.sightings).items()) if found)
    return GoldenList(
        file=str(memory.path), entries=entries, damaged_lines=records.damaged, trouble=records.trouble
    )


def vouch(home: Home, file: Path, *, why: str) -> tuple[Sighting, ...]:
    """An operator answers for the bits of a probe result; one line for each GPU model in it.

    Raises:
        UsageError: The result proves nothing, or its GPUs do not agree.
        DocumentError: It is no probe result.
        DiskError: The memory cannot be written.
    """
    _require_reason(why)
    with explained(file):
        data = file.read_bytes()
    probe = decode(data, ProbeResult, source=str(file))
    by_model: dict[str, list[Sighting]] = {}
    for one in sightings_of(probe, node="", host="", time=now_text()):
        by_model.setdefault(one.model, []).append(one)
    if not by_model:
        raise UsageError(
            f"{file}: nothing in it can be vouched for",
            hint="it must be a completed run on real GPUs, without an injected fault or a mismatch",
        )
    vouched = []
    for model, found in by_model.items():
        if len({bits_of(one.digests) for one in found}) > 1:
            raise UsageError(
                f"{file}: its GPUs of the model {model} do not agree", hint="find out which is wrong"
            )
        first = found[0]
        vouched.append(
            Sighting(
                kind="vouched",
                time=first.time,
                model=model,
                build=first.build,
                workload=first.workload,
                workload_digest=first.workload_digest,
                run=first.run,
                depth=first.depth,
                digests=first.digests,
                why=why,
            )
        )
    SiteMemory(home).remember(vouched)
    return tuple(vouched)


def forget(home: Home, key: str, *, why: str) -> Sighting:
    """Lines of one GPU model, build and workload no longer count; they stay in the file.

    Raises:
        UsageError: No such key.
        DiskError: The memory cannot be written.
    """
    _require_reason(why)
    groups = _grouped(SiteMemory(home).recall().sightings)
    chosen = [found for name, found in groups.items() if found and name.startswith(key)]
    if len(chosen) != 1 or not key:
        raise UsageError(
            f"{len(chosen) if key else 'no'} entries begin with {key!r}",
            hint="nodeprep golden show lists the keys",
        )
    last = chosen[0][-1]
    line = Sighting(
        kind="forgotten",
        time=now_text(),
        model=last.model,
        build=last.build,
        workload=last.workload,
        workload_digest=last.workload_digest,
        why=why,
    )
    SiteMemory(home).remember([line])
    return line


def key_of(sighting: Sighting) -> str:
    """A short name of a GPU model, build and workload, for people to type."""
    text = "\0".join((sighting.model, sighting.build, sighting.workload_digest))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _require_reason(why: str) -> None:
    if not why.strip():
        raise UsageError("--why is empty", hint="whoever reads this in a year must know what it rests on")


def _grouped(sightings: Iterable[Sighting]) -> dict[str, list[Sighting]]:
    """By key, what was not forgotten since."""
    groups: dict[str, list[Sighting]] = {}
    for one in sightings:
        group = groups.setdefault(key_of(one), [])
        if one.kind == "forgotten":
            group.clear()
        else:
            group.append(one)
    return groups


def _entry(key: str, found: list[Sighting]) -> GoldenEntry:
    known = answers(found)
    last = found[-1]
    return GoldenEntry(
        key=key,
        model=last.model,
        build=last.build,
        workload=last.workload,
        workload_digest=last.workload_digest,
        standing=known.standing,
        vouched_why=known.vouched.why if known.vouched else "",
        answers=tuple(
            GoldenAnswer(digest=digest(bits)[:12], nodes=tuple(sorted(who)))
            for bits, who in sorted(known.nodes.items(), key=lambda item: -len(item[1]))
        ),
        gpus=len({one.gpu for one in found if one.kind == "seen"}),
    )
