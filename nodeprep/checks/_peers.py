"""What several checks look up in what the GPUs of a node did together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import result
from nodeprep.model.probe_peers import NvLinksAround, PeerPair, Peers
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

ALONE = "the node has a single GPU, which has no peers"


def of_peers(
    check: Check, context: Context, judge: Callable[[Peers], Iterator[CheckResult]]
) -> Iterator[CheckResult]:
    """What `judge` says of the GPUs that were measured together, and an ERROR for each that was not.

    Raises:
        Unreadable: As `_peers`.
    """
    found = _peers(context)
    if found is None:
        yield check.result("SKIPPED", "node", ALONE)
        return
    yield from _left_out(check, context, found)
    yield from judge(found)


def _peers(context: Context) -> Peers | None:
    """What the GPUs did together; None on a node with a single GPU.

    Raises:
        Unreadable: The probe did not run or did not measure it, or a GPU of several says it is alone.
    """
    probe = result(context)
    if probe.peers.state == "not_supported" and len(probe.gpus) == 1:
        return None
    found = probe.peers.require("what the GPUs do together")
    if len(found.gpus) < 2:
        raise Unreadable(f"only {len(found.gpus)} of {len(probe.gpus)} GPUs were measured together")
    return found


def _left_out(check: Check, context: Context, found: Peers) -> Iterator[CheckResult]:
    """An ERROR for each GPU that got through its own load and was not measured beside the others.

    The checks judge whom the stage lists; a GPU that it lost must not be judged by nobody.
    """
    for run in result(context).gpus:
        address = run.pci_address
        if run.state == "completed" and address not in found.gpus:
            why = found.absent.get(address, "no reason given")
            words = f"GPU {address} was not measured beside the others: {why}"
            yield check.result("ERROR", address, words, evidence=("probe#/peers/value/absent",))


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


def links_of(found: Peers, address: str) -> NvLinksAround:
    """The NVLinks of one GPU.

    Raises:
        Unreadable: They are missing.
    """
    around = next((one for one in found.nvlinks if one.gpu == address), None)
    if around is None:
        raise Unreadable(f"nothing is known of the NVLinks of GPU {address}")
    return around
