"""`nodeprep.facts/1`, as `nodeprep inspect --json` and the archives of evidence have it.

Events as in _smi.py for each GPU; `nvml.hang` and `nvml.gpu_lost` where NVML did not answer;
`gpu.not_in_nvml` for a GPU that is on the PCI bus and NVML does not know; `boot.cmdline` {args};
AER counters as in _aer_counters.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.reader import Item, RawLine, Reader, Remark
from nodeprep.diagnose.readers._aer_counters import counters
from nodeprep.diagnose.readers._json_document import Document
from nodeprep.diagnose.readers._smi import Gpu, pci_address

_SCHEMA = re.compile(rb"\"schema\": ?\"nodeprep\.facts/1\"")
# The schema stands at the end of a document: in the archives, whose keys are sorted, and in run folders.
_EARLY = (b'"aer_ownership"', b'"collector"')
_HEAD = re.compile(rb"\s*\{")
# Where the facts hold what nvidia-smi calls by these names.
_FIELDS = (
    ("name", ("name",)),
    ("uuid", ("uuid",)),
    ("persistence_mode", ("persistence",)),
    ("remapped_rows.correctable", ("remap", "correctable_rows")),
    ("remapped_rows.uncorrectable", ("remap", "uncorrectable_rows")),
    ("remapped_rows.pending", ("remap", "pending")),
    ("remapped_rows.failure", ("remap", "failure")),
    ("ecc.errors.uncorrected.volatile.total", ("ecc", "volatile_uncorrected")),
    ("ecc.errors.uncorrected.aggregate.total", ("ecc", "aggregate_uncorrected")),
    ("sram_threshold_exceeded", ("ecc", "sram_threshold_exceeded")),
    ("ecc.mode.current", ("ecc", "enabled")),
    ("power.limit", ("power", "enforced_w")),
    ("power.default_limit", ("power", "default_w")),
    ("pcie.link.gen.current", ("link", "gen")),
    ("pcie.link.width.current", ("link", "width_lanes")),
    ("temperature.gpu", ("temperature", "gpu_c")),
)
# Source: NVML field 230, nvidia-ml-py 13.
_ACTIONS = ("None", "GPU Reset Required", "Node Reboot Required", "Drain P2P", "Drain and Reset",
            "Recover IMEX Domain", "Bus Reset", "System Reboot")  # fmt: skip
_HUNG = "hung"


def _sniff(lines: Sequence[bytes]) -> int:
    if not lines or not _HEAD.match(lines[0]):
        return 0
    known = any(word in line for line in lines for word in _EARLY)
    return 96 if known or any(_SCHEMA.search(line) for line in lines) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    document = Document(source, lines)
    if document.get("schema") != "nodeprep.facts/1":
        yield Remark(gap=_why_not(document))
        return
    if document.get("simulated") is not False:
        yield Remark(simulated=True)
    yield from _driver(document)
    yield from counters(document)
    listed = document.get("nvml", "gpus")
    if not isinstance(listed, dict) or listed.get("state") != "ok":
        detail = listed.get("detail") if isinstance(listed, dict) else ""
        yield Remark(gap=f"the GPUs could not be read: {detail}")
        kind = "nvml.hang" if _HUNG in str(detail) else "nvml.failed"
        yield Event(kind=kind, lines=(document.line(f"NVML: {detail}", "nvml"),), data={"call": "NVML"})
        return
    known = [gpu for gpu in listed.get("value") or () if isinstance(gpu, dict)]
    for gpu in known:
        yield from _gpu(document, gpu)
    yield from _missing(document, {pci_address(str(gpu.get("pci_address"))) for gpu in known})


def _why_not(document: Document) -> str:
    hosts = document.get("hosts")
    if isinstance(hosts, dict):
        return (
            f"not read: it holds what inspect found on {len(hosts)} hosts, and a diagnosis is of one; give "
            f"it the part of one host (jq '.hosts[\"NAME\"]' FILE), or use diagnose --host"
        )
    return "its JSON is cut off or broken"


def _driver(document: Document) -> Iterator[Item]:
    arguments = _value(document.get("boot", "cmdline"))
    if isinstance(arguments, str):
        line = document.line(f"Command line: {arguments}", "cmdline")
        yield line
    for words in document.get("nvml", "lost") or ():
        yield Event(
            kind="nvml.gpu_lost", lines=(document.line(f"NVML: {words}", "lost"),), data={"why": str(words)}
        )


def _gpu(document: Document, gpu: dict[str, Any]) -> Iterator[Event]:
    address = str(gpu.get("pci_address") or "")
    header = document.line(f"GPU {address}", address)
    told = Gpu(pci_address(address), header)
    for name, path in _FIELDS:
        here: Any = gpu
        for key in path:
            here = here.get(key) if isinstance(here, dict) else None
        value = _value(here)
        if value is not None:
            words = {True: "Yes", False: "No"}.get(value) if isinstance(value, bool) else str(value)
            told.take(name, str(words), document.line(f"GPU {address} {name}: {words}", address))
    action = _value(gpu.get("recovery_action"))
    if isinstance(action, int) and not isinstance(action, bool):
        words = _ACTIONS[action] if 0 <= action < len(_ACTIONS) else f"unknown action {action}"
        line = document.line(f"GPU {address} GPU Recovery Action: {words}", address)
        told.take("gpu_recovery_action", words, line)
    yield from told.events()


def _missing(document: Document, known: set[str]) -> Iterator[Event]:
    for path in _value(document.get("pci", "gpu_paths")) or ():
        address = pci_address(str(path.get("gpu"))) if isinstance(path, dict) else ""
        if address and address not in known:
            line = document.line(f"GPU {address} is on the PCI bus and NVML does not know it", address)
            yield Event(kind="gpu.not_in_nvml", lines=(line,), device=address)


def _value(reading: Any) -> Any:
    """What was read; None for what the part has not, or what could not be read."""
    return reading.get("value") if isinstance(reading, dict) and reading.get("state") == "ok" else None


READER = Reader(id="node_facts", sniff=_sniff, read=_read, whole=True)
