"""What several checks look up in what the GPUs of a node did together."""

from __future__ import annotations

from nodeprep.checks._check import Context
from nodeprep.checks._runs import result
from nodeprep.model.probe_peers import NvLinksAround, PeerPair, Peers
from nodeprep.model.reading import Unreadable

ALONE = "the node has a single GPU, which has no peers"


def peers(context: Context) -> Peers | None:
    """What the GPUs did together; None on a node with a single GPU.

    Raises:
        Unreadable: The probe did not run or did not measure it, or a GPU of several says it is alone.
    """
    probe = result(context)
    if probe.peers.state == "not_supported" and len(probe.gpus) == 1:
        return None
    return probe.peers.require("what the GPUs do together")


def without_nvlink(around: NvLinksAround) -> bool:
    """True when no NVLink of the GPU was in use, before and after.

    Raises:
        Unreadable: That is not known.
    """
    if around.before.state == around.after.state == "not_supported":
        return True
    address = around.gpu
    before = around.before.require(f"the NVLinks of GPU {address} before they were used")
    after = around.after.require(f"the NVLinks of GPU {address} after they were used")
    up = before.active.require(f"the state of the NVLinks of GPU {address} before they were used")
    still_up = after.active.require(f"the state of the NVLinks of GPU {address} after they were used")
    return up == still_up == 0


def from_source(found: Peers, address: str) -> tuple[PeerPair, ...]:
    """The copies that one GPU sent to the others.

    Raises:
        Unreadable: Some are missing.
    """
    sent = tuple(pair for pair in found.pairs if pair.source == address)
    missing = set(found.gpus) - {address} - {pair.target for pair in sent}
    if missing:
        raise Unreadable(f"no copies from GPU {address} to {', '.join(sorted(missing))} were measured")
    return sent
