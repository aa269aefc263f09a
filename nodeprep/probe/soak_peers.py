"""What the GPUs did together in the legs of a soak, put together: the worst of each counts."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ..node import reading

Document = Dict[str, Any]


def merge(readings: Sequence[Document]) -> Document:
    """A leg that could not measure it, or that lost a GPU, is not made good by the others.

    Copies that arrived changed in one leg of a hundred are what a soak is there to find.
    """
    unread = next((one for one in readings if one["state"] == "error"), None)
    if unread or readings[-1]["state"] != "ok":
        return unread or readings[-1]
    legs: List[Document] = [one["value"] for one in readings if one["state"] == "ok"]
    fewest = min(legs, key=lambda leg: len(leg["gpus"]))
    alike = [leg for leg in legs if leg["gpus"] == fewest["gpus"]]
    last = alike[-1]
    hung = next((leg["all_reduce"] for leg in legs if leg["all_reduce"]["hung"]), None)
    return reading.ok(
        {
            **last,
            "topology": _worst([leg["topology"] for leg in legs]),
            "rounds": [_round(_same(legs, "rounds", one, ("kind", "at", "gpus"))) for one in last["rounds"]],
            "pairs": [_pair(_same(legs, "pairs", one, ("source", "target"))) for one in last["pairs"]],
            "nvlinks": [_links(_same(legs, "nvlinks", one, ("gpu",))) for one in last["nvlinks"]],
            "all_reduce": hung or _all_reduce([leg["all_reduce"] for leg in legs]),
        }
    )


def _same(legs: Sequence[Document], part: str, like: Document, keys: Sequence[str]) -> List[Document]:
    return [one for leg in legs for one in leg[part] if all(one[key] == like[key] for key in keys)]


def _worst(readings: Sequence[Document]) -> Document:
    """The least value; one that is missing in any leg is missing."""
    for state in ("error", "not_supported"):
        for one in readings:
            if one["state"] == state:
                return one
    return reading.ok(min(one["value"] for one in readings))


def _round(found: List[Document]) -> Document:
    places = range(len(found[-1]["gpus"]))
    ways = {way: [_worst([one[way][place] for one in found]) for place in places] for way in ("h2d", "d2h")}
    return {**found[-1], **ways}


def _pair(found: List[Document]) -> Document:
    return {
        **found[-1],
        **{
            key: _worst([one[key] for one in found])
            for key in ("access", "nvlinks", "gbps", "both_ways_gbps")
        },
        "content_errors": sum(one["content_errors"] for one in found),
        # A leg that compared nothing leaves a hole that the others do not fill.
        "content_checks": sum(one["content_checks"] for one in found)
        if all(one["content_checks"] for one in found)
        else 0,
    }


def _links(found: List[Document]) -> Document:
    """From before the first leg to after the last: what was counted in between counts."""
    broken = next((one for one in found if "error" in (one["before"]["state"], one["after"]["state"])), None)
    lost = (
        next((one for one in found if _up(one["after"]) < _up(one["before"])), None) if not broken else None
    )
    return broken or lost or {**found[-1], "before": found[0]["before"]}


def _up(state: Document) -> int:
    if state["state"] != "ok" or state["value"]["active"]["state"] != "ok":
        return 0
    return int(state["value"]["active"]["value"])


def _all_reduce(found: List[Document]) -> Document:
    bad = next((one for one in found if one["sizes"]["state"] != "ok"), None)
    if bad:
        return bad
    sizes = []
    for place in range(len(found[-1]["sizes"]["value"])):
        same = [one["sizes"]["value"][place] for one in found]
        slowest = min(same, key=lambda one: float(one["bus_gbps"]))
        sizes.append({**slowest, "wrong_elements": sum(one["wrong_elements"] for one in same)})
    return {**found[-1], "sizes": reading.ok(sizes)}
