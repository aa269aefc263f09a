"""No hop on the way to a GPU reported a PCIe error while the node was under load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodeprep.checks._aer import SEVERITIES, why_not_owned
from nodeprep.checks._aer_senders import senders
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
_KINDS = {"root_port": "root port", "upstream_port": "switch port", "downstream_port": "switch port"}
SOURCE = "nodeprep: an accepted link is quiet (stricter than PCIe's bit error rate, see the page)"


@dataclass(frozen=True, slots=True)
class _Place:
    """A hop with the ways it lies on."""

    hop: Hop
    number: int
    of: int
    gpus: list[str]

    @property
    def name(self) -> str:
        """What it is and where, for example "root port 0000:60:01.0 (hop 1 of 4 to GPU 0000:63:00.0)"."""
        kind = _KINDS.get(self.hop.device.port_type.value or "", "device")
        if self.hop.address in self.gpus:
            return f"GPU {self.hop.address} (hop {self.number} of {self.of})"
        return f"{kind} {self.hop.address} (hop {self.number} of {self.of} to GPU {' and '.join(self.gpus)})"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a hop, with the errors by type and, for a root port, who sent them."""
    require_same_boot(context)
    places: dict[str, _Place] = {}
    for path, where in gpu_paths(context, "before"):
        try:
            hops = _owned_hops(context, path)
        except Unreadable as error:
            yield CHECK.result("ERROR", path.gpu, str(error), evidence=(where,))
            continue
        for number, hop in enumerate(hops, 1):
            places.setdefault(hop.address, _Place(hop, number, len(hops), [])).gpus.append(path.gpu)
    names = {address: place.name for address, place in places.items()}
    for address, place in places.items():
        yield CHECK.on(address, f"{place.hop.where}/aer", _judge, context, place, names)


def _owned_hops(context: Context, path: GpuPath) -> tuple[Hop, ...]:
    found = way(context, "before", path)
    why = why_not_owned(context.before, found)
    if why:
        raise Unreadable(f"errors above GPU {path.gpu} are unknown, not zero, as nobody counts them: {why}")
    return found.hops


def _judge(context: Context, place: _Place, names: Mapping[str, str]) -> CheckResult:
    document, before = facts(context, "after"), place.hop
    document.pci.devices.require("the PCI device list after the load")
    after = document.pci_device(before.address)
    if after is None:
        return CHECK.result(
            "FAIL",
            before.address,
            f"{place.name} was on the PCI bus before the load and is gone",
            measured="gone",
            limit="still there",
            source="the PCI bus before the load",
        )
    is_root = before.device.port_type.require(f"the port type of {before.address}") == "root_port"
    counts = dict(_new_errors(before.address, before.device.aer, after.aer))
    told = [f"{count} {name}" for name, count in sorted(counts.items()) if count]
    received = dict(_received(before.address, before.device.aer, after.aer)) if is_root else {}
    told += [
        f"{count} received as root port ({severity}), {senders(document, before.address, severity, names)}"
        for severity, count in received.items()
        if count
    ]
    total = sum(counts.values()) + sum(received.values())
    return CHECK.result(
        "FAIL" if total > CORRECTED_LIMIT else "PASS",
        before.address,
        f"{place.name} reported errors under load: {', '.join(told)}"
        if total
        else f"{place.name} reported no error under load",
        measured=total,
        limit=CORRECTED_LIMIT,
        unit="errors",
        source=SOURCE,
    )


def _new_errors(address: str, before: Aer, after: Aer) -> Iterator[tuple[str, int]]:
    for severity in SEVERITIES:
        what = f"the {severity} AER counters of {address}"
        old: Mapping[str, int] = getattr(before, severity).require(f"{what} before the load")
        new: Mapping[str, int] = getattr(after, severity).require(f"{what} after the load")
        if old.keys() != new.keys():
            raise Unreadable(f"{what} have other names after the load")
        for name in old:
            yield f"{name} ({severity})", grown(old[name], new[name], f"{name} of {address}", DEVICE)


def _received(address: str, before: Aer, after: Aer) -> Iterator[tuple[str, int]]:
    """Messages from below a root port: errors of a device out of reach are counted here and nowhere else."""
    for severity in SEVERITIES:
        field = f"rootport_{severity}"
        what = f"the root port's total of {severity} errors of {address}"
        yield severity, growth(getattr(before, field), getattr(after, field), what, DEVICE)


CHECK = Check(
    id="aer_quiet_load",
    title="no PCIe errors on any hop under load",
    phase="load",
    evaluate=evaluate,
)
