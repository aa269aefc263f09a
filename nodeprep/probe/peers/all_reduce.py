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

# What is said of ranks that did nothing wrong.
ENDED = "ended after the all-reduce did not end"


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


class AllReduce:
    """The all-reduces of one stage.

    Args:
        crew: All ranks.
        transport: "nccl", "gloo" or "ring".
        budget: Sizes and deadlines.
    """

    def __init__(self, crew: Crew, transport: str, budget: PeersBudget) -> None:
        self._crew, self._transport, self._budget = crew, transport, budget
        self._attendance = Attendance(crew.ranks)
        self._collective = 0
        self._environment: Dict[str, str] = {}

    def measure(self, meeting: str) -> Dict[str, Any]:
        """What all ranks reached, and the ranks that hung, if any: a part of nodeprep.probe/1."""
        gone = [rank for rank in self._crew.ranks if rank.gone]
        if gone:
            return self._failed("an all-reduce needs all ranks: %s" % _reasons(gone))
        command = {"do": "join", "transport": self._transport, "meeting": meeting}
        # A rank may only now import what it joins with.
        joined = self._ask(command, self._budget.open_s)
        refused = [answer["detail"] for answer in joined.values() if answer["state"] != "ok"]
        if refused:
            return self._failed("the ranks could not join: %s" % "; ".join(refused))
        self._environment = joined[0]["value"]["environment"]
        sizes: List[Dict[str, Any]] = []
        for size in self._budget.all_reduce_bytes:
            # The first is compared and, since it builds channels, not timed.
            first = self._reduce(size, 1)
            timed = first
            if first["state"] == "ok":
                timed = self._reduce(size, self._repeats(first["value"]["seconds"]))
            if timed["state"] != "ok":
                return self._no_end(str(timed["detail"]))
            seconds, wrong = timed["value"]["seconds"], first["value"]["wrong"]
            sizes.append(_size(size, len(self._crew.ranks), seconds, wrong))
        return self._document(reading.ok(sizes), [])

    def _ask(self, command: Dict[str, Any], deadline_s: float) -> Dict[int, Dict[str, Any]]:
        return self._crew.ask(
            {rank.number: command for rank in self._crew.ranks},
            deadline_s,
            self._attendance.heard,
            together=True,
        )

    def _repeats(self, seconds: float) -> int:
        """The same on every rank; the first all-reduce was slower than the others will be."""
        least, most = self._budget.repeats
        return max(least, min(most, math.ceil(self._budget.all_reduce_s / max(seconds, 1e-6))))

    def _reduce(self, size: int, repeats: int) -> Dict[str, Any]:
        """A reading of seconds and wrong elements over all ranks."""
        self._collective += 1
        command = {"do": "all_reduce", "size": size, "repeats": repeats, "verify": repeats == 1}
        answers = self._ask(command, self._budget.collective_s)
        bad = [answer["detail"] for answer in answers.values() if answer["state"] != "ok"]
        if bad:
            return reading.error("; ".join(bad))
        values = [answer["value"] for answer in answers.values()]
        seconds = max(value["seconds"] for value in values)
        return reading.ok({"seconds": seconds, "wrong": sum(value["wrong"] or 0 for value in values)})

    def _no_end(self, answered: str) -> Dict[str, Any]:
        """Names those that hang, and ends all: whoever waits for them cannot be called back."""
        crew, collective = self._crew, self._collective
        dead = [rank for rank in crew.ranks if rank.gone]
        absent = [rank for rank in crew.ranks if not self._attendance.left(rank, collective)]
        hung: List[Rank] = []
        why = answered
        if crew.stopped():
            why = "the run was stopped"
        elif dead:
            why = _reasons(dead)
        elif crew.silent and set(crew.silent).issuperset(absent):
            # With a failure among the answers, those that are silent only wait for the one that failed.
            hung = self._attendance.missing(collective) or self._attendance.inside(collective)
            why = self._attendance.words(collective, self._budget.collective_s)
        for rank in crew.present():
            rank.kill(ENDED)
        return self._failed("the all-reduce did not end: %s" % why, hung)

    def _failed(self, why: str, hung: Sequence[Rank] = ()) -> Dict[str, Any]:
        return self._document(reading.error(why), hung)

    def _document(self, sizes: Dict[str, Any], hung: Sequence[Rank]) -> Dict[str, Any]:
        return {
            "sizes": sizes,
            "hung": [{"rank": rank.number, "gpu": rank.address} for rank in hung],
            "transport": self._transport,
            "environment": self._environment,
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


def _reasons(ranks: Sequence[Rank]) -> str:
    return "; ".join("%s: %s" % (rank, rank.gone) for rank in ranks)


def _names(ranks: Sequence[Rank]) -> str:
    return ", ".join(str(rank) for rank in ranks)
