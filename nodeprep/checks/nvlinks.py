"""All NVLinks that a GPU should have are up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu, gpus, latest
from nodeprep.model.facts import Gpu
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# Boards for PCIe slots, whose NVLinks lead to bridges that a buyer may leave out: without one they are
# inactive and healthy. Source: NVIDIA's product names; NVIDIA/NVSentinel#1481 (A100 80GB PCIe).
_PCIE_BOARD = ("PCIE", "NVL")
SOURCE = "NVML of this node: links of the part and of its peers"


@dataclass(frozen=True, slots=True)
class _Peers:
    """The most that a GPU of one product name has on this node."""

    links: int = 0
    up: int = 0


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU: every link of it is up, and it has as many as its peers of the same name."""
    peers: dict[str | None, _Peers] = {}
    for gpu, _ in gpus(context, latest(context)):
        links = gpu.nvlinks.value or ()
        most = peers.get(gpu.name.value, _Peers())
        up = sum(link.active.value is True for link in links)
        peers[gpu.name.value] = _Peers(max(most.links, len(links)), max(most.up, up))

    def judge(gpu: Gpu) -> CheckResult:
        name = gpu.name.require(f"the product name of GPU {gpu.pci_address}")
        return _judge(gpu, name, peers[name])

    yield from each_gpu(CHECK, context, "nvlinks", judge)


def _judge(gpu: Gpu, name: str, peers: _Peers) -> CheckResult:
    address = gpu.pci_address
    if gpu.nvlinks.state == "not_supported":
        if not peers.links:
            return CHECK.result("SKIPPED", address, f"GPU {address} has no NVLink that NVML knows of")
        reason = f"GPU {address} has no NVLink, its peers of the same name have {peers.links}"
        return _result(address, 0, peers.links, reason)
    links = gpu.nvlinks.require(f"the NVLinks of GPU {address}")
    down = [
        link.index
        for link in links
        if not link.active.require(f"the state of NVLink {link.index} of GPU {address}")
    ]
    count, up = len(links), len(links) - len(down)
    if count < peers.links:
        reason = f"GPU {address} has {count} NVLinks, its peers of the same name have {peers.links}"
        return _result(address, up, peers.links, reason)
    if not down:
        return _result(address, up, count, f"all {count} NVLinks of GPU {address} are up")
    if up:
        listed = ", ".join(map(str, down))
        reason = f"{len(down)} of {count} NVLinks of GPU {address} are down: {listed}"
        return _result(address, up, count, reason)
    return _all_down(gpu, name, count, peers)


def _all_down(gpu: Gpu, name: str, count: int, peers: _Peers) -> CheckResult:
    address = gpu.pci_address
    if peers.up or _on_fabric(gpu):
        why = f"its peers have {peers.up} up" if peers.up else "the board has an NVLink fabric"
        return _result(address, 0, count, f"all {count} NVLinks of GPU {address} are down, and {why}")
    if any(word in name.upper() for word in _PCIE_BOARD):
        reason = f"no NVLink of GPU {address} or its peers is bridged ({name} is a board for PCIe slots)"
        return CHECK.result("SKIPPED", address, reason)
    raise Unreadable(
        f"all {count} NVLinks of GPU {address} are down, as those of its peers: {name} is no board for PCIe "
        "slots, and nothing tells whether the node is wired without NVLink or has lost it"
    )


def _on_fabric(gpu: Gpu) -> bool:
    if gpu.fabric.state == "not_supported":
        return False
    return gpu.fabric.require(f"the fabric state of GPU {gpu.pci_address}").state != "not_supported"


def _result(address: str, up: int, wanted: int, reason: str) -> CheckResult:
    return CHECK.result(
        "PASS" if up >= wanted else "FAIL",
        address,
        reason,
        measured=up,
        limit=wanted,
        unit="links",
        source=SOURCE,
    )


CHECK = Check(
    id="nvlinks",
    title="all NVLinks are up",
    phase="static",
    evaluate=evaluate,
)
