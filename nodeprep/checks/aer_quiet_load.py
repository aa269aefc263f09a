"""No hop on the way to a GPU reported a PCIe error while the node was under load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodeprep.checks._aer import SEVERITIES, why_not_owned
from nodeprep.checks._check import Check, Context
from nodeprep.checks._counters import DEVICE, grown, growth
from nodeprep.checks._facts import facts, require_same_boot
from nodeprep.checks._hops import Hop, gpu_paths, way
from nodeprep.model.facts import Aer, GpuPath
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# A link that is accepted is a quiet one. PCIe lets a link err at a bit error rate of 1e-12, and the
# monitor's aer_per_5min lets a node in service err more; but bursts of corrected errors preceded the
# loss of a GPU by 23 minutes in the field, and a node that has them when new will not get better.
CORRECTED_LIMIT = 0
SOURCE = "nodeprep: an accepted link is quiet (stricter than PCIe's bit error rate, see the page)"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a hop, with the errors by type."""
    require_same_boot(context)
    judged: set[str] = set()
    for path, where in gpu_paths(context, "before"):
        try:
            hops = _owned_hops(context, path)
        except Unreadable as error:
            yield CHECK.result("ERROR", path.gpu, str(error), evidence=(where,))
            continue
        for hop in hops:
            if hop.address not in judged:
                judged.add(hop.address)
                yield CHECK.on(hop.address, f"{hop.where}/aer", _judge, context, hop)


def _owned_hops(context: Context, path: GpuPath) -> tuple[Hop, ...]:
    found = way(context, "before", path)
    why = why_not_owned(context.before, found)
    if why:
        raise Unreadable(f"errors above GPU {path.gpu} are unknown, not zero, as nobody counts them: {why}")
    return found.hops


def _judge(context: Context, before: Hop) -> CheckResult:
    document = facts(context, "after")
    document.pci.devices.require("the PCI device list after the load")
    after = document.pci_device(before.address)
    if after is None:
        return CHECK.result(
            "FAIL",
            before.address,
            f"{before.address} was on the PCI bus before the load and is gone",
            measured="gone",
            limit="still there",
            source="the PCI bus before the load",
        )
    is_root = before.device.port_type.require(f"the port type of {before.address}") == "root_port"
    counts = dict(_new_errors(before.address, before.device.aer, after.aer, is_root))
    total = sum(counts.values())
    listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count)
    return CHECK.result(
        "FAIL" if total > CORRECTED_LIMIT else "PASS",
        before.address,
        f"{before.address} reported errors under load: {listed}"
        if total
        else f"{before.address} reported no error under load",
        measured=total,
        limit=CORRECTED_LIMIT,
        unit="errors",
        source=SOURCE,
    )


def _new_errors(address: str, before: Aer, after: Aer, is_root: bool) -> Iterator[tuple[str, int]]:
    for severity in SEVERITIES:
        what = f"the {severity} AER counters of {address}"
        old: Mapping[str, int] = getattr(before, severity).require(f"{what} before the load")
        new: Mapping[str, int] = getattr(after, severity).require(f"{what} after the load")
        if old.keys() != new.keys():
            raise Unreadable(f"{what} have other names after the load")
        for name in old:
            yield f"{name} ({severity})", grown(old[name], new[name], f"{name} of {address}", DEVICE)
    for severity in SEVERITIES if is_root else ():
        # The errors of a device that can no longer be reached are counted here and nowhere else.
        what = f"the root port's total of {severity} errors of {address}"
        field = f"rootport_{severity}"
        total = growth(getattr(before, field), getattr(after, field), what, DEVICE)
        yield f"received as root port ({severity})", total


CHECK = Check(
    id="aer_quiet_load",
    title="no PCIe errors on any hop under load",
    phase="load",
    evaluate=evaluate,
)
