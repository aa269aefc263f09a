"""The simulated rack's backend: real arithmetic on the CPU, modelled times.

Outputs, digests, copies and their comparison are computed; how fast a GPU would have been follows
from the clock and link that the root's simulated driver shows at that moment. Such a result is
marked simulated, whatever it says.
"""

from __future__ import annotations

import json
import os
import platform
import time
from functools import partial
from typing import Any, Callable, Dict, List, Tuple

from ...node import nvml_library, reading
from ..inject import Flip, make
from ..patterns import BLOCK_BYTES, PATTERNS
from ..problem import ProbeError
from ..workload import Workload
from ._backend import Backend, Bursts, CopyTotals, Iteration, MemoryRates, MemoryWalk, ReadingDict
from .hints import NUMPY_HINT

# More work than this for one iteration would keep a CPU busy for a second.
MAX_FLOPS = 1e10
COPY_BYTES = 1 << 16

# Dense half-precision operations a clock of the whole chip: multiprocessors times operations of each.
# Source: NVIDIA H100 and A100 architecture papers (132 x 4096, 114 x 4096 on PCIe, 108 x 2048).
_OPERATIONS_A_CLOCK = (("H100 PCIe", 114 * 4096), ("A100", 108 * 2048), ("", 132 * 4096))
# Part of that which a large matrix product and the model reach, as measured on an H200 (655 and 572
# TFLOP/s at the clock its power limit left).
_CEILING_PART = 0.90
_MODEL_PART = 0.79
# Both directions at once against one alone, on the same machine (46.6 and 55.5 GB/s).
_BOTH_WAYS_PART = 0.84
# Parts of what clock and width of the memory allow (4917 GB/s on an H200), as measured there.
_MEMORY_PARTS = {"copy": 0.86, "read": 0.85, "write": 0.87, "walk": 0.30}
# The memory that a context and the probe's own buffers take.
_RESERVE_BYTES = 2 << 30
# Of each half of a simulated wave; some of them may be those of the ordinary samples.
_LEAST_BURST_READS = 5
# A sampler that has not read for so long is gone; one that reads ever so slowly ends the wave as well.
_UNREAD_S, _LONGEST_BURSTS_S = 4.0, 30.0


