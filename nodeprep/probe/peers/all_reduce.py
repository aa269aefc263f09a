"""All-reduce over all GPUs, and the name of whoever does not come to it.

Each rank tells when it enters and when it leaves. A collective in which one rank is missing blocks
all the others for ever, and the libraries' own time-outs name the waiting ones as often as the missing.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Sequence

from ...node import reading
from .budget import PeersBudget
from .ranks import Crew, Message, Rank


class Attendance:
    """Who has entered and left which collective."""

    def __init__(self, ranks: Sequence[Rank]) -> None:
        self._ranks = tuple(ranks)
        self._seen: Dict[int, Dict[str, int]] = {rank.number: {"enter": 0, "leave": 0} for rank in ranks}

    def heard(self, rank: Rank, message: Message) -> None:
        """Takes note of a message."""
        self._seen[rank.number][message["kind"]] = message["collective"]

    def missing(self, collective: int) -> List[Rank]:
        """Those that have not entered it."""
        return [rank for rank in self._ranks if self._seen[rank.number]["enter"] < collective]

    def inside(self, collective: int) -> List[Rank]:
        """Those that have entered it and not left."""
        return [
            rank
            for rank in self._ranks
            if self._seen[rank.number]["enter"] >= collective > self._seen[rank.number]["leave"]
        ]

    def left(self, rank: Rank, collective: int) -> bool:
        """True when it has left it."""
        return self._seen[rank.number]["leave"] >= collective

    def words(self, collective: int, waited_s: float) -> str:
        """What is to be said of a collective that did not end."""
        missing, inside = self.missing(collective), self.inside(collective)
        if not missing:
            return "all ranks entered, and after %.0f s %s had not left" % (waited_s, _names(inside))
        return "%s did not arrive within %.0f s, %d of %d ranks waited for it" % (
            _names(missing),
            waited_s,
            len(inside),
            len(self._ranks),
        )


def measure(crew: Crew, transport: str, meeting: str, budget: PeersBudget) -> Dict[str, Any]:
    """A reading of what all ranks reached, and the ranks that hung, if any."""
    gone = [rank for rank in crew.ranks if rank.gone]
    if gone:
        why = "; ".join("%s: %s" % (rank, rank.gone) for rank in gone)
        return _failed("an all-reduce needs all ranks: %s" % why, [])
    join = {"do": "join", "transport": transport, "meeting": meeting}
    joined = crew.ask({rank.number: join for rank in crew.ranks}, budget.collective_s, together=True)
    refused = [answer["detail"] for answer in joined.values() if answer["state"] != "ok"]
    if refused:
        return _failed("the ranks could not join: %s" % "; ".join(refused), [])
    sizes: List[Dict[str, Any]] = []
    attendance = Attendance(crew.ranks)
    collective = 0
    for size in budget.all_reduce_bytes:
        # The first is compared and, since it builds channels, not timed.
        first = _collective(crew, attendance, size, 1, budget)
        collective += 1
        if first["state"] == "ok" and not crew.stopped():
            repeats = _repeats(first["value"]["seconds"], budget)
            timed = _collective(crew, attendance, size, repeats, budget)
            collective += 1
        else:
            timed = first
        if timed["state"] != "ok":
            return _no_end(crew, attendance, collective, timed, budget)
        sizes.append(_size(size, len(crew.ranks), timed["value"]["seconds"], first["value"]["wrong"]))
    environment = joined[0]["value"]["environment"]
    return {
        "sizes": reading.ok(sizes),
        "hung": [],
        "transport": transport,
        "environment": environment,
    }


def _repeats(seconds: float, budget: PeersBudget) -> int:
    """The same on every rank; the first all-reduce was slower than the others will be."""
    least, most = budget.repeats
    return max(least, min(most, math.ceil(budget.all_reduce_s / max(seconds, 1e-6))))


def _collective(
    crew: Crew, attendance: Attendance, size: int, repeats: int, budget: PeersBudget
) -> Dict[str, Any]:
    """A reading of seconds and wrong elements over all ranks."""
    command = {"do": "all_reduce", "size": size, "repeats": repeats, "verify": repeats == 1}
    answers = crew.ask(
        {rank.number: command for rank in crew.ranks}, budget.collective_s, attendance.heard, together=True
    )
    bad = [answer["detail"] for answer in answers.values() if answer["state"] != "ok"]
    if bad:
        return reading.error("; ".join(bad))
    values = [answer["value"] for answer in answers.values()]
    return reading.ok(
        {
            "seconds": max(value["seconds"] for value in values),
            "wrong": sum(value["wrong"] or 0 for value in values),
        }
    )


def _no_end(
    crew: Crew, attendance: Attendance, collective: int, failed: Dict[str, Any], budget: PeersBudget
) -> Dict[str, Any]:
    """Names those that hang, and ends all: whoever waits for them cannot be called back."""
    dead = [rank for rank in crew.ranks if rank.gone]
    silent = set(crew.silent)
    # With a failure among the answers, those that are silent wait for the one that failed.
    absent = [rank for rank in crew.ranks if not attendance.left(rank, collective)]
    only_silent = bool(silent) and silent.issuperset(absent)
    hung: List[Rank] = []
    if crew.stopped():
        why = "the run was stopped"
    elif dead:
        why = "; ".join("%s: %s" % (rank, rank.gone) for rank in dead)
    elif only_silent:
        hung = attendance.missing(collective) or attendance.inside(collective)
        why = attendance.words(collective, budget.collective_s)
    else:
        why = str(failed["detail"])
    for rank in crew.present():
        rank.kill("ended after the all-reduce did not end")
    return _failed("the all-reduce did not end: %s" % why, hung)


def _failed(why: str, hung: Sequence[Rank]) -> Dict[str, Any]:
    return {
        "sizes": reading.error(why),
        "hung": [{"rank": rank.number, "gpu": rank.address} for rank in hung],
        "transport": "",
        "environment": {},
    }


def _size(size: int, world: int, seconds: float, wrong: int) -> Dict[str, Any]:
    """Algorithm and bus bandwidth as nccl-tests define them (doc/PERFORMANCE.md there)."""
    algorithm = size / seconds / 1e9
    return {
        "bytes": size,
        "seconds": seconds,
        "algorithm_gbps": algorithm,
        "bus_gbps": algorithm * 2 * (world - 1) / world,
        "wrong_elements": wrong,
    }


def _names(ranks: Sequence[Rank]) -> str:
    return ", ".join(str(rank) for rank in ranks)
