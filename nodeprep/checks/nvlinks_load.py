"""No NVLink went down or counted an error while the node was under load."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._counters import growth_where_counted
from nodeprep.checks._facts import gpus, require_same_boot
from nodeprep.model.facts import Gpu, NvLink
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# An accepted link is a quiet one, as with PCIe (aer_quiet_load): an NVLink corrects what goes wrong by
# replay, so that a count that moves within minutes tells of a marginal link long before it drops.
LIMIT = 0
SOURCE = "nodeprep: an accepted link is quiet (see the page)"
_COUNTERS = {"replay": "replay_errors", "recovery": "recovery_errors", "CRC": "crc_errors"}


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU."""
    require_same_boot(context)
    after = {gpu.pci_address: gpu for gpu, _ in gpus(context, "after")}
    for gpu, where in gpus(context, "before"):
        address = gpu.pci_address
        yield CHECK.on(address, f"{where}/nvlinks", _judge, gpu, after.get(address))


def _judge(before: Gpu, after: Gpu | None) -> CheckResult:
    address = before.pci_address
    if after is None:
        raise Unreadable(f"NVML does not list GPU {address} after the load")
    if before.nvlinks.state == after.nvlinks.state == "not_supported":
        return CHECK.result("SKIPPED", address, f"GPU {address} has no NVLink that NVML knows of")
    then = before.nvlinks.require(f"the NVLinks of GPU {address} before the load")
    now = {link.index: link for link in after.nvlinks.require(f"the NVLinks of GPU {address} after the load")}
    used = [
        link
        for link in then
        if link.active.require(f"the state of NVLink {link.index} of GPU {address} before the load")
    ]
    if not used:
        return CHECK.result("SKIPPED", address, f"no NVLink of GPU {address} was up before the load")
    lost = [link.index for link in used if not _still_up(address, now.get(link.index))]
    if lost:
        listed = ", ".join(map(str, lost))
        reason = f"{len(lost)} of {len(used)} NVLinks of GPU {address} went down under load: {listed}"
        return _result(address, "FAIL", reason, len(lost), "links")
    counts = {link.index: _grown(address, link, now[link.index]) for link in used}
    silent = [index for index, count in counts.items() if not count]
    if len(silent) == len(used):
        reason = f"GPU {address} does not count the errors of its NVLinks"
        return CHECK.result("SKIPPED", address, reason)
    if silent:
        listed = ", ".join(map(str, silent))
        raise Unreadable(f"NVLink {listed} of GPU {address} does not count errors, although others do")
    total = sum(sum(count.values()) for count in counts.values())
    listed = ", ".join(
        f"{number} {kind} (link {index})"
        for index, count in counts.items()
        for kind, number in count.items()
        if number
    )
    reason = f"the NVLinks of GPU {address} counted {listed or 'no'} errors under load"
    return _result(address, "FAIL" if total > LIMIT else "PASS", reason, total, "errors")


def _still_up(address: str, link: NvLink | None) -> bool:
    if link is None:
        return False
    return link.active.require(f"the state of NVLink {link.index} of GPU {address} after the load")


def _grown(address: str, before: NvLink, after: NvLink) -> dict[str, int]:
    """New errors by kind; empty for a link that counts none of them.

    Raises:
        Unreadable: A counter could not be read or went back, or the link counts only some kinds.
    """
    found = {
        kind: growth_where_counted(
            getattr(before, field),
            getattr(after, field),
            f"the {kind} error counter of NVLink {before.index} of GPU {address}",
        )
        for kind, field in _COUNTERS.items()
    }
    missing = [kind for kind, count in found.items() if count is None]
    if missing and len(missing) < len(found):
        listed = ", ".join(missing)
        raise Unreadable(f"NVLink {before.index} of GPU {address} counts some errors but not {listed}")
    return {kind: count for kind, count in found.items() if count is not None}


def _result(address: str, status: str, reason: str, measured: int, unit: str) -> CheckResult:
    return CHECK.result(
        "FAIL" if status == "FAIL" else "PASS",
        address,
        reason,
        measured=measured,
        limit=LIMIT,
        unit=unit,
        source=SOURCE,
    )


CHECK = Check(
    id="nvlinks_load",
    title="no NVLink errors under load",
    phase="load",
    evaluate=evaluate,
)
