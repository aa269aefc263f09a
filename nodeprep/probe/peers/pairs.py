"""Copies from each GPU to each other one, one way and both ways, with what arrived compared over there."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from ...node import reading
from .budget import PeersBudget
from .ranks import Crew, Rank

Answers = Dict[int, Dict[str, Any]]


def measure(
    crew: Crew, about: Answers, budget: PeersBudget, links: Callable[[str, str], Dict[str, Any]]
) -> List[Dict[str, Any]]:
    """One entry an ordered pair; both ways at once are measured once and stand in both.

    Args:
        crew: The ranks; one pair at a time copies.
        about: What each rank said of whom it can reach.
        budget: How long.
        links: Reading of how many NVLinks lead from one address to another.
    """
    entries: Dict[Tuple[int, int], Dict[str, Any]] = {}
    for source in crew.ranks:
        for target in crew.ranks:
            if source.number == target.number:
                continue
            one_way = _copy(crew, source, target, budget, both_ways=False)
            back = entries.get((target.number, source.number))
            both = back["both"] if back else _copy(crew, source, target, budget, both_ways=True)
            entries[source.number, target.number] = {
                "one_way": one_way,
                "both": both,
                "source": source.address,
                "target": target.address,
                "access": _access(about[source.number], target.address),
                "nvlinks": links(source.address, target.address),
            }
    return [_entry(entry) for entry in entries.values()]


def _copy(crew: Crew, source: Rank, target: Rank, budget: PeersBudget, *, both_ways: bool) -> Dict[str, Any]:
    command = {"do": "pair", "to": target.number, "seconds": budget.pair_s, "both_ways": both_ways}
    answers = crew.ask({source.number: command}, budget.pair_s + budget.answer_s)
    crew.give_up("copies to GPU %s" % target.address)
    return answers[source.number]


def _access(about: Dict[str, Any], address: str) -> Dict[str, Any]:
    if about["state"] != "ok":
        return about
    access: Dict[str, Any] = about["value"]["access"][address]
    return access


def _entry(entry: Dict[str, Any]) -> Dict[str, Any]:
    """As nodeprep.probe/1 has it. Contents are those of the copies in this direction and of both ways."""
    one_way, both = entry.pop("one_way"), entry.pop("both")
    counted = [answer["value"] for answer in (one_way, both) if answer["state"] == "ok"]
    return {
        **entry,
        "gbps": _rate(one_way),
        "both_ways_gbps": _rate(both),
        "content_checks": sum(value["checks"] for value in counted),
        "content_errors": sum(value["errors"] for value in counted),
    }


def _rate(answer: Dict[str, Any]) -> Dict[str, Any]:
    return reading.ok(answer["value"]["gbps"]) if answer["state"] == "ok" else answer
