"""What a node has, before a trial boot and in it: a wrong kernel argument takes something away.

Nothing may be lost. What cannot be counted counts as lost, because a trial that nobody could judge is
not a good one.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from . import aer_ownership, boot_log, cpu, kernel_log, kernel_use, memory, net, pci, storage, trial_system
from .kernel_event import classify
from .paths import exists, link_target_name, list_folder, read_bytes, read_text
from .reading import Reading, attempt, value_or

# Memory that the kernel reserves for itself (crashkernel=, cma=, swiotlb) moves MemTotal a little
# between boots and arguments. A wrong mem= or a lost NUMA node takes far more.
MEMORY_TOLERANCE = 0.02
MEMORY_TOLERANCE_BYTES = 64 * 1024**2

# What a trial cannot be judged without.
COUNTED = ("cpus", "memory_bytes", "nics", "gpus", "disks", "drivers", "aer", "events")

_NETWORK_CLASS = "0x02"

# Drivers whose going is no loss by itself: the first is what one blacklists to run GPUs, the others keep a
# device for virtual machines, and are bound when those start.
_NO_LOSS = frozenset({"nouveau", "vfio-pci", "pci-stub"})

# Owner of AER on a root bridge.
OS, NOT_OS, NOBODY = "the OS", "not the OS", "nobody: the bridge has no ACPI node"

# Lines of these kinds say that the kernel or a CPU is in trouble, whatever else they say.
_FATAL_KINDS = frozenset({"oops", "lockup", "mce", "hung_task", "dpc"})
# "(Non-Fatal)" is none of these. Source: drivers/pci/pcie/aer.c, drivers/firmware/efi/cper.c.
_FATAL_TEXT = re.compile(r"\(Fatal\)|severity: (?:fatal|recoverable)", re.IGNORECASE)
Finding = Dict[str, Any]


class Compared(NamedTuple):
    """What speaks against a boot, and what is only worth saying."""

    findings: List[Finding]
    notes: List[str]


def collect(root: str, gpu_ids: Sequence[str] = ()) -> Dict[str, Any]:
    """Everything that is compared, each as a reading.

    Args:
        root: "/" or a simulated root.
        gpu_ids: Further "vendor:device" pairs to take for GPUs.
    """
    records = attempt(kernel_log.read_records, root)
    log = attempt(_log_lines, root, records)
    return {
        "cpus": attempt(lambda: cpu.count_cpus(read_text(root, "/sys/devices/system/cpu/online"))),
        "memory_bytes": attempt(memory.total_bytes, root),
        "nics": attempt(_nics, root),
        "gpus": attempt(_gpus, root, tuple(gpu_ids)),
        "disks": attempt(_disks, root),
        "drivers": attempt(_drivers, root, tuple(gpu_ids)),
        "aer": attempt(_aer_owners, root, records),
        "events": attempt(_events, log),
        "unknown_arguments": attempt(_unknown_arguments, root, log),
        "system_state": attempt(trial_system.state, root),
        "failed_units": attempt(trial_system.failed_units, root),
    }


def gaps(witness: Dict[str, Any]) -> List[str]:
    """What is missing from a witness, so that no trial could be judged by it."""
    return [f"{name}: {witness[name]['detail']}" for name in COUNTED if witness[name]["state"] != "ok"]


def compare(before: Dict[str, Any], after: Dict[str, Any], accept_aer_loss: bool) -> Compared:
    """What a boot lost, and what is new in it that should not be.

    Args:
        before: From before the trial, without gaps.
        after: From the trial boot.
        accept_aer_loss: Lost ownership of AER is said, and does not count.
    """
    compared = Compared([], [])
    for name, lost in _LOST.items():
        if name not in before:
            why = "not: the trial was staged by another version of nodeprep"
            compared.findings.append(_finding(name, "noted before the trial", why))
        elif after[name]["state"] != "ok":
            compared.findings.append(_finding(name, "readable", f"unreadable: {after[name]['detail']}"))
        else:
            compared.findings.extend(lost(before[name]["value"], after[name]["value"]))
    _compare_aer(before["aer"], after["aer"], accept_aer_loss, compared)
    _compare_events(before["events"], after["events"], compared)
    _compare_system(before, after, compared)
    unknown = value_or(after["unknown_arguments"], [])
    compared.notes.extend(f"the kernel does not know {word}" for word in unknown)
    if "drivers" in before:
        compared.notes.extend(_no_loss(before["drivers"]["value"], value_or(after["drivers"], {})))
    compared.notes.extend(_renamed(before["nics"]["value"], value_or(after["nics"], [])))
    return compared


def settled(compared: Compared, after: Dict[str, Any]) -> bool:
    """Whether waiting would change nothing: the node is up, and nothing that drivers bring is missing."""
    late = {"nics", "gpus", "disks", "drivers", "cpus"}
    starting = value_or(after["system_state"], "") in ("initializing", "starting")
    return not starting and not any(finding["what"] in late for finding in compared.findings)


# ---- what is read ------------------------------------------------------------------------------------


def _gpus(root: str, gpu_ids: Sequence[str]) -> List[str]:
    """GPUs that answer: sysfs keeps a device whose configuration space reads all 0xff."""
    return [
        address
        for address in pci.gpus(root, gpu_ids)
        if read_bytes(root, f"{pci.DEVICES}/{address}/config", 2) != b"\xff\xff"
    ]


def _nics(root: str) -> List[Dict[str, str]]:
    """Interfaces with hardware behind them; virtual functions come and go with services."""
    return [
        {
            "name": nic["name"],
            "mac": value_or(nic["mac"], ""),
            "pci_address": value_or(nic["pci_address"], ""),
        }
        for nic in net.collect(root)
        if not exists(root, f"/sys/class/net/{nic['name']}/device/physfn")
    ]


def _drivers(root: str, gpu_ids: Sequence[str]) -> Dict[str, str]:
    """Driver that is bound, by PCI address of GPUs and NICs, "" for none: without one a device is no use."""
    gpus = pci.gpus(root, gpu_ids)
    return {
        address: _driver(root, f"{pci.DEVICES}/{address}")
        for address in list_folder(root, pci.DEVICES)
        if address in gpus or _is_nic(root, f"{pci.DEVICES}/{address}")
    }


def _driver(root: str, folder: str) -> str:
    return link_target_name(root, f"{folder}/driver") if exists(root, f"{folder}/driver") else ""


def _is_nic(root: str, folder: str) -> bool:
    """A network controller, and no virtual function."""
    return read_text(root, f"{folder}/class").startswith(_NETWORK_CLASS) and not exists(
        root, f"{folder}/physfn"
    )


def _disks(root: str) -> List[Dict[str, str]]:
    """Whole disks with hardware behind them."""
    return [{"name": name, "id": _disk_id(root, f"/sys/block/{name}")} for name in storage.collect(root)]


def _disk_id(root: str, folder: str) -> str:
    """What a disk is told apart by when names move; "" when it says nothing of the kind."""
    for name in ("wwid", "device/wwid", "device/serial", "serial"):
        if exists(root, f"{folder}/{name}"):
            text = attempt(read_text, root, f"{folder}/{name}")
            if value_or(text, ""):
                return str(text["value"])
    return ""


def _aer_owners(root: str, records: Reading) -> Dict[str, str]:
    """Owner of AER by root bridge; a bridge whose owner cannot be told has the reason instead."""
    cmdline = attempt(read_text, root, "/proc/cmdline")
    ownership = aer_ownership.collect(root, cmdline, records)
    for name in ("root_bridges", "noaer", "ports_native"):
        if ownership[name]["state"] != "ok":
            raise OSError(f"{name}: {ownership[name]['detail']}")
    native = ownership["ports_native"]["value"] and not ownership["noaer"]["value"]
    return {
        bridge["bus"]: _owner(bridge["controls"], native, ownership["noaer"]["value"])
        for bridge in ownership["root_bridges"]["value"]
    }


def _owner(controls: Reading, native: bool, noaer: bool) -> str:
    if native:
        return OS
    if noaer:
        return NOT_OS
    if controls["state"] == "ok":
        return OS if "AER" in controls["value"] else NOT_OS
    return NOBODY if controls["state"] == "not_supported" else f"unknown: {controls['detail']}"


def _log_lines(root: str, records: Reading) -> List[str]:
    """All kernel lines of this boot; from the journal when the kernel has dropped the first ones.

    Raises:
        OSError: They are not to be had in full.
    """
    lines = boot_log.boot_lines(root, records)
    kept: List[kernel_log.Record] = records["value"]
    lost = kept[-1].sequence - kept[0].sequence + 1 - len(kept)
    if lost:
        raise OSError(f"{lost} records of the kernel log were overwritten while it was read")
    return lines


def _events(log: Reading) -> List[List[str]]:
    """Kernel events that no good boot has, each with kind, device and text; one of each kind and device."""
    if log["state"] != "ok":
        raise OSError(log["detail"])
    found: Dict[Tuple[str, str], List[str]] = {}
    for line in log["value"]:
        event = classify(line)
        if event is not None and (event.kind in _FATAL_KINDS or _FATAL_TEXT.search(line)):
            found.setdefault((event.kind, event.device), [event.kind, event.device, line])
    return list(found.values())


def _unknown_arguments(root: str, log: Reading) -> List[str]:
    if log["state"] != "ok":
        raise OSError(log["detail"])
    return kernel_use.unknown_arguments(read_text(root, "/proc/cmdline"), log["value"])


# ---- what is compared --------------------------------------------------------------------------------


def _finding(what: str, before: Any, now: Any) -> Finding:
    return {"what": what, "before": before, "now": now}


def _fewer_cpus(before: int, now: int) -> List[Finding]:
    return [_finding("cpus", f"{before} online", f"{now} online")] if now < before else []


def _less_memory(before: int, now: int) -> List[Finding]:
    tolerance = max(MEMORY_TOLERANCE * before, MEMORY_TOLERANCE_BYTES)
    if before - now <= tolerance:
        return []
    return [_finding("memory_bytes", f"{before // 1024**2} MiB", f"{now // 1024**2} MiB")]


def _lost_gpus(before: List[str], now: List[str]) -> List[Finding]:
    lost = [address for address in before if address not in now]
    return [_finding("gpus", f"{address} on the bus", "not there") for address in lost]


def _lost_nics(before: List[Dict[str, str]], now: List[Dict[str, str]]) -> List[Finding]:
    lost = _unmatched(before, now, ("pci_address", "mac", "name"))
    return [_finding("nics", f"{nic['name']} ({nic['mac'] or 'no address'})", "not there") for nic in lost]


def _lost_disks(before: List[Dict[str, str]], now: List[Dict[str, str]]) -> List[Finding]:
    lost = _unmatched(before, now, ("id", "name"))
    return [_finding("disks", f"{disk['name']} ({disk['id'] or 'no id'})", "not there") for disk in lost]


def _lost_drivers(before: Dict[str, str], now: Dict[str, str]) -> List[Finding]:
    """A device that is gone, or has another address, is for the others to tell."""
    return [
        _finding("drivers", f"{driver} on {address}", now[address] or "no driver")
        for address, driver in before.items()
        if driver and driver not in _NO_LOSS and now.get(address, driver) != driver
    ]


def _no_loss(before: Dict[str, str], now: Dict[str, str]) -> List[str]:
    return [
        f"{address} has the driver {now[address] or 'none'}, and had {driver} before"
        for address, driver in before.items()
        if driver in _NO_LOSS and now.get(address, driver) != driver
    ]


def _unmatched(
    before: List[Dict[str, str]], now: List[Dict[str, str]], marks: Sequence[str]
) -> List[Dict[str, str]]:
    """Those that are not there any more, by any of their marks; each one now stands for one before."""
    left, free = list(before), list(now)
    for mark in marks:
        for one in list(left):
            twin = next((other for other in free if one[mark] and other[mark] == one[mark]), None)
            if twin is not None:
                left.remove(one)
                free.remove(twin)
    return left


_LOST: Dict[str, Callable[[Any, Any], List[Finding]]] = {
    "cpus": _fewer_cpus,
    "memory_bytes": _less_memory,
    "nics": _lost_nics,
    "gpus": _lost_gpus,
    "disks": _lost_disks,
    "drivers": _lost_drivers,
}


def _renamed(before: List[Dict[str, str]], now: List[Dict[str, str]]) -> List[str]:
    names = {nic["mac"]: nic["name"] for nic in now}
    moved = [(nic["name"], names.get(nic["mac"], nic["name"])) for nic in before if nic["mac"]]
    return [f"interface {old} is called {new} now" for old, new in moved if old != new]


def _compare_aer(before: Reading, after: Reading, accepted: bool, compared: Compared) -> None:
    if after["state"] != "ok":
        compared.findings.append(_finding("aer", "readable", f"unreadable: {after['detail']}"))
        return
    for bus, owner in before["value"].items():
        now = after["value"].get(bus, "the root bridge is not there")
        # An owner that could not be told before may have been the OS: then it has to be now.
        if now == OS or owner in (NOT_OS, NOBODY):
            continue
        finding = _finding("aer", f"root bridge {bus} owned by {owner}", f"owned by {now}")
        if accepted and now in (NOT_OS, NOBODY):
            compared.notes.append(f"accepted: AER of root bridge {bus}: {owner} before, {now} now")
        else:
            compared.findings.append(finding)


def _compare_events(before: Reading, after: Reading, compared: Compared) -> None:
    if after["state"] != "ok":
        compared.findings.append(_finding("events", "readable", f"unreadable: {after['detail']}"))
        return
    known = {(kind, device) for kind, device, _ in before["value"]}
    compared.findings.extend(
        _finding("events", f"no {kind} event", line)
        for kind, device, line in after["value"]
        if (kind, device) not in known
    )


def _compare_system(before: Dict[str, Any], after: Dict[str, Any], compared: Compared) -> None:
    was, now = value_or(before["system_state"], ""), value_or(after["system_state"], "")
    if now in ("maintenance", "stopping") and now != was:
        compared.findings.append(_finding("system_state", was or "unknown", now))
    elif now in ("initializing", "starting"):
        compared.notes.append("systemd is still starting units")
    if after["failed_units"]["state"] == "ok":
        known = value_or(before["failed_units"], [])
        new = [unit for unit in after["failed_units"]["value"] if unit not in known]
        compared.notes.extend(f"unit {unit} failed, and had not before" for unit in new)
    elif after["failed_units"]["state"] == "error":
        compared.notes.append(f"failed units are unknown: {after['failed_units']['detail']}")
