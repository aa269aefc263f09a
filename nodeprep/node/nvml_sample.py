"""Fast NVML samples for telemetry: one thread a GPU, so that a GPU that hangs costs only its own columns.

A sweep over all columns takes 2 to 5 ms (H200). PCIe traffic comes from the byte counters (fields 197
and 198): nvmlDeviceGetPcieThroughput sees 20 ms of an interval and blocks 21 ms per direction. The
counters are 32 bits wide, so the threads read them every 20 ms between samples. With them they read the
instantaneous power (field 186) when a square wave of load is to be seen.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import nvml_library, reading
from .nvml_calls import Calls, error_code, field_value, milliwatts, read_fields, then
from .nvml_gpu import PCIE_ERROR_FIELDS, event_reasons, gpu_temperature
from .nvml_pcie import PcieMeter
from .reading import Reading

COLUMNS = (
    "power_w",
    "power_average_w",
    "power_instant_w",
    "temperature_c",
    "memory_temperature_c",
    "margin_c",
    "sm_mhz",
    "memory_mhz",
    "event_reasons",
    "utilization_percent",
    "memory_utilization_percent",
    "memory_used_gib",
    "pcie_rx_gbps",
    "pcie_tx_gbps",
    "link_gen",
    "link_width_lanes",
    "replays",
    *PCIE_ERROR_FIELDS,
)
POLL_S = 0.02
# Counters of errors and memory in use change seldom and cost most of a sweep: each field is a call of its own
# inside the driver. Between two readings their last values stand.
SLOW_S = 1.0
DEADLINE_S = 1.0

FIELD_MEMORY_TEMPERATURE, FIELD_POWER_AVERAGE, FIELD_POWER_INSTANT = 82, 185, 186
FIELD_PCIE_TX_BYTES, FIELD_PCIE_RX_BYTES = 197, 198

Sample = Dict[str, Optional[float]]
# time.monotonic() and watts.
Draw = Tuple[float, float]


class Sampler:
    """Samples of a set of GPUs. Use as a context manager, or call `close`.

    One at a time in a process: nvidia-ml-py has one library. Do not fork while it is open.

    Args:
        root: "/" or a simulated root.
        addresses: PCI addresses of the GPUs, `dddd:bb:dd.f`.
        deadline_s: Seconds that a sample may take; a GPU that has not answered by then gives None
            in every column, and is not waited for again until it does.
    """

    def __init__(self, root: str, addresses: Sequence[str], *, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._library = _Library(root)
        self._workers = {address: _Worker(self._library, address) for address in addresses}
        for worker in self._workers.values():
            worker.start()

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sample(self) -> Dict[str, Sample]:
        """One sample of each GPU: column to value, None where it could not be read.

        Watts, degrees Celsius, MHz, per cent and decimal GB/s; `event_reasons` is NVML's mask. PCIe
        rates are means since the sample before; rx is what the GPU receives. They count whole
        packets, on an H200 about 8 % more than the payload (58.8 GB/s for copies at 54.5 GB/s).
        """
        end = time.monotonic() + self._deadline_s
        for worker in self._workers.values():
            worker.ask()
        return {address: worker.answer(end) for address, worker in self._workers.items()}

    def failures(self, address: str) -> Dict[str, Reading]:
        """Why columns of a GPU were None when last read: column to a reading without a value."""
        return self._workers[address].failures()

    def library(self) -> Any:
        """The bound and initialised nvidia-ml-py, for others in this process.

        Raises:
            pynvml.NVMLError: It does not start.
        """
        return self._library.get()

    def watch_power(self, on: bool) -> None:
        """From now on, or no more, the instantaneous power is read every 20 ms; `draws` has it."""
        for worker in self._workers.values():
            worker.watch_power(on)

    def draws(self) -> Dict[str, List[Draw]]:
        """Instantaneous power of each GPU since this was last asked."""
        return {address: worker.draws() for address, worker in self._workers.items()}

    def close(self) -> None:
        """Ends the threads and lets go of NVML; where a thread hangs, both are left as they are."""
        for worker in self._workers.values():
            worker.stop()
        for worker in self._workers.values():
            worker.join(timeout=0.2)
        if not any(worker.is_alive() for worker in self._workers.values()):
            self._library.release()


class _Library:
    """Loads NVML once, in whichever thread comes first: loading may hang too."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._pynvml: Any = None

    def get(self) -> Any:
        with self._lock:
            if self._pynvml is None:
                self._pynvml = nvml_library.load(self._root)
            return self._pynvml

    def release(self) -> None:
        with self._lock:
            if self._pynvml is not None:
                self._pynvml.nvmlShutdown()
                self._pynvml = None


