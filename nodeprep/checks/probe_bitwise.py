"""The same input gave the same bits in every iteration, on every GPU of a model, and on other nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._golden import compare
from nodeprep.checks._runs import each_run, result
from nodeprep.model.golden import Bits, bits_of, block_name, difference, place_of
from nodeprep.model.probe import Digests, GpuRun, ProbeResult
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult, Status
from nodeprep.model.sighting import digests_of

SOURCE = "nodeprep: one input, one answer (measured bit-identical over 60 iterations and two processes)"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU, and one on the node when a GPU's bits could not be compared with golden digests.

    There being none is no fault of the node's. A memory that cannot be read is an ERROR: it may hold
    digests that an operator vouched for, and these bits may be others.

    The first iteration is each GPU's own reference, which a GPU that is always wrong would agree
    with; so references are compared between GPUs of one model on the node, and with the site's.
    """
    probe = result(context)
    peers: dict[str, Counter[Bits]] = {}
    for run in probe.gpus:
        if run.digests.value is not None:
            peers.setdefault(run.name, Counter())[_reference(probe, run.digests.value)] += 1
    yield from each_run(CHECK, context, "digests", partial(_judge, context, peers))
    truths = [compare(context.site, probe, run) for run in probe.gpus if run.digests.value is not None]
    yield from _not_compared("ERROR", [truth.words for truth in truths if truth.outcome == "unreadable"])
    yield from _not_compared("SKIPPED", [truth.words for truth in truths if truth.outcome == "nobody"])


def _not_compared(status: Status, words: list[str]) -> Iterator[CheckResult]:
    if words:
        reason = f"not compared with golden digests: {'; '.join(dict.fromkeys(words))}"
        yield CHECK.result(status, "node", reason)


def _judge(context: Context, peers: dict[str, Counter[Bits]], run: GpuRun) -> CheckResult:
    probe, address = result(context), run.pci_address
    digests = run.digests.require(f"the block digests of GPU {address}")
    if digests.iterations_compared == 0 or not digests.reference:
        raise Unreadable(f"no iteration of GPU {address} was compared with another")
    mine, agreeing = _reference(probe, digests), peers[run.name]
    others = agreeing.total() - 1
    truth = compare(context.site, probe, run)
    if digests.mismatch_count:
        reason = f"GPU {address} gave other bits for the same input: {_first(digests, probe.workload.depth)}"
    elif len(agreeing) > 1 and not _in_majority(agreeing, mine):
        reason = _outvoted(address, agreeing, mine, probe.workload.depth)
    elif truth.outcome == "other":
        reason = f"GPU {address} gave {truth.words}"
    elif truth.outcome == "disputed":
        raise Unreadable(f"whose bits are right is not known: {truth.words}")
    else:
        reason = f"GPU {address} gave the same bits in {digests.iterations_compared} iterations"
        told = [f"the same as {agreeing[mine] - 1} of {others} others of this node"] if others else []
        told += [truth.words] if truth.outcome == "same" else []
        reason += f", {' and '.join(told)}" if told else "; nobody else's bits were there to compare with"
        return _result(True, address, reason, digests.mismatch_count)
    return _result(False, address, reason, digests.mismatch_count)


def _reference(probe: ProbeResult, digests: Digests) -> Bits:
    return bits_of(digests_of(probe, digests))


def _first(digests: Digests, depth: int) -> str:
    found = f"{digests.mismatch_count} mismatches in {digests.iterations_compared} iterations"
    if not digests.mismatches:
        return found
    first = digests.mismatches[0]
    again = {
        True: "a repeat on the spot was wrong again",
        False: "a repeat on the spot was right again",
        None: "it was not repeated",
    }[first.confirmed]
    where = block_name(place_of(first.block, first.part, depth), depth)
    return f"{found}, first in {where} of iteration {first.iteration} ({again})"


def _in_majority(agreeing: Counter[Bits], reference: Bits) -> bool:
    return agreeing[reference] * 2 > agreeing.total()


def _outvoted(address: str, agreeing: Counter[Bits], reference: Bits, depth: int) -> str:
    common, votes = agreeing.most_common(1)[0]
    if votes * 2 <= agreeing.total():
        return f"GPU {address} and its peers of the same model differ in their bits, and no majority is right"
    return (
        f"GPU {address} gave other bits than {votes} others of the same model for the same input, "
        f"{difference(reference, common, depth)}, in every iteration"
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
