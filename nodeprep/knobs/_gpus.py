"""What the GPU knobs share: which GPUs a plan speaks of, and what to say of those it cannot see."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nodeprep.model.facts import Gpu, NodeFacts
from nodeprep.model.plan import Change
from nodeprep.model.reading import Unreadable

Compare = Callable[[Gpu], Change]


def each_gpu(knob: str, facts: NodeFacts, *, wanted: str, why: str, compare: Compare) -> Iterator[Change]:
    """One Change a GPU; a GPU that NVML does not know, or cannot read, is "unknown".

    Args:
        knob: Id of the knob.
        facts: Of the node.
        wanted: The wanted value in words, for GPUs that cannot be compared.
        why: As in Change.
        compare: Makes the Change of one GPU; may raise Unreadable.
    """

    def unknown(subject: str, reason: str) -> Change:
        return Change(
            knob=knob, subject=subject, status="unknown", old="unreadable", new=wanted, why=why, reason=reason
        )

    gpus = facts.nvml.gpus
    if gpus.value is None:
        yield unknown("node", f"the GPUs could not be read: {gpus.detail}")
        return
    for gpu in gpus.value:
        try:
            yield compare(gpu)
        except Unreadable as error:
            yield unknown(gpu.pci_address, str(error))
    known = {gpu.pci_address for gpu in gpus.value}
    unseen = [path.gpu for path in facts.pci.gpu_paths.value or () if path.gpu not in known]
    for address in unseen:
        yield unknown(address, "on the PCI bus, and NVML does not know it")
    if not known and not unseen:
        yield unknown("node", "no GPU was found")
