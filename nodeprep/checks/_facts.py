"""What several checks look up in the facts, with pointers to where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from nodeprep.checks._check import Check, Context
from nodeprep.model.facts import Gpu, NodeFacts
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

Which = Literal["before", "after"]


def facts(context: Context, which: Which) -> NodeFacts:
    """The facts from before or after the load.

    Raises:
        Unreadable: There are none from after the load.
    """
    if which == "before":
        return context.before
    if context.after is None:
        raise Unreadable("there are no facts from after the load")
    return context.after


def latest(context: Context) -> Which:
    """The newer facts. What the load brought to light (a row to be remapped) stands only there."""
    return "before" if context.after is None else "after"


def gpus(context: Context, which: Which) -> Iterator[tuple[Gpu, str]]:
    """Each GPU that NVML lists, with a pointer to it.

    Raises:
        Unreadable: NVML hung or did not start.
    """
    listed = facts(context, which).nvml.gpus.require("the GPU list of NVML")
    for position, gpu in enumerate(listed):
        yield gpu, f"facts.{which}#/nvml/gpus/value/{position}"


def each_gpu(
    check: Check, context: Context, part: str, judge: Callable[[Gpu], CheckResult]
) -> Iterator[CheckResult]:
    """One result for each GPU in the newer facts.

    Args:
        check: The check that judges.
        context: Where to look.
        part: Which part of a GPU's facts is the evidence, for example "ecc".
        judge: Returns the result; may raise Unreadable.
    """
    for gpu, where in gpus(context, latest(context)):
        yield check.on(gpu.pci_address, f"{where}/{part}", judge, gpu)


def require_same_boot(context: Context) -> None:
    """Counters can be compared only within one boot.

    Raises:
        Unreadable: The node rebooted between the two looks, or a boot id could not be read.
    """
    before = facts(context, "before").boot.boot_id.require("the boot id before the load")
    after = facts(context, "after").boot.boot_id.require("the boot id after the load")
    if before != after:
        raise Unreadable(f"the node rebooted during the load (boot {before} became {after})")
