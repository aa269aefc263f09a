"""How one GPU's bits compare with what its site holds to be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nodeprep.model.golden import Bits, answers, bits_of, difference
from nodeprep.model.probe import GpuRun, ProbeResult
from nodeprep.model.sighting import SiteRecords, build_of, comparable, digests_of

Outcome = Literal["same", "other", "disputed", "nobody", "unreadable"]

_HINT = (
    "hint: make sightings.jsonl of the home folder readable, or take its damaged lines out; "
    "`nodeprep golden learn` vouches again for what was lost"
)


@dataclass(frozen=True, slots=True)
class Truth:
    """The comparison.

    Attributes:
        outcome: "same" as bits that count; "other" than bits that count; "disputed": there are two
            answers and none counts; "nobody": no other node has been seen; "unreadable": what may have
            been vouched for is lost, so nobody knows whether these bits are the right ones.
        words: The rest of a sentence about it.
    """

    outcome: Outcome
    words: str


def compare(records: SiteRecords, probe: ProbeResult, run: GpuRun) -> Truth:
    """One GPU against the site.

    Raises:
        Unreadable: The GPU has no digests.
    """
    if probe.simulated:
        return Truth("nobody", "the bits of a simulated GPU are its host's CPU's, and none are kept")
    if records.trouble:
        return Truth("unreadable", f"what this site remembers cannot be read: {records.trouble} ({_HINT})")
    digests = run.digests.require(f"the block digests of GPU {run.pci_address}")
    mine = bits_of(digests_of(probe, digests))
    known = answers(comparable(records, probe, run)).and_of(records.node, mine)
    if known.vouched is not None:
        golden = bits_of(known.vouched.digests)
        return _against(mine, golden, probe, f"the digests vouched for on {known.vouched.time}")
    if known.leading is not None:
        others = len(known.nodes[known.leading] - {records.node})
        return _against(mine, known.leading, probe, f"the same GPU model of {others} other nodes")
    if known.standing == "disputed":
        other = next(bits for bits in known.nodes if bits != mine)
        who = ", ".join(sorted(known.nodes[other]))
        where = difference(mine, other, probe.workload.depth)
        return Truth("disputed", f"other bits were given by {who} ({where}), and neither answer leads")
    what = f"{run.name}, {build_of(probe) or 'a build that is not named'} and workload {probe.workload.name}"
    return _undecided(records, what)


def _undecided(records: SiteRecords, what: str) -> Truth:
    """No line that can be read says anything of this GPU model, build and workload."""
    if records.damaged:
        lost = f"{records.damaged} damaged lines, which may have held golden digests of {what} ({_HINT})"
        return Truth("unreadable", f"this site's memory has {lost}")
    return Truth("nobody", f"no other node of this site has been seen with {what}")


def _against(mine: Bits, golden: Bits, probe: ProbeResult, source: str) -> Truth:
    if mine == golden:
        return Truth("same", f"the same as {source}")
    where = difference(mine, golden, probe.workload.depth)
    return Truth("other", f"other bits than {source}, {where}, in every iteration")
