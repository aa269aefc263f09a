"""All NVLinks that a GPU should have are up."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu, gpus, latest
from nodeprep.model.facts import Gpu
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU.

    On a fabric board every link must be up. Elsewhere bridges decide how many are, so that a GPU is
    held against its peers; and cards without a bridge are healthy with none.
    """
    most = max((_active(gpu) for gpu, _ in gpus(context, latest(context))), default=0)

    def judge(gpu: Gpu) -> CheckResult:
        return _judge(gpu, most)

    yield from each_gpu(CHECK, context, "nvlinks", judge)


def _active(gpu: Gpu) -> int:
    return sum(link.active.value is True for link in gpu.nvlinks.value or ())


def _judge(gpu: Gpu, most: int) -> CheckResult:
    address = gpu.pci_address
    if gpu.nvlinks.state == "not_supported":
        if not most:
            return CHECK.result("SKIPPED", address, f"GPU {address} has no NVLink")
        return _result(address, 0, most, "none", "the other GPUs of this node have them")
    links = gpu.nvlinks.require(f"the NVLinks of GPU {address}")
    down = [
        link.index
        for link in links
        if not link.active.require(f"the state of NVLink {link.index} of GPU {address}")
    ]
    up = len(links) - len(down)
    if up and not down and up >= most:
        return _result(address, up, up, "none", "")
    if _on_fabric(gpu):
        wanted, why = max(len(links), most), "a fabric board"
    elif most:
        wanted, why = most, "as its peers have"
    else:
        return CHECK.result("SKIPPED", address, f"no NVLink of GPU {address} or its peers is bridged")
    return _result(address, up, wanted, ", ".join(map(str, down)) or "none", why)


def _on_fabric(gpu: Gpu) -> bool:
    if gpu.fabric.state == "not_supported":
        return False
    return gpu.fabric.require(f"the fabric state of GPU {gpu.pci_address}").state == "completed"


def _result(address: str, up: int, wanted: int, down: str, why: str) -> CheckResult:
    return CHECK.result(
        "PASS" if up >= wanted else "FAIL",
        address,
        f"all {up} NVLinks of GPU {address} are up"
        if up >= wanted
        else f"GPU {address} has {up} NVLinks up, {wanted} wanted ({why}); down: {down}",
        measured=up,
        limit=wanted,
        unit="links",
        source="NVML of this node: links of the part and of its peers",
    )


CHECK = Check(
    id="nvlinks",
    title="all NVLinks are up",
    phase="static",
    evaluate=evaluate,
)
