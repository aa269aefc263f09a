"""GPUs that copy at the same time each get their share of what they have to share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._peers import of_peers
from nodeprep.model.probe_peers import CopyRound, Peers
from nodeprep.model.reading import Reading, Unreadable
from nodeprep.model.result import CheckResult

# Of the lone rate, where GPUs share no port, and of the fair share of a port, where they do. Source:
# nodeprep's own. Measured on two H200 of one host, 2026-11-30: 52.0 of 55.3 GB/s (0.94). What it finds is a
# path that collapses when others are busy, not the wiring, which the topology shows.
LEAST_OF_LONE = 0.5
LEAST_OF_SHARE = 0.8
SOURCE = "nodeprep: half of the lone rate, or 0.8 of a fair share of the port (see the page)"


@dataclass(frozen=True, slots=True)
class _Found:
    """One GPU in one round and direction."""

    rate: float
    lone: float
    least: float
    words: str


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU, over all groups it copied in and both directions; the worst is shown."""
    return of_peers(CHECK, context, _each)


def _each(found: Peers) -> Iterator[CheckResult]:
    for address in found.gpus:
        yield CHECK.on(address, "probe#/peers/value/rounds", partial(_judge, found), address)


def _judge(found: Peers, address: str) -> CheckResult:
    found.topology.require("which GPUs share a port")
    alone = next((each for each in found.rounds if each.kind == "alone" and each.gpus == (address,)), None)
    together = [each for each in found.rounds if each.kind != "alone" and address in each.gpus]
    if alone is None or not any(each.kind == "all" for each in together):
        raise Unreadable(f"copies of GPU {address} were not measured both alone and beside the others")
    shown = min(
        (entry for each in together for entry in _entries(found, each, alone, address)),
        key=lambda entry: entry.rate / entry.least if entry.least > 0 else -1.0,
    )
    # Written so that a rate that is not a number does not pass either.
    good = shown.lone > 0 and shown.rate >= shown.least
    return CHECK.result(
        "PASS" if good else "FAIL",
        address,
        f"copies {shown.words} reached {shown.rate:.1f} of {shown.lone:.1f} GB/s alone",
        measured=round(shown.rate, 2),
        limit=round(shown.least, 2),
        unit="GB/s",
        source=SOURCE,
    )


def _entries(found: Peers, each: CopyRound, alone: CopyRound, address: str) -> Iterator[_Found]:
    sharing = _sharing(found, each, address)
    place = each.gpus.index(address)
    ways = (
        (f"host to GPU {address}", alone.h2d, each.h2d),
        (f"GPU {address} to host", alone.d2h, each.d2h),
    )
    for way, lone_rates, rates in ways:
        lone = _rate(lone_rates, 0, f"{way} alone")
        words = f"{way} beside {_beside(each)}"
        least = lone * min(LEAST_OF_LONE, LEAST_OF_SHARE / sharing)
        yield _Found(_rate(rates, place, words), lone, least, words)


def _rate(rates: tuple[Reading[float], ...], place: int, words: str) -> float:
    if place >= len(rates):
        raise Unreadable(f"copies {words} were not measured")
    return rates[place].require(f"the rate of copies {words}")


def _sharing(found: Peers, each: CopyRound, address: str) -> int:
    """How many of a round's GPUs copy through one port that this one is behind, itself included."""
    ports = [
        one
        for one in found.rounds
        if address in one.gpus and (one.kind == "port" or one.at) and one.kind != "numa"
    ]
    return max([1, *(len(set(port.gpus) & set(each.gpus)) for port in ports)])


def _beside(each: CopyRound) -> str:
    others = len(each.gpus) - 1
    what = {
        "port": f"{others} behind the same port {each.at}",
        "numa": f"{others} of the same NUMA node {each.at}",
        "all": f"all {others} others",
    }
    return what[each.kind]


CHECK = Check(
    id="pcie_contention",
    title="copies of all GPUs at once get their share",
    phase="load",
    evaluate=evaluate,
)
