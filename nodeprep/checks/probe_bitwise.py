"""The same input gave the same bits in every iteration, and on every GPU of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run, result
from nodeprep.model.probe import Digests, GpuRun
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

SOURCE = "nodeprep: one input, one answer (measured bit-identical over 60 iterations and two processes)"
_Reference = tuple[str, ...]


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU.

    The first iteration is each GPU's own reference, which a GPU that is always wrong would agree
    with; so references are compared between GPUs of one model as well.
    """
    peers: dict[str, Counter[_Reference]] = {}
    for run in result(context).gpus:
        if run.digests.value is not None:
            peers.setdefault(run.name, Counter())[run.digests.value.reference] += 1
    yield from each_run(CHECK, context, "digests", partial(_judge, peers))


def _judge(peers: dict[str, Counter[_Reference]], run: GpuRun) -> CheckResult:
    address = run.pci_address
    digests = run.digests.require(f"the block digests of GPU {address}")
    if digests.iterations_compared == 0 or not digests.reference:
        raise Unreadable(f"no iteration of GPU {address} was compared with another")
    agreeing = peers[run.name]
    others = agreeing.total() - 1
    if digests.mismatch_count:
        reason = f"GPU {address} gave other bits for the same input: {_first(digests)}"
    elif len(agreeing) > 1 and not _in_majority(agreeing, digests.reference):
        reason = _outvoted(address, agreeing, digests.reference)
    else:
        reason = (
            f"GPU {address} gave the same bits in {digests.iterations_compared} iterations"
            + (f", and the same as {agreeing[digests.reference] - 1} of {others} others" if others else "")
            + ("" if others else "; no other GPU of its model on this node to compare with")
        )
        return _result(True, address, reason, digests.mismatch_count)
    return _result(False, address, reason, digests.mismatch_count)


def _first(digests: Digests) -> str:
    found = f"{digests.mismatch_count} mismatches in {digests.iterations_compared} iterations"
    if not digests.mismatches:
        return found
    first = digests.mismatches[0]
    again = {
        True: "a repeat on the spot was wrong again",
        False: "a repeat on the spot was right again",
        None: "it was not repeated",
    }[first.confirmed]
    return f"{found}, first in block {first.block} of iteration {first.iteration} ({again})"


def _in_majority(agreeing: Counter[_Reference], reference: _Reference) -> bool:
    return agreeing[reference] * 2 > agreeing.total()


def _outvoted(address: str, agreeing: Counter[_Reference], reference: _Reference) -> str:
    common, votes = agreeing.most_common(1)[0]
    if votes * 2 <= agreeing.total():
        return f"GPU {address} and its peers of the same model differ in their bits, and no majority is right"
    block = next(
        (
            place
            for place, (ours, theirs) in enumerate(zip(reference, common, strict=False))
            if ours != theirs
        ),
        min(len(reference), len(common)),
    )
    return (
        f"GPU {address} gave other bits than {votes} others of the same model for the same input, "
        f"from block {block} on, in every iteration"
    )


def _result(good: bool, address: str, reason: str, mismatches: int) -> CheckResult:
    return CHECK.result(
        "PASS" if good else "FAIL",
        address,
        reason,
        measured=mismatches,
        limit=0,
        unit="mismatches",
        source=SOURCE,
    )


CHECK = Check(
    id="probe_bitwise",
    title="bitwise the same answer every time",
    phase="load",
    evaluate=evaluate,
)