class NumpyBackend(Backend):
    """One simulated GPU of a simulated root.

    Args:
        root: A root other than "/", with a simulated driver library.
        gpu: The GPU's address and name.

    Raises:
        ProbeError: A real root, no numpy, or no simulated library.
    """

    name = "numpy"
    # Its waves last until they were seen; how fast that goes is a property of the host's CPUs.
    burst_samples_per_s = 0.25

    def __init__(self, root: str, gpu: Dict[str, Any]) -> None:
        if nvml_library.is_real(root):
            raise ProbeError(
                "the numpy backend never runs on a real machine",
                hint="name a simulated root with --root, or leave the backend to the probe",
            )
        try:
            import numpy  # noqa: PLC0415 - numpy may be missing, and that must be said

            from . import numpy_memory, numpy_model  # noqa: PLC0415
        except ImportError as error:
            raise ProbeError(
                "this Python has no numpy: %s" % error,
                hint=NUMPY_HINT,
            ) from error
        simulation = nvml_library.simulation(root)
        if simulation is None:
            raise ProbeError(
                "%s has no simulated driver library (%s)" % (root, nvml_library.SIMULATED_LIBRARY),
                hint="build the root with nodeprep.sim, or run on / for real hardware",
            )
        self._np = numpy
        self._numpy = numpy_model
        self._memory = numpy_memory
        self._product = ""
        self._root = os.path.realpath(root)
        self._address = str(gpu["address"])
        self._name = str(gpu["name"])
        self._simulation = simulation
        self._copier = _Copies(numpy)
        simulation.begin_load(self._root, self._address)

    def versions(self) -> Dict[str, str]:
        """Versions of Python and numpy."""
        return {"numpy": self._np.__version__, "python": platform.python_version()}

    def copies_alone(self, seconds: float) -> Tuple[ReadingDict, ReadingDict]:
        """The link's rate as it is trained now; the copies themselves are small."""
        self._copier.copy_both_ways()
        time.sleep(2 * seconds)
        rates = [self._link_gbps(direction) / _BOTH_WAYS_PART for direction in ("rx", "tx")]
        return reading.ok(rates[0]), reading.ok(rates[1])

    def ceiling(self, seconds: float, dtype: str) -> ReadingDict:  # noqa: ARG002 - one speed for all
        """What the clock allows."""
        time.sleep(seconds)
        return reading.ok(self._tflops(_CEILING_PART))

    def memory_rates(self, seconds: float) -> MemoryRates:
        """What the memory's clock and width allow, less what is lost on a real one."""
        time.sleep(seconds)
        peak = self._memory_gbps()
        copied, read, written = (reading.ok(_MEMORY_PARTS[kind] * peak) for kind in ("copy", "read", "write"))
        return MemoryRates(copied, read, written, peak_gbps=reading.ok(peak))

    def walk_memory(self, seconds: float) -> MemoryWalk:
        """Patterns, keys and comparison are real, on half a megabyte; sizes and rates are modelled."""
        started = time.monotonic()
        errors, faults = self._memory.Buffer(BLOCK_BYTES, self._disturb).walk()
        time.sleep(max(0.0, seconds - (time.monotonic() - started)))
        total = int(self._device().get("memory_bytes"))
        free = total - _RESERVE_BYTES
        return MemoryWalk(
            walked_bytes=(free - _RESERVE_BYTES) // BLOCK_BYTES * BLOCK_BYTES,
            free_bytes=free,
            total_bytes=total,
            passes=dict.fromkeys(PATTERNS, 1),
            gbps=dict.fromkeys(PATTERNS, _MEMORY_PARTS["walk"] * self._memory_gbps()),
            errors=errors,
            faults=faults,
        )

    def bursts(self, period_s: float, duty: float, count: int) -> Bursts:
        """A small product a burst, compared; the simulated driver shows the draw of a real one.

        On a busy host there are more bursts than asked for: the wave lasts until both halves of it were
        read, or nobody reads any more.
        """
        self._simulation.begin_bursts(self._root, self._address, period_s, duty)
        try:
            wrong = compared = 0
            seen = _Watched(partial(self._simulation.burst_reads, self._root, self._address))
            done = 0
            while done < count or seen.wanted():
                done += 1
                started = time.monotonic()
                found = self._numpy.digest(self._numpy.product())
                compared += int(bool(self._product))
                self._product = self._product or found
                wrong += int(found != self._product)
                time.sleep(max(0.0, period_s - (time.monotonic() - started)))
        finally:
            self._simulation.end_bursts(self._root, self._address)
        return Bursts(done, done, compared, wrong)

    def build(self, workload: Workload) -> None:
        """Makes weights and input.

        Raises:
            ProbeError: The workload is too large for a CPU.
        """
        if workload.flops > MAX_FLOPS:
            raise ProbeError(
                "the workload %s (%.3g FLOP an iteration) is too large for the simulated rack"
                % (workload.name, workload.flops),
                hint="use the workload tiny there",
            )
        self._workload = workload
        self._model = self._numpy.NumpyModel(workload)
        self._turn = 0
        self._last_batch = workload.batch

    def start_streaming(self) -> None:
        """Totals count from here."""
        self._copier = _Copies(self._np)

    def iterate(self) -> Iteration:
        """One pass and one copy each way."""
        self._copier.copy_both_ways()
        batches = self._workload.batches
        self._last_batch = batches[self._turn % len(batches)]
        self._turn += 1
        digests: List[str] = []
        last: Any = None
        for output in self._model.outputs(self._last_batch):
            digests.append(self._numpy.digest(output))
            if len(digests) == self._workload.depth:
                last = output
        digests.extend(self._model.weight_digests())
        seconds = self._workload.flops_of(self._last_batch) / (self._tflops(_MODEL_PART) * 1e12)
        return Iteration(seconds, tuple(digests), self._numpy.non_finite(last), batch=self._last_batch)

    def digest_again(self, place: int) -> str:
        """Runs up to the block once more, or reads the weights once more."""
        if place > self._workload.depth:
            return str(list(self._model.weight_digests())[place - self._workload.depth - 1])
        for index, output in enumerate(self._model.outputs(self._last_batch)):
            if index == place:
                return str(self._numpy.digest(output))
        raise IndexError(place)

    def copy_totals(self) -> CopyTotals:
        """Counts of the copies made; their rates are the link's."""
        copies = self._copier
        return CopyTotals(
            h2d_gbps=reading.ok(self._link_gbps("rx")),
            d2h_gbps=reading.ok(self._link_gbps("tx")),
            bytes_h2d=copies.bytes,
            bytes_d2h=copies.bytes,
            content_errors=copies.errors,
            content_checks=copies.checks,
        )

    def flip(self, flip: Flip) -> None:
        """Flips one bit of one weight."""
        self._model.flip(flip)

    def own_faults(self) -> Tuple[Flip, ...]:
        """The flips that the simulated driver library names for this GPU."""
        return tuple(
            make(self._workload, block=f["block"], bit=f["bit"], iteration=f["iteration"])
            for f in self._simulation.flips(self._root)
            if f["address"] == self._address
        )

    def close(self) -> None:
        """The simulated GPU goes back to idle; after a kill it does so because the process is gone."""
        self._simulation.end_load(self._root, self._address)

    def _device(self) -> Any:
        with open(os.path.join(self._root, self._simulation.DATA)) as file:
            data = json.load(file)
        entry = next(gpu for gpu in data["gpus"] if gpu["address"] == self._address)
        return self._simulation.Gpu(self._root, entry)

    def _disturb(self, place: int, block: Any) -> None:
        """Cells that the simulated GPU cannot clear."""
        for cell in self._simulation.bad_cells(self._root, self._address):
            if cell["block"] == place:
                block[cell["word"]] |= self._np.uint64(1 << cell["bit"])

    def _memory_gbps(self) -> float:
        device = self._device()
        transfers_per_s = 2.0 * float(device.get("clocks.memory_mhz")) * 1e6
        return transfers_per_s * int(device.get("memory_bus_bits")) / 8 / 1e9

    def _link_gbps(self, direction: str) -> float:
        return float(self._device().copy_rate(direction)) / 1e9

    def _tflops(self, part: float) -> float:
        operations = next(n for name, n in _OPERATIONS_A_CLOCK if name in self._name)
        return part * operations * float(self._device().sm_mhz()) * 1e6 / 1e12


