"""The PCI bus, NVML and the policy agree on which GPUs this node has."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import gpus
from nodeprep.checks._hops import gpu_paths
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for the count and one for each GPU that only one side knows."""
    on_pci = {path.gpu: where for path, where in gpu_paths(context, "before")}
    expected = context.spec.policy.gpu.count
    try:
        in_nvml = {gpu.pci_address: where for gpu, where in gpus(context, "before")}
    except Unreadable as error:
        if expected not in (None, len(on_pci)):
            yield _count(expected, len(on_pci), str(error))
        else:
            yield CHECK.result(
                "ERROR",
                "node",
                f"{len(on_pci)} GPUs are on the PCI bus, but {error}",
                evidence=("facts.before#/nvml/gpus",),
            )
        return
    for words in context.before.nvml.lost:
        yield CHECK.result(
            "FAIL",
            words.partition(": ")[0].removeprefix("GPU "),
            f"NVML says that a GPU is lost: {words}",
            measured="lost",
            limit="answers",
            source="NVML of this node",
            evidence=("facts.before#/nvml/lost",),
        )
    for address in sorted(on_pci.keys() - in_nvml.keys()):
        yield CHECK.result(
            "FAIL",
            address,
            f"GPU {address} is on the PCI bus but NVML does not list it: the driver could not start it, "
            "or it fell off",
            measured="missing in NVML",
            limit="listed by NVML",
            source="the PCI bus of this node",
            evidence=(on_pci[address],),
        )
    for address in sorted(in_nvml.keys() - on_pci.keys()):
        yield CHECK.result(
            "FAIL",
            address,
            f"NVML lists GPU {address} but it is not on the PCI bus: it was lost after the driver started",
            measured="missing on the PCI bus",
            limit="on the PCI bus",
            source="NVML of this node",
            evidence=(in_nvml[address],),
        )
    yield _count(expected, len(on_pci), f"NVML lists {len(in_nvml)}")


def _count(expected: int | None, found: int, nvml: str) -> CheckResult:
    wanted = max(found, 1) if expected is None else expected
    reason = f"{found} GPUs on the PCI bus, {nvml}"
    if found != wanted:
        reason += f"; {wanted} wanted"
    elif expected is None:
        reason += "; the policy names no count, so a GPU that PCI has lost too would not be missed"
    return CHECK.result(
        "PASS" if found == wanted else "FAIL",
        "node",
        reason,
        measured=found,
        limit=wanted,
        unit="GPUs",
        source="the PCI bus of this node" if expected is None else "policy gpu.count",
        evidence=("facts.before#/pci/gpu_paths",),
    )


CHECK = Check(
    id="gpu_presence",
    title="every GPU is on the PCI bus and in NVML",
    phase="static",
    evaluate=evaluate,
    explains=("gpu_survived_load", "probe_completed"),
)
