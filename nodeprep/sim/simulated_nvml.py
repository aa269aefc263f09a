"""A simulated NVIDIA driver library for one root, underneath the real nvidia-ml-py.

nodeprep.sim.hardware copies this file to ROOT/usr/lib/nodeprep/simulated_nvml.py and writes
ROOT/usr/lib/nodeprep/gpus.json beside it. It stands alone there: standard library only, Python >=
3.8. `Library` has NVML's C entry points as attributes; nvidia-ml-py calls them with ctypes arguments
as it would the real library, so everything above (structures, versions, return codes) is real code.

Driver state (limits, persistence) lives in ROOT/run, and so is lost with a reboot, like the real one.
While a marker in ROOT/run/nodeprep-load exists, GPUs are under load.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import math
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

DATA = "usr/lib/nodeprep/gpus.json"
OVERLAY = "usr/lib/nodeprep/on_load"
STATE = "run/nodeprep-nvml.json"
LOAD = "run/nodeprep-load"
HISTORY = "run/nodeprep-load-history"
BURSTS = "run/nodeprep-bursts"

SUCCESS = 0
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
TIMEOUT = 10
CORRUPTED_INFOROM = 14
ARGUMENT_VERSION_MISMATCH = 25

# Seconds in which temperature comes within 37 % of its final value; short, so that the short runs of
# a simulated rack show a curve.
THERMAL_S = 6.0
THROUGHPUT_WINDOW_S = 0.02
UINT, ULONGLONG, INT = 1, 3, 5
# Instantaneous draw of a square wave, as parts of the limit. Source: measured on an H200 SXM, 8192^3
# products with a period of 0.25 s: 974 W and 114 W at 700 W.
BURST_PEAK, BURST_TROUGH = 1.39, 0.163
XID_EVENT = 0x8
# What an H200 with driver 580 says it can tell of; the Xid is one of these bits.
_EVENT_TYPES = 65439


class Refused(Exception):
    """An NVML return code other than success."""

    def __init__(self, code: int) -> None:
        super().__init__(f"NVML return code {code}")
        self.code = code


# ---- load -------------------------------------------------------------------------------------------


def begin_load(root: str, address: str = "") -> None:
    """Puts one GPU, or all, under load for as long as this process lives or until `end_load`.

    The first load after a rest also lays ROOT/usr/lib/nodeprep/on_load/ over the root: faults that the
    operating system sees only under load. Records of dev/kmsg are appended, AER counts (files named
    aer_*) are added, other files are replaced.
    """
    with _locked(root):
        rested = not any(_alive(pid) for pid in _loaders(root))
        _write(_marker(root, address), repr(time.time()))
        if rested:
            _lay_over(Path(root))


def end_load(root: str, address: str = "") -> None:
    """Ends this process's load on one GPU, or on all."""
    marker = _marker(root, address)
    try:
        start = float(marker.read_text())
    except FileNotFoundError:
        return
    addresses = [address] if address else [gpu["address"] for gpu in _data(root)["gpus"]]
    for each in addresses:
        before = _history(root, each)
        seconds = before["seconds"] + time.time() - start
        entry = {"seconds": seconds, "start": start, "end": time.time()}
        _write(_history_path(root, each), json.dumps(entry))
    with contextlib.suppress(FileNotFoundError):
        marker.unlink()


def begin_bursts(root: str, address: str, period_s: float, duty: float) -> None:
    """Lets a loaded GPU's draw swing between full load and rest, until `end_bursts` or this process's end."""
    _write(_burst_reads(root, address), "")
    shape = {"start": time.time(), "period_s": period_s, "duty": duty, "pid": os.getpid()}
    _write(Path(root, BURSTS, address), json.dumps(shape))


def burst_reads(root: str, address: str) -> tuple[int, int]:
    """How often the draw has been read since `begin_bursts`, at full load and at rest."""
    seen = _burst_reads(root, address).read_text()
    return seen.count("1"), seen.count("0")


def end_bursts(root: str, address: str) -> None:
    """The load is steady again."""
    with contextlib.suppress(FileNotFoundError):
        Path(root, BURSTS, address).unlink()


def _burst_reads(root: str, address: str) -> Path:
    return Path(root, BURSTS, f"{address}.reads")


def bad_cells(root: str, address: str) -> list[dict[str, Any]]:
    """Words of a GPU's memory with a bit that cannot be cleared: {"block", "word", "bit"} each."""
    gpus = [gpu for gpu in _data(root)["gpus"] if gpu["address"] == address]
    return [fault for gpu in gpus for fault in gpu["faults"] if fault["fault"] == "bad_cell"]


def flips(root: str) -> list[dict[str, Any]]:
    """Bits that GPUs of this root compute wrongly: {"address", "block", "bit", "iteration"} each."""
    return [
        {"address": gpu["address"], "block": f["block"], "bit": f["bit"], "iteration": f["iteration"]}
        for gpu in _data(root)["gpus"]
        for f in gpu["faults"]
        if f["fault"] == "flip"
    ]