class _Worker(threading.Thread):
    """Reads one GPU, on request and, for the byte counters, between requests."""

    def __init__(self, library: _Library, address: str) -> None:
        super().__init__(name=f"nvml {address}", daemon=True)
        self._library = library
        self._address = address
        self._change = threading.Condition()
        self._asked = 0
        self._answered = 0
        self._stopped = False
        self._late = False
        self._readings: Dict[str, Reading] = {}
        self._call = "nvmlInit"
        self._meter: Optional[PcieMeter] = None
        self._counters = False
        self._watching_power = False
        self._draws: List[Draw] = []
        self._slow: Dict[str, Reading] = {}
        self._slow_due = 0.0

    # called by the sampler

    def ask(self) -> None:
        with self._change:
            self._asked += 1
            self._change.notify_all()

    def answer(self, end: float) -> Sample:
        with self._change:
            wanted = self._asked
            while self._answered < wanted:
                left = end - time.monotonic()
                # A GPU that was late once is not waited for again: it would slow the others' series.
                if self._late or left <= 0 or not self._change.wait(left):
                    self._late = True
                    self._readings = self._no_answer()
                    break
            else:
                self._late = False
            readings = self._readings
        return {column: readings[column].get("value") for column in COLUMNS}

    def failures(self) -> Dict[str, Reading]:
        with self._change:
            return {name: found for name, found in self._readings.items() if found["state"] != "ok"}

    def watch_power(self, on: bool) -> None:
        with self._change:
            self._watching_power = on
            self._change.notify_all()

    def draws(self) -> List[Draw]:
        with self._change:
            draws, self._draws = self._draws, []
            return draws

    def stop(self) -> None:
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def _no_answer(self) -> Dict[str, Reading]:
        why = f"NVML gave no answer in time; it is in {self._call} on {self._address}"
        return dict.fromkeys(COLUMNS, reading.error(why))

    # the thread

    def mark(self, call: str, subject: str = "") -> None:  # noqa: ARG002 - the subject is always this GPU
        self._call = call

    def run(self) -> None:
        try:
            calls = Calls(self._library.get(), self, self._address)
            # The bus id form of the address with four digits is accepted as well as NVML's own eight.
            handle = calls.call("nvmlDeviceGetHandleByPciBusId", self._address)
        except Exception as error:  # becomes the reading of every column
            self._fail(error)
            return
        self._start_meter(calls, handle)
        while True:
            with self._change:
                if not self._stopped and self._asked == self._answered:
                    self._change.wait(POLL_S if self._counters or self._watching_power else None)
                stopped, asked, due = self._stopped, self._asked, self._asked != self._answered
                watching_power = self._watching_power
            if stopped:
                return
            if self._counters:
                self._poll(calls, handle)
            if watching_power:
                self._draw(calls, handle)
            if due:
                self._publish(self._read(calls, handle), asked)

    def _fail(self, error: Exception) -> None:
        pynvml = nvml_library.pynvml
        code = error_code(pynvml, error)
        text = f"{self._call}: {error}" + (f" (NVML error {code})" if code is not None else "")
        failed = dict.fromkeys(COLUMNS, reading.error(text))
        with self._change:
            while not self._stopped:
                self._readings, self._answered = failed, self._asked
                self._change.notify_all()
                self._change.wait()

    def _publish(self, readings: Dict[str, Reading], asked: int) -> None:
        with self._change:
            self._readings, self._answered = readings, asked
            self._change.notify_all()

    def _start_meter(self, calls: Calls, handle: Any) -> None:
        gen = calls.read("nvmlDeviceGetMaxPcieLinkGeneration", handle)
        lanes = calls.read("nvmlDeviceGetMaxPcieLinkWidth", handle)
        self._meter = PcieMeter(reading.value_or(gen, 6), reading.value_or(lanes, 16))
        self._counters = True
        self._poll(calls, handle)

    def _poll(self, calls: Calls, handle: Any) -> None:
        assert self._meter is not None  # noqa: S101 - set before the first poll
        pynvml = calls.pynvml
        before = time.monotonic()
        try:
            fields = [FIELD_PCIE_RX_BYTES, FIELD_PCIE_TX_BYTES]
            rx, tx = calls.call("nvmlDeviceGetFieldValues", handle, fields)
        except Exception as error:  # a gap, and for good where there is no such counter
            self._counters = not calls.is_code(error, "NOT_SUPPORTED", "FUNCTION_NOT_FOUND")
            self._meter.miss()
            return
        if rx.nvmlReturn or tx.nvmlReturn:
            lacking = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT)
            self._counters = rx.nvmlReturn not in lacking and tx.nvmlReturn not in lacking
            self._meter.miss()
            return
        wraps = rx.valueType == pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
        now = (before + time.monotonic()) / 2
        self._meter.feed(now, int(field_value(rx)), int(field_value(tx)), wraps=wraps)

    def _draw(self, calls: Calls, handle: Any) -> None:
        """One instant; what cannot be read is a gap, and the column of the samples says why."""
        read = read_fields(calls, handle, [FIELD_POWER_INSTANT])[FIELD_POWER_INSTANT]
        if read["state"] == "ok":
            with self._change:
                self._draws.append((time.monotonic(), milliwatts(read["value"])))

    def _read(self, calls: Calls, handle: Any) -> Dict[str, Reading]:
        pynvml = calls.pynvml
        read = calls.read
        wanted = [FIELD_MEMORY_TEMPERATURE, FIELD_POWER_AVERAGE, FIELD_POWER_INSTANT]
        fields = read_fields(calls, handle, wanted)
        rates = read("nvmlDeviceGetUtilizationRates", handle, value=lambda u: (int(u.gpu), int(u.memory)))
        rx, tx = self._traffic(calls, handle)
        return {
            "power_w": read("nvmlDeviceGetPowerUsage", handle, value=milliwatts),
            "power_average_w": then(fields[FIELD_POWER_AVERAGE], milliwatts),
            "power_instant_w": then(fields[FIELD_POWER_INSTANT], milliwatts),
            "temperature_c": gpu_temperature(calls, handle),
            "memory_temperature_c": fields[FIELD_MEMORY_TEMPERATURE],
            "margin_c": read("nvmlDeviceGetMarginTemperature", handle),
            "sm_mhz": read("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_SM),
            "memory_mhz": read("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_MEM),
            "event_reasons": event_reasons(calls, handle),
            "utilization_percent": then(rates, lambda both: both[0]),
            "memory_utilization_percent": then(rates, lambda both: both[1]),
            "pcie_rx_gbps": rx,
            "pcie_tx_gbps": tx,
            "link_gen": read("nvmlDeviceGetCurrPcieLinkGeneration", handle),
            "link_width_lanes": read("nvmlDeviceGetCurrPcieLinkWidth", handle),
            **self._read_slow(calls, handle),
        }

    def _read_slow(self, calls: Calls, handle: Any) -> Dict[str, Reading]:
        if time.monotonic() >= self._slow_due:
            self._slow_due = time.monotonic() + SLOW_S
            errors = read_fields(calls, handle, list(PCIE_ERROR_FIELDS.values()))
            self._slow = {
                "memory_used_gib": calls.read(
                    "nvmlDeviceGetMemoryInfo", handle, value=lambda info: round(info.used / 2**30, 3)
                ),
                "replays": calls.read("nvmlDeviceGetPcieReplayCounter", handle),
                **{name: errors[number] for name, number in PCIE_ERROR_FIELDS.items()},
            }
        return self._slow

    def _traffic(self, calls: Calls, handle: Any) -> List[Reading]:
        """Received and sent, GB/s."""
        pynvml = calls.pynvml
        if self._counters and self._meter is not None:
            gap = reading.error("the PCIe byte counters were not read often enough in this interval")
            return [gap if rate is None else reading.ok(rate) for rate in self._meter.take(time.monotonic())]
        function = "nvmlDeviceGetPcieThroughput"
        directions = (pynvml.NVML_PCIE_UTIL_RX_BYTES, pynvml.NVML_PCIE_UTIL_TX_BYTES)
        return [calls.read(function, handle, direction, value=_kilobytes) for direction in directions]


def _kilobytes(value: int) -> float:
    """GB/s from NVML's KB/s."""
    return value / 1e6
