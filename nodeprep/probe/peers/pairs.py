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
    one_way: Dict[Tuple[int, int], Dict[str, Any]] = {}
    both: Dict[Tuple[int, int], Dict[str, Any]] = {}
    for source in crew.ranks:
        for target in crew.ranks:
            if source.number != target.number:
                one_way[source.number, target.number] = _copy(crew, source, target, budget, both_ways=False)
            if source.number < target.number:
                both[source.number, target.number] = _copy(crew, source, target, budget, both_ways=True)
    return [
        {
            "source": crew.ranks[source].address,
            "target": crew.ranks[target].address,
            "access": _access(about[source], crew.ranks[target].address),
            "nvlinks": links(crew.ranks[source].address, crew.ranks[target].address),
            "gbps": _rate(alone),
            "both_ways_gbps": _rate(both[min(source, target), max(source, target)]),
            **_content(alone, both[min(source, target), max(source, target)], source < target),
        }
        for (source, target), alone in one_way.items()
    ]


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


def _content(alone: Dict[str, Any], both: Dict[str, Any], first: bool) -> Dict[str, int]:
    """Of the copies in one direction: by themselves, and as the first or the second of both ways."""
    counted = [answer["value"] for answer in (alone, both) if answer["state"] == "ok"]
    errors = alone["value"]["errors"] if alone["state"] == "ok" else 0
    if both["state"] == "ok":
        errors += both["value"]["errors" if first else "back_errors"]
    return {"content_checks": sum(value["checks"] for value in counted), "content_errors": errors}


def _rate(answer: Dict[str, Any]) -> Dict[str, Any]:
    return reading.ok(answer["value"]["gbps"]) if answer["state"] == "ok" else answer
