"""Which GPUs a node has, from every witness there is, and how each one stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from nodeprep.model.facts import Gpu, NodeFacts
from nodeprep.model.result import CheckResult
from nodeprep.model.run import NodeView
from nodeprep.reports._text import short_address

GpuState = Literal["pass", "fail", "error", "absent", "waived", "skipped", "unknown"]

_WORDS: dict[GpuState, str] = {
    "pass": "all its checks passed",
    "fail": "failed",
    "error": "could not be judged",
    "absent": "on PCI, not in NVML",
    "waived": "waived",
    "skipped": "checks skipped",
    "unknown": "not judged",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMark:
    """One GPU as a dot in the grid and a row in the tables."""

    address: str
    label: str
    name: str
    uuid: str
    serial: str
    vbios: str
    state: GpuState
    why: str

    @property
    def word(self) -> str:
        """The state in words."""
        return _WORDS[self.state]


def marks(node: NodeView) -> tuple[GpuMark, ...]:
    """Every GPU that PCI, NVML, the probe or the certificate knows, in PCI order."""
    facts = node.facts_after or node.facts_before
    results = node.certificate.checks if node.certificate else ()
    hops = _hops(facts)
    return tuple(_mark(node, facts, results, hops, address) for address in sorted(_addresses(node)))


def by_hop(facts: NodeFacts | None) -> dict[str, tuple[str, ...]]:
    """For each hop (GPUs included): the GPUs that hang below it."""
    below: dict[str, tuple[str, ...]] = {}
    for gpu, hops in _hops(facts).items():
        for hop in hops:
            below[hop] = (*below.get(hop, ()), gpu)
    return below


def _hops(facts: NodeFacts | None) -> dict[str, tuple[str, ...]]:
    paths = facts.pci.gpu_paths.value if facts else None
    return {path.gpu: path.hops for path in paths or ()}


def _addresses(node: NodeView) -> set[str]:
    found: set[str] = set()
    for facts in (node.facts_before, node.facts_after):
        if facts is not None:
            found.update(path.gpu for path in facts.pci.gpu_paths.value or ())
            found.update(gpu.pci_address for gpu in _gpus(facts))
    if node.probe is not None:
        found.update(run.pci_address for run in node.probe.gpus)
    if node.certificate is not None:
        found.update(gpu.pci_address for gpu in node.certificate.identity.gpus)
    return found


def _gpus(facts: NodeFacts) -> Iterable[Gpu]:
    return facts.nvml.gpus.value if facts.nvml.gpus.value is not None else facts.nvml.partial


def _known_addresses(gpus: Iterable[Gpu]) -> set[str]:
    return {gpu.pci_address for gpu in gpus}


def _mark(
    node: NodeView,
    facts: NodeFacts | None,
    results: Iterable[CheckResult],
    hops: dict[str, tuple[str, ...]],
    address: str,
) -> GpuMark:
    subjects = {address, *hops.get(address, ())}
    state, why = _state([result for result in results if result.subject in subjects])
    known = facts.nvml.gpus if facts else None
    if known is not None and known.value is None and state != "fail":
        state, why = "error", f"NVML: {known.detail or known.state}"
    elif known is not None and known.value is not None and address not in _known_addresses(known.value):
        state, why = "absent", why or "the PCI bus knows this GPU, NVML does not"
    name, uuid, serial, vbios = _identity(node, facts, address)
    return GpuMark(
        address=address,
        label=short_address(address),
        name=name,
        uuid=uuid,
        serial=serial,
        vbios=vbios,
        state=state,
        why=why,
    )


def _state(results: list[CheckResult]) -> tuple[GpuState, str]:
    for state, wanted in (("fail", "FAIL"), ("error", "ERROR")):
        for result in results:
            if result.status == wanted:
                return state, f"{result.id}: {result.reason}"  # type: ignore[return-value]
    waived = next((result for result in results if result.waiver is not None), None)
    if waived is not None:
        return "waived", f"{waived.id}: {waived.reason}"
    if any(result.status == "PASS" for result in results):
        return "pass", ""
    if results:
        return "skipped", f"{results[0].id}: {results[0].reason}"
    return "unknown", ""


def _identity(node: NodeView, facts: NodeFacts | None, address: str) -> tuple[str, str, str, str]:
    if node.certificate is not None:
        for gpu in node.certificate.identity.gpus:
            if gpu.pci_address == address:
                return gpu.name, gpu.uuid, gpu.serial, gpu.vbios_version
    if facts is not None:
        for known in _gpus(facts):
            if known.pci_address == address:
                return str(known.name), str(known.uuid), str(known.serial), str(known.vbios_version)
    if node.probe is not None:
        for run in node.probe.gpus:
            if run.pci_address == address:
                return run.name, run.uuid, "", ""
    return "", "", "", ""
