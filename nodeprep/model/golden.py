"""Which bits a site holds to be right: the rule of trust over its sightings (docs/adr/0064).

One node's word is nobody's proof. Bits count once GPUs of two nodes gave them and no other bits have as
many, or an operator vouched for them. A GPU's latest word counts, so that one that was repaired does
not argue with its past.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from nodeprep.model.sighting import Sighting

# Two nodes share no memory, no power supply and no installation of PyTorch.
NODES_TO_CONFIRM = 2

Bits = tuple[tuple[str, tuple[str, ...]], ...]
Standing = Literal["vouched", "confirmed", "first_seen", "disputed", "unknown"]


@dataclass(frozen=True, slots=True)
class Answers:
    """All that is known of the bits of one GPU model, build and workload.

    Attributes:
        vouched: The last vouching, None without one.
        nodes: Bits to the machines whose GPUs gave them last.
    """

    vouched: Sighting | None
    nodes: Mapping[Bits, frozenset[str]]

    @property
    def standing(self) -> Standing:
        """How far they can be trusted."""
        if self.vouched is not None:
            return "vouched"
        if self.leading is not None:
            return "confirmed"
        return "disputed" if len(self.nodes) > 1 else "first_seen" if self.nodes else "unknown"

    @property
    def leading(self) -> Bits | None:
        """The bits that enough nodes gave, and more than gave any others."""
        most = max((len(who) for who in self.nodes.values()), default=0)
        leaders = [bits for bits, who in self.nodes.items() if len(who) == most]
        return leaders[0] if len(leaders) == 1 and most >= NODES_TO_CONFIRM else None

    def and_of(self, node: str, bits: Bits) -> Answers:
        """With what one more machine gave just now."""
        nodes = {**self.nodes, bits: self.nodes.get(bits, frozenset()) | {node}}
        return Answers(self.vouched, nodes)


def answers(sightings: Iterable[Sighting]) -> Answers:
    """What comparable sightings say, the last word of each GPU."""
    last: dict[str, Sighting] = {}
    vouched: Sighting | None = None
    for one in sightings:
        if one.kind == "vouched":
            vouched = one
        else:
            last[one.gpu] = one
    nodes: dict[Bits, frozenset[str]] = {}
    for one in last.values():
        bits = bits_of(one.digests)
        nodes[bits] = nodes.get(bits, frozenset()) | {one.node}
    return Answers(vouched, nodes)


def bits_of(digests: Mapping[str, tuple[str, ...]]) -> Bits:
    """Digests by batch size as a value that can be compared and counted."""
    return tuple(sorted((batch, tuple(places)) for batch, places in digests.items()))


def difference(mine: Bits, other: Bits, depth: int) -> str:
    """Where two lists of digests part, in words."""
    for (batch, ours), (other_batch, theirs) in zip(mine, other, strict=False):
        if batch != other_batch:
            break
        for place, (one, another) in enumerate(zip(ours, theirs, strict=False)):
            if one != another:
                return f"from {block_name(place, depth)} on"
    return "of other batch sizes or another depth"


def block_name(place: int, depth: int) -> str:
    """A place in the probe's list of digests, in words."""
    if place < depth:
        return f"block {place}"
    if place == depth:
        return "the final norm"
    if place <= 2 * depth:
        return f"the weights of block {place - depth - 1}"
    if place == 2 * depth + 1:
        return "the weights of the embedding"
    return f"the gradients of block {3 * depth + 1 - place}"


def place_of(block: int, part: str, depth: int) -> int:
    """The place in that list of what a mismatch names."""
    return {"output": block, "weights": depth + 1 + block, "gradient": 3 * depth + 1 - block}[part]