def peer_faults(root: str) -> list[dict[str, Any]]:
    """What is wrong between GPUs of this root: peer_slow, peer_corrupt and peer_hang, each with "address"."""
    return [
        {**fault, "address": gpu["address"]}
        for gpu in _data(root)["gpus"]
        for fault in gpu["faults"]
        if fault["fault"].startswith("peer_")
    ]


def _marker(root: str, address: str) -> Path:
    return Path(root, LOAD, f"{address or 'all'}@{os.getpid()}")


def _history_path(root: str, address: str) -> Path:
    return Path(root, HISTORY, address)


def _history(root: str, address: str) -> dict[str, float]:
    try:
        entry: dict[str, float] = json.loads(_history_path(root, address).read_text())
    except FileNotFoundError:
        return {"seconds": 0.0, "start": 0.0, "end": 0.0}
    return entry


def _loads(root: str, address: str) -> list[float]:
    """When each load that runs now on a GPU began; loads of dead processes do not count."""
    starts = []
    for whose in (address, "all"):
        for marker in Path(root, LOAD).glob(f"{whose}@*"):
            pid = marker.name.rpartition("@")[2]
            # A marker may go between the listing and the reading: then that load has ended.
            with contextlib.suppress(FileNotFoundError):
                if pid.isdigit() and _alive(int(pid)):
                    starts.append(float(marker.read_text()))
    return starts


def _loaders(root: str) -> list[int]:
    """Processes that loaded a GPU and did not say that they ended."""
    pids = [marker.name.rpartition("@")[2] for marker in Path(root, LOAD).glob("*@*")]
    return [int(pid) for pid in pids if pid.isdigit()]


