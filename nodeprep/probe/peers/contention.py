"""Host copies of one GPU alone, of those that share a port or a NUMA node, and of all at once."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Sequence

from ...node import reading
from .budget import PeersBudget
from .device import D2H, H2D
from .groups import Group
from .ranks import Crew

# From the sending of a command to its beginning: every rank has read it by then.
_LEAD_S = 0.02


def measure(crew: Crew, rounds: Sequence[Group], budget: PeersBudget) -> List[Dict[str, Any]]:
    """One entry a round: the group, and what each of its GPUs reached in each direction."""
    return [
        {
            "kind": group.kind,
            "at": group.at,
            "gpus": list(group.gpus),
            "h2d": _copies(crew, group, H2D, budget),
            "d2h": _copies(crew, group, D2H, budget),
        }
        for group in rounds
    ]


def _copies(crew: Crew, group: Group, direction: str, budget: PeersBudget) -> List[Dict[str, Any]]:
    """A reading of each GPU's GB/s, in the order of the group."""
    numbers = [rank.number for rank in crew.ranks if rank.address in group.gpus]
    gone = [str(rank) for rank in crew.ranks if rank.number in numbers and rank.gone]
    if gone:
        # A round without one of its members would pass for a better one.
        return [reading.error("%s could not take part" % ", ".join(gone))] * len(numbers)
    command = {
        "do": "host_copies",
        "direction": direction,
        "seconds": budget.host_copy_s,
        "at": time.monotonic() + _LEAD_S,
        "beside": list(group.gpus),
    }
    answers = crew.ask(dict.fromkeys(numbers, command), budget.host_copy_s + budget.answer_s)
    crew.give_up("copies between host and GPU")
    by_address = {crew.ranks[number].address: _rate(answer) for number, answer in answers.items()}
    return [by_address[address] for address in group.gpus]


def _rate(answer: Dict[str, Any]) -> Dict[str, Any]:
    """A rate that changed data is none."""
    if answer["state"] != "ok":
        return answer
    value = answer["value"]
    if value["errors"]:
        return reading.error(
            "%d of %d compared copies came back changed" % (value["errors"], value["checks"])
        )
    return reading.ok(value["gbps"])