class _Copies:
    """Copies of a known pattern there and back, compared."""

    def __init__(self, np: Any) -> None:
        self._np = np
        words = COPY_BYTES // 4
        self._pattern = np.arange(words, dtype=np.uint32) * np.uint32(0x9E3779B1)
        self._device = np.empty_like(self._pattern)
        self._back = np.empty_like(self._pattern)
        self.bytes = self.errors = self.checks = 0

    def copy_both_ways(self) -> None:
        """One copy each way; the pattern changes each time, so that a copy left out shows."""
        self._pattern += self._np.uint32(1)
        self._np.copyto(self._device, self._pattern)
        self._np.copyto(self._back, self._device)
        self.bytes += self._pattern.nbytes
        self.checks += 1
        self.errors += int(not self._np.array_equal(self._back, self._pattern))


class _Watched:
    """Whether a simulated wave still waits to be seen.

    Args:
        reads: How often it was read, at full load and at rest.
    """

    def __init__(self, reads: Callable[[], Tuple[int, int]]) -> None:
        self._reads = reads
        self._before = (0, 0)
        self._started = self._last_read = time.monotonic()

    def wanted(self) -> bool:
        """True until there are enough reads, or no more are to be expected."""
        now, reads = time.monotonic(), self._reads()
        if reads != self._before:
            self._before, self._last_read = reads, now
        if min(reads) >= _LEAST_BURST_READS:
            return False
        return now - self._last_read < _UNREAD_S and now - self._started < _LONGEST_BURSTS_S