def _alive(pid: int) -> bool:
    """True while a process runs; one that is dead and was never waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


def _lay_over(root: Path) -> None:
    overlay = root / OVERLAY
    for source in sorted(path for path in overlay.rglob("*") if path.is_file()):
        inside = source.relative_to(overlay)
        target = root / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        if inside == Path("dev", "kmsg"):
            _append_records(target, source.read_text())
        elif inside.name.startswith("aer_") and target.exists():
            target.write_text(_added(target.read_text(), source.read_text()))
        else:
            shutil.copyfile(source, target)


def _append_records(log: Path, records: str) -> None:
    """Appends kernel log records, numbered and dated on from the last one that is there."""
    written = log.read_text().splitlines()
    number, now = (int(field) for field in written[-1].split(",")[1:3]) if written else (-1, 0)
    lines = records.splitlines()
    shift = max(0, now + 1 - int(lines[0].split(",")[2])) if lines else 0
    with log.open("a") as file:
        for line in lines:
            header, _, text = line.partition(";")
            priority, _, when, flags = header.split(",")
            number += 1
            file.write(f"{priority},{number},{int(when) + shift},{flags};{text}\n")


def _added(old: str, new: str) -> str:
    """Counts of two aer_* files together: "NAME COUNT" lines, or one bare number."""
    more = {name: int(count) for name, _, count in (line.rpartition(" ") for line in new.splitlines())}
    total = ""
    for line in old.splitlines():
        name, space, count = line.rpartition(" ")
        total += f"{name}{space}{int(count) + more.get(name, 0)}\n"
    return total


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def _data(root: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(Path(root, DATA).read_text())
    return data


# ---- one GPU ----------------------------------------------------------------------------------------


class Gpu:
    """The present state of one simulated GPU: its data, faults, driver state and load."""

    def __init__(self, root: str, data: dict[str, Any]) -> None:
        self.root = root
        self.data = data
        self.address: str = data["address"]
        self._phase = zlib.crc32(data["uuid"].encode()) % 1000 / 1000.0 * 2 * math.pi

    def faults(self, kind: str) -> list[dict[str, Any]]:
        """Faults of a kind that show now."""
        found = [fault for fault in self.data["faults"] if fault["fault"] == kind]
        if any(fault.get("under_load") for fault in found) and not self.under_load():
            return [fault for fault in found if not fault.get("under_load")]
        return found

    def get(self, path: str) -> Any:
        """A value by its path in gpus.json ("link.width_lanes"), as faults leave it."""
        for fault in self.faults("values"):
            if path in fault["set"]:
                return fault["set"][path]
        value: Any = self.data
        for key in path.split("."):
            value = value[key]
        return value

    def need(self, path: str) -> Any:
        """A value that a part may lack.

        Raises:
            Refused: NOT_SUPPORTED, where gpus.json has null.
        """
        value = self.get(path)
        if value is None:
            raise Refused(NOT_SUPPORTED)
        return value

    def counter(self, path: str) -> int:
        """A counter, with what `rate` faults have added while under load."""
        rates = [f["per_s"] for f in self.data["faults"] if f["fault"] == "rate" and f["counter"] == path]
        return int(self.need(path)) + int(sum(rates) * self.load_seconds())

    # load

    def under_load(self) -> bool:
        """True while anybody loads this GPU."""
        return bool(_loads(self.root, self.address))

    def load_seconds(self) -> float:
        """Seconds under load since boot."""
        starts = _loads(self.root, self.address)
        now = time.time() - min(starts) if starts else 0.0
        return float(_history(self.root, self.address)["seconds"]) + now

    def wave(self, amplitude: float, period_s: float) -> float:
        """A smooth ripple, of another phase on each GPU."""
        return amplitude * math.sin(2 * math.pi * time.time() / period_s + self._phase)

    def warmth(self) -> float:
        """0 at idle temperature, 1 at the temperature of a long load."""
        now = time.time()
        starts = _loads(self.root, self.address)
        last = _history(self.root, self.address)
        left = 0.0
        if last["end"]:
            reached = 1 - math.exp(-(last["end"] - last["start"]) / THERMAL_S)
            left = reached * math.exp(-(now - last["end"]) / THERMAL_S)
        if not starts:
            return left
        return 1 - (1 - left) * math.exp(-(now - min(starts)) / THERMAL_S)

    # power

    def state(self) -> dict[str, Any]:
        """Driver state, with the defaults of a driver just loaded."""
        stored = _stored_state(self.root).get(self.data["uuid"], {})
        fresh = {"limit_mw": int(self.get("power.default_w") * 1000), "client": 0}
        state = {"persistence": self.get("persistence"), **fresh, **stored}
        # Without persistence the driver lets go of the GPU with its last client, and of the limit with it.
        if not state["persistence"] and not (_alive(state["client"]) if state["client"] else False):
            state.update(fresh)
        return state

    def change(self, **values: Any) -> None:
        """Writes driver state."""
        with _locked(self.root):
            states = _stored_state(self.root)
            states[self.data["uuid"]] = {**self.state(), "client": os.getpid(), **values}
            _write(Path(self.root, STATE), json.dumps(states))

    def enforced_mw(self) -> int:
        """The limit the board obeys: the lower of the driver's and the BMC's."""
        cap = self.get("power.out_of_band_cap_w")
        limit = int(self.state()["limit_mw"])
        return limit if cap is None else min(limit, int(cap * 1000))

    def power_mw(self, ripple: float = 0.01) -> int:
        """Draw now."""
        idle = self.get("power.idle_w") * 1000
        if not self.under_load():
            return int(idle * (1 + self.wave(0.01, 7.0)))
        full = self.enforced_mw() * self.get("power.load_fraction") * self.slowdown()
        rise = 1 - math.exp(-max(0.0, time.time() - min(_loads(self.root, self.address) or [0.0])) / 0.3)
        return int((idle + (full - idle) * rise) * (1 + self.wave(ripple, 3.1)))

    def power_instant_mw(self) -> int:
        """Draw now, without the smoothing of `power_mw`."""
        shape = self._burst_shape()
        if shape is None:
            return self.power_mw(0.12 if self.under_load() else 0.01)
        place = (time.time() - shape["start"]) % shape["period_s"] / shape["period_s"]
        loaded = place < shape["duty"]
        # The first period belongs to whatever was before.
        if time.time() - shape["start"] > shape["period_s"]:
            with _burst_reads(self.root, self.address).open("a") as reads:
                reads.write(f"{loaded:d}")
        part = BURST_PEAK if loaded else BURST_TROUGH
        return int(self.enforced_mw() * part * self.slowdown() * (1 + self.wave(0.01, 0.7)))

    def _burst_shape(self) -> dict[str, float] | None:
        try:
            shape: dict[str, float] = json.loads(Path(self.root, BURSTS, self.address).read_text())
        except FileNotFoundError:
            return None
        return shape if _alive(int(shape["pid"])) else None

    def slowdown(self) -> float:
        """How much of its speed the GPU has left when a failing clock-event reason is set."""
        return 0.6 if self.event_reasons() & 0xE8 else 1.0

    def event_reasons(self) -> int:
        """The clock-event mask: idle, or the power cap of a busy GPU, and what faults add."""
        mask = 0x4 if self.under_load() else 0x1
        extra: int = self.get("clocks.extra_event_reasons")
        return mask | extra

    # temperature, clocks

    def temperature_c(self) -> int:
        """Core temperature."""
        idle, load = self.get("temperature.idle_c"), self.get("temperature.load_c")
        celsius: float = idle + (load - idle) * self.warmth() + self.wave(0.4, 11.0)
        return round(celsius)

    def sm_mhz(self) -> int:
        """Clock of the multiprocessors, in the steps of 15 MHz that GPUs have."""
        if not self.under_load():
            return int(self.get("clocks.idle_sm_mhz"))
        # Dynamic power goes with about the cube of the clock.
        capped = (self.enforced_mw() / 1000 / self.get("power.default_w")) ** (1 / 3)
        wanted = self.get("clocks.load_sm_mhz") * min(1.0, capped) * self.slowdown()
        return int((wanted + self.wave(10, 2.3)) // 15 * 15)

    # NVLink

    def nvlink(self, link: int, path: str) -> Any:
        """A value of one NVLink.

        Raises:
            Refused: INVALID_ARGUMENT past the last link, NOT_SUPPORTED on a part without.
        """
        if not 0 <= link < self.need("nvlink.count"):
            raise Refused(INVALID_ARGUMENT)
        return self.get(path)

    # PCIe

    def link_gen(self) -> int:
        """An idle GPU may run its link slower."""
        return int(self.get("link.gen" if self.under_load() else "link.idle_gen"))

    def pcie_bytes(self, direction: str) -> int:
        """Bytes since boot: a little housekeeping, and the copies of a loaded GPU."""
        seconds = self.load_seconds()
        period = 9.0
        smooth = seconds + 0.03 * (1 - math.cos(2 * math.pi * seconds / period)) * period / (2 * math.pi)
        return int(1.2e6 * (time.time() % 86400) + self.copy_rate(direction) * smooth)

    def copy_rate(self, direction: str) -> float:
        """Bytes a second under load, limited by the link as it is trained."""
        per_lane = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
        usable = per_lane[int(self.get("link.gen"))] * int(self.get("link.width_lanes")) * 0.83
        return float(min(usable, self.get(f"pcie.{direction}_gbps") * 1e9))

    def pcie_kbps(self, direction: str) -> int:
        """Mean over the window in which the driver counts; blocks as long as the real call."""
        began, before = time.monotonic(), self.pcie_bytes(direction)
        time.sleep(THROUGHPUT_WINDOW_S)
        # A busy machine sleeps longer.
        passed = self.pcie_bytes(direction) - before
        return int(passed / (time.monotonic() - began) / 1000)

    def energy_mj(self) -> int:
        """Energy since boot."""
        idle = self.get("power.idle_w") * 1000 * (time.time() % 86400)
        extra = (self.enforced_mw() - self.get("power.idle_w") * 1000) * self.load_seconds()
        return int(idle + extra)


def _stored_state(root: str) -> dict[str, Any]:
    try:
        states: dict[str, Any] = json.loads(Path(root, STATE).read_text())
    except FileNotFoundError:
        return {}
    return states


@contextlib.contextmanager
def _locked(root: str) -> Iterator[None]:
    path = Path(root, STATE + ".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# ---- NVML fields ------------------------------------------------------------------------------------

_PCIE_ERRORS = {
    94: "replays",
    95: "replay_rollovers",
    169: "l0_to_recovery",
    173: "correctable",
    174: "naks_received",
    175: "receiver_errors",
    176: "bad_tlp",
    177: "naks_sent",
    178: "bad_dllp",
    179: "non_fatal",
    180: "fatal",
    181: "unsupported_requests",
    182: "lcrc",
    183: "lane",
}
_REMAP = {142: "correctable", 143: "uncorrectable", 144: "pending", 145: "failure"}
_TLIMITS = {193: "shutdown", 194: "slowdown", 195: "memory_max", 196: "gpu_max"}
_NVLINK_ERRORS = {161: "replay", 162: "recovery", 163: "crc"}


if TYPE_CHECKING:
    FieldReader = Callable[[Gpu, int], int]
    Entry = Callable[..., None]


def _of(read: Callable[[Gpu], int]) -> FieldReader:
    return lambda gpu, _scope: read(gpu)


def _plain(path: str) -> FieldReader:
    return lambda gpu, _scope: int(gpu.need(path))


def _milli(path: str) -> FieldReader:
    return lambda gpu, _scope: int(gpu.need(path) * 1000)


def _counter(path: str) -> FieldReader:
    return lambda gpu, _scope: gpu.counter(path)


def _of_link(path: str) -> FieldReader:
    return lambda gpu, scope: gpu.nvlink(scope, path)


# Value types as a real H200 under driver 580.159 gives them.
FIELDS: dict[int, tuple[int, FieldReader]] = {
    82: (UINT, _of(lambda gpu: gpu.temperature_c() + int(gpu.need("temperature.memory_offset_c")))),
    83: (ULONGLONG, _of(Gpu.energy_mj)),
    185: (UINT, _of(Gpu.power_mw)),
    186: (UINT, _of(Gpu.power_instant_mw)),
    187: (UINT, _milli("power.min_w")),
    188: (UINT, _milli("power.max_w")),
    189: (UINT, _milli("power.default_w")),
    190: (UINT, _of(Gpu.enforced_mw)),
    191: (ULONGLONG, _of(Gpu.energy_mj)),
    192: (UINT, _of(lambda gpu: int(gpu.state()["limit_mw"]))),
    # 32 bits wide on the real driver too: at 50 GB/s they wrap every 86 ms.
    197: (UINT, _of(lambda gpu: gpu.pcie_bytes("tx") % (1 << 32))),
    198: (UINT, _of(lambda gpu: gpu.pcie_bytes("rx") % (1 << 32))),
    230: (UINT, _plain("recovery_action")),
    **{field: (UINT, _counter("pcie_errors." + name)) for field, name in _PCIE_ERRORS.items()},
    **{field: (ULONGLONG, _plain("remap." + name)) for field, name in _REMAP.items()},
    **{field: (INT, _plain(f"temperature.tlimit.{name}_c")) for field, name in _TLIMITS.items()},
    **{field: (ULONGLONG, _of_link(f"nvlink.{name}_errors")) for field, name in _NVLINK_ERRORS.items()},
}

_MEMBER = {UINT: "uiVal", ULONGLONG: "ullVal", INT: "siVal"}


def _field_values(gpu: Gpu, count: Any, array: Any) -> None:
    for item in _target(array)[: _number(count)]:
        item.timestamp = int(time.time() * 1e6)
        try:
            item.valueType, read = FIELDS.get(item.fieldId, (0, _unknown_field))
            for fault in gpu.faults("field_error"):
                if fault["field"] == item.fieldId:
                    raise Refused(fault["code"])
            setattr(item.value, _MEMBER.get(item.valueType, "dVal"), read(gpu, item.scopeId))
            item.nvmlReturn = SUCCESS
        except Refused as refusal:
            item.nvmlReturn = refusal.code


def _unknown_field(_gpu: Gpu, _scope: int) -> int:
    raise Refused(NOT_SUPPORTED)


# ---- ctypes arguments -------------------------------------------------------------------------------


def _target(argument: Any) -> Any:
    """What a ctypes argument points at: of byref(x) and pointer(x) that is x; a buffer is itself."""
    if hasattr(argument, "_obj"):
        return argument._obj
    return argument.contents if isinstance(argument, ctypes._Pointer) else argument


def _number(argument: Any) -> int:
    return int(getattr(argument, "value", argument))


def _put(argument: Any, value: Any) -> None:
    _target(argument).value = int(value)


def _put_handle(argument: Any, number: int) -> None:
    ctypes.c_void_p.from_buffer(_target(argument)).value = number


def _put_text(buffer: Any, size: Any, text: str) -> None:
    if len(text) >= _number(size):
        raise Refused(INSUFFICIENT_SIZE)
    _target(buffer).value = text.encode()


def _versioned(argument: Any, *versions: int) -> Any:
    """A structure of the caller, if it is of a version this driver knows.

    Raises:
        Refused: ARGUMENT_VERSION_MISMATCH.
    """
    structure = _target(argument)
    if structure.version not in versions:
        raise Refused(ARGUMENT_VERSION_MISMATCH)
    return structure


# ---- entry points on a GPU --------------------------------------------------------------------------


def _text(path: str) -> Entry:
    return lambda gpu, buffer, size: _put_text(buffer, size, gpu.need(path))


def _one(read: Callable[[Gpu], Any]) -> Entry:
    return lambda gpu, out: _put(out, read(gpu))


def _value(path: str) -> Entry:
    return lambda gpu, out: _put(out, gpu.need(path))


def _values(*paths: str) -> Entry:
    def entry(gpu: Gpu, *outs: Any) -> None:
        for position, out in enumerate(outs):
            _put(out, gpu.need(paths[position]))

    return entry


def _pci_info(gpu: Gpu, out: Any) -> None:
    info = _target(out)
    domain, bus, rest = gpu.address.split(":")
    vendor, device = gpu.get("device_id").split(":")
    info.domain, info.bus, info.device = int(domain, 16), int(bus, 16), int(rest.split(".")[0], 16)
    info.pciDeviceId = int(device, 16) << 16 | int(vendor, 16)
    info.pciSubSystemId = int(gpu.get("subsystem_id"), 16)
    info.busIdLegacy = gpu.address.upper().encode()
    info.busId = f"{int(domain, 16):08X}:{bus}:{rest}".upper().encode()


def _memory(gpu: Gpu, out: Any) -> None:
    info = _target(out)
    info.total = gpu.need("memory_bytes")
    info.used = 640 << 20
    info.free = info.total - info.used


def _bar1(gpu: Gpu, out: Any) -> None:
    info = _target(out)
    info.bar1Total = gpu.need("bar1_bytes")
    info.bar1Used = 2 << 20
    info.bar1Free = info.bar1Total - info.bar1Used


def _validate_inforom(gpu: Gpu) -> None:
    if not gpu.get("inforom_valid"):
        raise Refused(CORRUPTED_INFOROM)


def _processes(gpu: Gpu, count: Any, array: Any) -> None:
    pids = [os.getpid()] * (int(gpu.get("compute_processes")) + len(_loads(gpu.root, gpu.address)))
    room = _number(_target(count))
    _put(count, len(pids))
    if len(pids) > (room if array is not None else 0):
        raise Refused(INSUFFICIENT_SIZE)
    for slot, pid in enumerate(pids):
        array[slot].pid = pid


def _clock(gpu: Gpu, kind: Any, out: Any) -> None:
    if _number(kind) not in (0, 1, 2):
        raise Refused(NOT_SUPPORTED)
    _put(out, gpu.get("clocks.memory_mhz") if _number(kind) == 2 else gpu.sm_mhz())


def _max_clock(gpu: Gpu, kind: Any, out: Any) -> None:
    paths = {0: "clocks.max_sm_mhz", 1: "clocks.max_sm_mhz", 2: "clocks.memory_mhz"}
    if _number(kind) not in paths:
        raise Refused(NOT_SUPPORTED)
    _put(out, gpu.get(paths[_number(kind)]))


def _temperature(gpu: Gpu, _sensor: Any, out: Any) -> None:
    _put(out, gpu.temperature_c())


def _temperature_v(gpu: Gpu, out: Any) -> None:
    _versioned(out, 0x100000C).temperature = gpu.temperature_c()


def _threshold(gpu: Gpu, kind: Any, out: Any) -> None:
    names = {0: "shutdown_c", 1: "slowdown_c", 2: "memory_max_c", 3: "gpu_max_c"}
    if _number(kind) not in names:
        raise Refused(NOT_SUPPORTED)
    _put(out, gpu.need("temperature." + names[_number(kind)]))


def _margin(gpu: Gpu, out: Any) -> None:
    structure = _versioned(out, 0x1000008)
    gpu.need("temperature.tlimit.gpu_max_c")
    structure.marginTemperature = int(gpu.need("temperature.gpu_max_c")) - gpu.temperature_c()


def _total_ecc(gpu: Gpu, error_type: Any, counter: Any, out: Any) -> None:
    if not gpu.get("ecc.enabled"):
        raise Refused(NOT_SUPPORTED)
    life = ("volatile", "aggregate")[_number(counter)]
    kind = ("corrected", "uncorrected")[_number(error_type)]
    _put(out, gpu.counter(f"ecc.{life}_{kind}"))


def _sram(gpu: Gpu, out: Any) -> None:
    _versioned(out, 0x1000068).bThresholdExceeded = int(gpu.need("ecc.sram_threshold_exceeded"))


def _histogram(gpu: Gpu, out: Any) -> None:
    banks = gpu.need("remap.histogram")
    for level in ("max", "high", "partial", "low", "none"):
        setattr(_target(out), level, banks[level])


def _repair(gpu: Gpu, out: Any) -> None:
    structure = _versioned(out, 0x100000C)
    structure.bChannelRepairPending = int(gpu.need("remap.channel_repair_pending"))
    structure.bTpcRepairPending = int(gpu.need("remap.tpc_repair_pending"))


def _throughput(gpu: Gpu, direction: Any, out: Any) -> None:
    _put(out, gpu.pcie_kbps(("tx", "rx")[_number(direction)]))


def _utilization(gpu: Gpu, out: Any) -> None:
    busy = gpu.under_load()
    _target(out).gpu = min(100, round(99 + gpu.wave(1.5, 4.0))) if busy else 0
    _target(out).memory = round(38 + gpu.wave(3, 5.0)) if busy else 0


def _nvlink_state(gpu: Gpu, link: Any, out: Any) -> None:
    _put(out, _number(link) not in gpu.nvlink(_number(link), "nvlink.inactive"))


def _nvlink_remote(gpu: Gpu, link: Any, out: Any) -> None:
    _put(out, gpu.nvlink(_number(link), "nvlink.remote_type"))


def _nvlink_errors(gpu: Gpu, link: Any, counter: Any, out: Any) -> None:
    paths = {0: "nvlink.replay_errors", 1: "nvlink.recovery_errors", 2: "nvlink.crc_errors"}
    if _number(counter) not in paths:
        raise Refused(NOT_SUPPORTED)
    _put(out, gpu.nvlink(_number(link), paths[_number(counter)]))


def _fabric(gpu: Gpu, out: Any) -> None:
    structure = _versioned(out, 0x2000024, 0x3000028)
    fabric = gpu.need("fabric")
    structure.state, structure.status = fabric["state"], fabric["status"]
    structure.healthMask = fabric["health_mask"]
    if hasattr(structure, "healthSummary"):
        structure.healthSummary = fabric["health_summary"]


def _constraints(gpu: Gpu, low: Any, high: Any) -> None:
    _put(low, gpu.need("power.min_w") * 1000)
    _put(high, gpu.need("power.max_w") * 1000)


def _set_limit(gpu: Gpu, limit_mw: Any) -> None:
    low, high = gpu.need("power.min_w") * 1000, gpu.need("power.max_w") * 1000
    if not low <= _number(limit_mw) <= high:
        raise Refused(INVALID_ARGUMENT)
    gpu.change(limit_mw=_number(limit_mw))


def _set_persistence(gpu: Gpu, mode: Any) -> None:
    gpu.change(persistence=bool(_number(mode)))


DEVICE_ENTRIES: dict[str, Entry] = {
    "nvmlDeviceGetName": _text("name"),
    "nvmlDeviceGetUUID": _text("uuid"),
    "nvmlDeviceGetSerial": _text("serial"),
    "nvmlDeviceGetBoardPartNumber": _text("board_part_number"),
    "nvmlDeviceGetVbiosVersion": _text("vbios_version"),
    "nvmlDeviceGetInforomImageVersion": _text("inforom_version"),
    "nvmlDeviceValidateInforom": _validate_inforom,
    "nvmlDeviceGetArchitecture": _value("architecture"),
    "nvmlDeviceGetPciInfo_v3": _pci_info,
    "nvmlDeviceGetMemoryInfo": _memory,
    "nvmlDeviceGetBAR1MemoryInfo": _bar1,
    "nvmlDeviceGetPersistenceMode": _one(lambda gpu: gpu.state()["persistence"]),
    "nvmlDeviceSetPersistenceMode": _set_persistence,
    "nvmlDeviceGetComputeRunningProcesses_v3": _processes,
    "nvmlDeviceGetVirtualizationMode": _value("virtualization"),
    "nvmlDeviceGetMigMode": _values("mig.current", "mig.pending"),
    "nvmlDeviceGetGspFirmwareMode": _values("gsp.enabled", "gsp.enabled"),
    "nvmlDeviceGetGspFirmwareVersion": lambda gpu, buffer: _put_text(buffer, 64, gpu.need("gsp.version")),
    "nvmlDeviceGetFieldValues": _field_values,
    "nvmlDeviceGetMemoryBusWidth": _value("memory_bus_bits"),
    "nvmlDeviceGetSupportedEventTypes": _one(lambda _gpu: _EVENT_TYPES),
    "nvmlDeviceGetPowerManagementLimit": _one(lambda gpu: gpu.state()["limit_mw"]),
    "nvmlDeviceGetPowerManagementLimitConstraints": _constraints,
    "nvmlDeviceGetPowerManagementDefaultLimit": _one(lambda gpu: gpu.need("power.default_w") * 1000),
    "nvmlDeviceGetEnforcedPowerLimit": _one(Gpu.enforced_mw),
    "nvmlDeviceSetPowerManagementLimit": _set_limit,
    "nvmlDeviceGetPowerUsage": _one(Gpu.power_mw),
    "nvmlDeviceGetTotalEnergyConsumption": _one(Gpu.energy_mj),
    "nvmlDeviceGetCurrPcieLinkGeneration": _one(Gpu.link_gen),
    "nvmlDeviceGetCurrPcieLinkWidth": _value("link.width_lanes"),
    "nvmlDeviceGetMaxPcieLinkGeneration": _value("link.max_gen"),
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": _value("link.gpu_max_gen"),
    "nvmlDeviceGetMaxPcieLinkWidth": _value("link.max_width_lanes"),
    "nvmlDeviceGetPcieReplayCounter": _one(lambda gpu: gpu.counter("pcie_errors.replays")),
    "nvmlDeviceGetPcieThroughput": _throughput,
    "nvmlDeviceGetEccMode": _values("ecc.enabled", "ecc.pending_enabled"),
    "nvmlDeviceGetTotalEccErrors": _total_ecc,
    "nvmlDeviceGetSramEccErrorStatus": _sram,
    "nvmlDeviceGetRemappedRows": _values(
        "remap.correctable", "remap.uncorrectable", "remap.pending", "remap.failure"
    ),
    "nvmlDeviceGetRowRemapperHistogram": _histogram,
    "nvmlDeviceGetRepairStatus": _repair,
    "nvmlDeviceGetClockInfo": _clock,
    "nvmlDeviceGetMaxClockInfo": _max_clock,
    "nvmlDeviceGetCurrentClocksEventReasons": _one(Gpu.event_reasons),
    "nvmlDeviceGetCurrentClocksThrottleReasons": _one(Gpu.event_reasons),
    "nvmlDeviceGetTemperature": _temperature,
    "nvmlDeviceGetTemperatureV": _temperature_v,
    "nvmlDeviceGetTemperatureThreshold": _threshold,
    "nvmlDeviceGetMarginTemperature": _margin,
    "nvmlDeviceGetUtilizationRates": _utilization,
    "nvmlDeviceGetNvLinkState": _nvlink_state,
    "nvmlDeviceGetNvLinkErrorCounter": _nvlink_errors,
    "nvmlDeviceGetNvLinkRemoteDeviceType": _nvlink_remote,
    "nvmlDeviceGetGpuFabricInfoV": _fabric,
}

_ERROR_TEXTS = {
    UNINITIALIZED: b"Uninitialized",
    INVALID_ARGUMENT: b"Invalid Argument",
    NOT_SUPPORTED: b"Not Supported",
    ARGUMENT_VERSION_MISMATCH: b"Argument Version Mismatch",
    TIMEOUT: b"Timeout",
}


# ---- the library ------------------------------------------------------------------------------------


class Library:
    """Stands where nvidia-ml-py keeps its ctypes library.

    An entry point it does not have is an AttributeError, which nvidia-ml-py turns into
    FUNCTION_NOT_FOUND, as with an older driver; `driver.lacks` in gpus.json takes more away.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._loaded = 0
        self._data = _data(root)
        gpus = [Gpu(root, gpu) for gpu in self._data["gpus"]]
        self._gpus = [gpu for gpu in gpus if not gpu.faults("missing")]
        self._watched: list[Gpu] = []
        self._told: set[tuple[str, int]] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in self._data["driver"]["lacks"]:
            raise AttributeError(name)
        system: dict[str, Entry] = {
            "nvmlInitWithFlags": self._init,
            "nvmlShutdown": self._shutdown,
            "nvmlSystemGetDriverVersion": self._text("version"),
            "nvmlSystemGetNVMLVersion": self._text("nvml"),
            "nvmlSystemGetCudaDriverVersion_v2": lambda out: _put(out, self._data["driver"]["cuda"]),
            "nvmlDeviceGetCount_v2": lambda out: _put(out, len(self._gpus)),
            "nvmlDeviceGetHandleByIndex_v2": self._by_index,
            "nvmlDeviceGetHandleByPciBusId_v2": self._by_address,
            "nvmlDeviceGetHandleByUUID": self._by_uuid,
            "nvmlEventSetCreate": lambda out: _put_handle(out, 1),
            "nvmlEventSetFree": lambda _events: None,
            "nvmlDeviceRegisterEvents": self._watch,
            "nvmlEventSetWait_v2": self._wait_for_event,
        }
        if name == "nvmlErrorString":
            # A function of its own: nvidia-ml-py sets .restype on it.
            return lambda code: _ERROR_TEXTS.get(_number(code), b"Unknown Error")
        if name in system:
            return lambda *arguments: self._system_call(name, system[name], arguments)
        if name in DEVICE_ENTRIES:
            return lambda handle, *arguments: self._device_call(name, handle, arguments)
        raise AttributeError(name)

    def _system_call(self, name: str, entry: Entry, arguments: tuple[Any, ...]) -> int:
        try:
            _trouble(self._data["faults"], name)
            if not self._loaded and name != "nvmlInitWithFlags":
                raise Refused(UNINITIALIZED)
            entry(*arguments)
        except Refused as refusal:
            return refusal.code
        return SUCCESS

    def _device_call(self, name: str, handle: Any, arguments: tuple[Any, ...]) -> int:
        try:
            if not self._loaded:
                raise Refused(UNINITIALIZED)
            gpu = self._by_handle(handle)
            _trouble([*gpu.faults("hang"), *gpu.faults("error")], name)
            DEVICE_ENTRIES[name](gpu, *arguments)
        except Refused as refusal:
            return refusal.code
        return SUCCESS

    def _init(self, _flags: Any) -> None:
        self._loaded += 1

    def _shutdown(self) -> None:
        self._loaded -= 1

    def _text(self, key: str) -> Entry:
        return lambda buffer, size: _put_text(buffer, size, self._data["driver"][key])

    def _by_index(self, index: Any, out: Any) -> None:
        if not 0 <= _number(index) < len(self._gpus):
            raise Refused(INVALID_ARGUMENT)
        gpu = self._gpus[_number(index)]
        _trouble([*gpu.faults("hang"), *gpu.faults("error")], "nvmlDeviceGetHandleByIndex_v2")
        _put_handle(out, _number(index) + 1)

    def _by_address(self, bus_id: Any, out: Any) -> None:
        wanted = bus_id.value.decode().lower().split(":")
        for index, gpu in enumerate(self._gpus):
            domain, bus, rest = gpu.address.split(":")
            if (int(wanted[0], 16), *wanted[1:]) == (int(domain, 16), bus, rest):
                return self._by_index(index, out)
        raise Refused(NOT_FOUND)

    def _by_uuid(self, uuid: Any, out: Any) -> None:
        for index, gpu in enumerate(self._gpus):
            if gpu.get("uuid") == uuid.value.decode():
                return self._by_index(index, out)
        raise Refused(NOT_FOUND)

    def _watch(self, handle: Any, _types: Any, _events: Any) -> None:
        self._watched.append(self._by_handle(handle))

    def _wait_for_event(self, _events: Any, out: Any, timeout_ms: Any) -> None:
        end = time.monotonic() + _number(timeout_ms) / 1000
        while True:
            for gpu in self._watched:
                for fault in gpu.faults("xid"):
                    due = gpu.under_load() and gpu.load_seconds() >= fault["after_s"]
                    if due and (gpu.address, fault["xid"]) not in self._told:
                        self._told.add((gpu.address, fault["xid"]))
                        data = _target(out)
                        data.device = ctypes.cast(self._gpus.index(gpu) + 1, type(data.device))
                        data.eventType, data.eventData = XID_EVENT, fault["xid"]
                        data.gpuInstanceId = data.computeInstanceId = 0xFFFFFFFF
                        return
            if time.monotonic() >= end:
                raise Refused(TIMEOUT)
            time.sleep(0.05)

    def _by_handle(self, handle: Any) -> Gpu:
        number = ctypes.cast(handle, ctypes.c_void_p).value or 0
        if not 1 <= number <= len(self._gpus):
            raise Refused(INVALID_ARGUMENT)
        return self._gpus[number - 1]


def _trouble(faults: list[dict[str, Any]], call: str) -> None:
    for fault in faults:
        if fault["call"] != call:
            continue
        if fault["fault"] == "hang":
            while True:
                time.sleep(3600)
        raise Refused(fault["code"])
