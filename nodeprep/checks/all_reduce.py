"""An all-reduce over all GPUs ends, is exact, and reaches the bandwidth of the part."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._peers import links_of, of_peers, without_nvlink
from nodeprep.model.probe_peers import AllReduceSize, Peers
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import Limit

EXACT = "nodeprep: sums of whole numbers are exact, in any order"
# Where several ranks entered and none left, nobody can say which of them is at fault.
_ARRIVAL = "nodeprep: the other ranks of this node arrived"
MIB = 1 << 20


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result: on the GPU that hung, else on the node."""
    return of_peers(CHECK, context, partial(_each, context))


def _each(context: Context, found: Peers) -> Iterator[CheckResult]:
    hung = found.all_reduce.hung
    subject = hung[0].gpu if len(hung) == 1 else "node"
    yield CHECK.on(subject, "probe#/peers/value/all_reduce", _judge, found, context)


def _judge(found: Peers, context: Context) -> CheckResult:
    reduced = found.all_reduce
    if reduced.hung:
        alone = len(reduced.hung) == 1
        return CHECK.result(
            "FAIL",
            reduced.hung[0].gpu if alone else "node",
            reduced.sizes.detail or "the all-reduce did not end",
            measured=", ".join(f"rank {rank.rank} ({rank.gpu})" for rank in reduced.hung),
            limit="no rank hangs",
            source=_ARRIVAL,
        )
    sizes = reduced.sizes.require("the all-reduce over all GPUs")
    if not sizes:
        raise Unreadable("no size of all-reduce was measured")
    wrong = next((size for size in sizes if size.wrong_elements), None)
    if wrong is not None:
        return _exactness(
            found, wrong, f"the sums of {wrong.wrong_elements} elements were wrong at {_size(wrong)}"
        )
    floor, why_none = _floor(found, context.spec.profile.all_reduce_gbps)
    largest = sizes[-1]
    if floor is None:
        words = f"exact in all {len(sizes)} sizes, {largest.bus_gbps:.1f} GB/s of bus bandwidth; {why_none}"
        return _exactness(found, largest, words)
    return CHECK.result(
        "PASS" if largest.bus_gbps >= floor.value else "FAIL",
        "node",
        f"{_over(found)} reached {largest.bus_gbps:.1f} GB/s of bus bandwidth at {_size(largest)}, at least "
        f"{floor.value:g} wanted; exact in all {len(sizes)} sizes; {_multicast(found)}",
        measured=round(largest.bus_gbps, 1),
        limit=floor.value,
        unit="GB/s",
        source=floor.source,
    )


def _exactness(found: Peers, size: AllReduceSize, words: str) -> CheckResult:
    return CHECK.result(
        "FAIL" if size.wrong_elements else "PASS",
        "node",
        f"{_over(found)}: {words}",
        measured=size.wrong_elements,
        limit=0,
        unit="wrong elements",
        source=EXACT,
    )


def _floor(found: Peers, floor: Limit | None) -> tuple[Limit | None, str]:
    """The part's figure, if it holds for this board; else why not.

    Raises:
        Unreadable: It is not known how the GPUs are linked.
    """
    if all(without_nvlink(links_of(found, address)) for address in found.gpus):
        return None, "no NVLink is up, so there is no figure to hold that against"
    if floor is None:
        return None, "the profile has no figure to hold that against"
    for around in found.nvlinks:
        links = around.before.require(f"the NVLinks of GPU {around.gpu}").links
        for pair in found.pairs:
            if around.gpu in (pair.source, pair.target):
                between = pair.nvlinks.require(
                    f"the number of NVLinks from GPU {pair.source} to {pair.target}"
                )
                if between < links:
                    return None, "GPUs linked without NVSwitches, for which there is no figure"
    return floor, ""


def _over(found: Peers) -> str:
    return f"the all-reduce over {len(found.gpus)} GPUs"


def _size(size: AllReduceSize) -> str:
    return f"{size.bytes / MIB:g} MiB"


def _multicast(found: Peers) -> str:
    told = found.all_reduce.environment.get("NCCL_NVLS_ENABLE")
    return f"NVLink multicast {'off' if told == '0' else 'as NCCL chooses'}"


CHECK = Check(
    id="all_reduce",
    title="an all-reduce over all GPUs ends, is exact and is fast",
    phase="load",
    evaluate=evaluate,
    tolerates={
        "peers/nvlinks/*/before": "boards without NVLink: exactness is then all there is to judge",
        "peers/nvlinks/*/after": "boards without NVLink: exactness is then all there is to judge",
    },
)
