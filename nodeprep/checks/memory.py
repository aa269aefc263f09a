"""The kernel has the memory that is installed."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import facts, latest
from nodeprep.model.facts import Memory
from nodeprep.model.result import CheckResult

# Least part of the installed memory that MemTotal must show. The kernel keeps 64 bytes a page of 4 KiB
# for itself (1.56 %), and firmware, crashkernel and the tables of confidential computing (SEV-SNP, TDX:
# 0.4 %) take some more: machines of 256 GB, 1 TB and 2 TB show 98.4 to 98.6 %. One module lost of the 32
# that such machines have leaves 95.3 %. The figure stands between the two.
LEAST_FRACTION = 0.96
SOURCE = "nodeprep: between all modules (98.4 %) and one of 32 lost (95.3 %), see the page"
GIB = 1 << 30


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result on the node."""
    which = latest(context)
    yield CHECK.on("node", f"facts.{which}#/memory", _judge, facts(context, which).memory)


def _judge(memory: Memory) -> CheckResult:
    total = memory.total_bytes.require("how much memory the kernel has (MemTotal)")
    if memory.dmi_installed_bytes.state == "not_supported":
        reason = f"this machine's firmware lists no memory modules: {memory.dmi_installed_bytes.detail}"
        return CHECK.result("SKIPPED", "node", reason)
    installed = memory.dmi_installed_bytes.require("how much memory is installed (SMBIOS type 17)")
    enough = total >= LEAST_FRACTION * installed
    shown = f"the kernel has {total / GIB:.1f} GiB of {installed / GIB:.1f} GiB installed"
    return CHECK.result(
        "PASS" if enough else "FAIL",
        "node",
        shown
        if enough
        else f"{shown}: look for a module that firmware disabled, mirroring, and mem= or memmap= arguments",
        measured=round(total / GIB, 1),
        limit=round(LEAST_FRACTION * installed / GIB, 1),
        unit="GiB",
        source=SOURCE,
    )


CHECK = Check(
    id="memory",
    title="the kernel has the installed memory",
    phase="static",
    evaluate=evaluate,
    tolerates={"memory/dmi_installed_bytes": "some virtual machines have no SMBIOS memory record"},
)
