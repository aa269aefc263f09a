"""Which kernel log lines matter here, of what kind they are, and which device they name.

Deeper meaning (codes, causes, chains) is for the diagnosis; this keeps the evidence small enough
to travel with the facts. Lines that only announce a service at boot are left out.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

from .pci_address import PATTERN, normalise


class Found(NamedTuple):
    """Kind of a line and what it names; the kinds are listed with KernelEvent in nodeprep/model/facts.py."""

    kind: str
    device: str
    xid: Optional[int]


# "PCI:" came with R4xx, MIG instances append GPU-I and GPU-CI; pid and name may be absent.
_XID = re.compile(rf"NVRM: Xid \((?:PCI:)?(?P<device>{PATTERN})[^)]*\): (?P<code>\d+)")
# "pcieport 0000:00:1c.5: ...", before 4.17 also "pciehp 0000:00:1c.0:pcie004: ..."
_DEVICE_LINE = re.compile(rf"(?P<driver>\S+) (?P<device>{PATTERN})(?::pcie\d+)?: (?P<rest>.*)", re.DOTALL)
# What comes after that prefix; the first match decides the kind.
_DEVICE_LINES = (
    (re.compile(r"(?:AER: )?(?:DPC[: ]|EDR: |rp_pio_|RP PIO )"), "dpc"),
    (re.compile(r"pciehp: |Slot\(\S+\): "), "pciehp"),
    (
        re.compile(
            r"AER: |(?:PCIe|CXL) Bus Error: |aer_(?:status|layer|agent|uncor_|cor_|tlp_)|"
            r"\s*device \[[0-9a-f]{4}:[0-9a-f]{4}\] error status/mask=|\s*\[ ?\d+\] \w+|\s*TLP Header: |"
            r"\s*Error of this Agent|can't find device of ID|found no error details"
        ),
        "aer",
    ),
    # Source: drivers/pci/pci.c; "can't change ..." until 5.7.
    (re.compile(r"(?:Unable to|Refused to|can't) change power state"), "power_state"),
    (re.compile(r"AMD-Vi: Event logged |event 0x[0-9a-f]+ received:"), "iommu_fault"),
    (
        re.compile(
            r".*(?:available PCIe bandwidth, limited by|retraining|link speed restriction)", re.DOTALL
        ),
        "other",
    ),
)
_ANNOUNCEMENT = re.compile(
    r"(?:AER|DPC): (?:enabled|error containment capabilities)|AER enabled with IRQ|"
    r"(?:pciehp: )?Slot #\S+ AttnBtn|(?:PME|AER): Signaling"
)

# Lines that do not begin with a device: pattern, kind, and where a device is named in them.
_PLAIN_LINES = (
    (
        re.compile(rf".*SXid \(PCI:{PATTERN}\): \d+", re.DOTALL),
        "other",
        re.compile(rf"SXid \(PCI:(?P<device>{PATTERN})"),
    ),
    (
        re.compile(
            r"NVRM: |nvidia(?:[-_]\w+)?(?: \S+)?: |nvidia[-_]\w+ |nvlink: |\[drm.*nvidia[-_]drm",
            re.IGNORECASE,
        ),
        "nvrm",
        re.compile(rf"(?:PCI:|GPU |nvidia )(?P<device>{PATTERN})"),
    ),
    (re.compile(r"aer_\w*ratelimit\w*: \d+ callbacks suppressed"), "aer", None),
    # APEI numbers the lines of one report, {n}; without a number it is a decoded machine check.
    (
        re.compile(r"\{\d+\}\[Hardware Error\]: |BERT: Error records"),
        "other",
        re.compile(rf"device_id: (?P<device>{PATTERN})"),
    ),
    (re.compile(r"(?:mce: )?\[Hardware Error\]: |mce: Uncorrected|EDAC \S+: \d+ [CU]E "), "mce", None),
    # Faults leave the PCI domain out, or the device; the line is the evidence.
    # Source: drivers/iommu/intel/dmar.c, drivers/iommu/amd/iommu.c, arm-smmu-v3.c.
    (
        re.compile(
            r"DMAR: ?\[.*Request device \[|DMAR: DRHD: handling fault|dmar_fault: \d+ callbacks suppressed|"
            r"(?:\S+ \S+: )?AMD-Vi: (?:Event logged|Completion-Wait loop timed out)|"
            r"arm-smmu-v3 \S+: event 0x[0-9a-f]+ received:"
        ),
        "iommu_fault",
        re.compile(rf"device=(?P<device>{PATTERN})"),
    ),
    # Source: kernel/watchdog.c, kernel/watchdog_perf.c ("NMI watchdog" until 4.19).
    (
        re.compile(
            r"(?:(?:NMI )?watchdog: )?(?:BUG: (?:soft|workqueue) lockup|"
            r"(?:CPU\d+: )?Watchdog detected hard LOCKUP)"
        ),
        "lockup",
        None,
    ),
    # Source: kernel/hung_task.c.
    (re.compile(r"INFO: task .+ blocked (?:in I/O wait )?for more than \d+ seconds"), "hung_task", None),
    # Source: kernel/rcu/tree_stall.h.
    (
        re.compile(r"(?:rcu: )?(?:INFO: )?rcu_\w+ (?:self-)?detected .*stall|rcu: .* kthread starved for"),
        "rcu_stall",
        None,
    ),
    # Source: mm/oom_kill.c.
    (
        re.compile(r"(?:Memory cgroup )?[Oo]ut of memory: Kill|.+ invoked oom-killer: |oom-kill:"),
        "oom",
        None,
    ),
    # Source: lib/bug.c, arch/x86/mm/fault.c, kernel/panic.c.
    (
        re.compile(r"BUG: |kernel BUG at |Oops\b|general protection fault|Internal error: |Kernel panic - "),
        "oops",
        None,
    ),
)


def classify(text: str) -> Optional[Found]:
    """What a kernel log line is about; None when it matters to no check."""
    if text.startswith("NVRM: Xid"):
        return _xid(text)
    by_device = _DEVICE_LINE.match(text)
    found = _device_line(by_device) if by_device else None
    return found or _plain_line(text)


def _xid(text: str) -> Found:
    match = _XID.match(text)
    # A line that says Xid in a form nobody knows yet is still an Xid.
    return (
        Found("xid", normalise(match.group("device")), int(match.group("code")))
        if match
        else Found("xid", "", None)
    )


def _device_line(match: "re.Match[str]") -> Optional[Found]:
    rest, device = match.group("rest"), normalise(match.group("device"))
    if _ANNOUNCEMENT.match(rest):
        return None
    for pattern, kind in _DEVICE_LINES:
        if pattern.match(rest):
            return Found(kind, device, None)
    return None


def _plain_line(text: str) -> Optional[Found]:
    for pattern, kind, names_device in _PLAIN_LINES:
        if pattern.match(text):
            named = names_device.search(text) if names_device else None
            return Found(kind, normalise(named.group("device")) if named else "", None)
    return None
