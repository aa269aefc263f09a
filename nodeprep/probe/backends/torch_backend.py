"""Real GPUs through PyTorch and CUDA."""

from __future__ import annotations

import platform
import sys
import time
from typing import Any, Dict, List, Tuple

from ...node import reading
from ..hashing import hexadecimal, key
from ..inject import Flip
from ..model import ARITHMETIC
from ..problem import ProbeError
from ..workload import Workload
from ._backend import Backend, Bursts, CopyTotals, Iteration, MemoryRates, MemoryWalk, ReadingDict
from .hints import TORCH_HINT

CEILING_SIZE = 16384
# Queued products: the GPU never waits for the host between two.
_PRODUCTS_QUEUED = 4
# How often the host looks whether a pass is done, feeding the copies meanwhile.
_LOOK_S = 0.0005
_SEED_OF_PATTERNS = 77


class TorchBackend(Backend):
    """The one GPU that CUDA_VISIBLE_DEVICES shows to this process.

    Args:
        gpu: The GPU's uuid and address, held against what CUDA shows.

    Raises:
        ProbeError: No torch, a torch without CUDA, or another GPU than asked for.
    """

    name = "torch"
    device = "cuda:0"

    def __init__(self, gpu: Dict[str, Any]) -> None:
        try:
            import torch  # noqa: PLC0415 - seconds to import, and its absence must be explained
        except ImportError as error:
            raise ProbeError(
                "PyTorch cannot be imported by %s: %s" % (sys.executable, error), hint=TORCH_HINT
            ) from error
        self._torch: Any = torch
        _require_cuda(torch, gpu)
        # No gradients: inference, as in production.
        torch.set_grad_enabled(False)
        self._device = torch.device(self.device)
        from . import torch_bursts, torch_memory  # noqa: PLC0415
        from .torch_copies import Copier  # noqa: PLC0415 - imports torch
        from .torch_kernels import versions  # noqa: PLC0415
        from .torch_launch import Launcher  # noqa: PLC0415
        from .torch_model import DTYPES, fill_uniform  # noqa: PLC0415

        self._memory: Any = torch_memory
        self._make_burster: Any = torch_bursts.Burster
        self._burster: Any = None
        self._uuid = str(gpu["uuid"])
        self._make_launcher = Launcher
        self._library_versions = versions
        self._dtypes = DTYPES
        self._fill = fill_uniform
        self._copier = Copier(self._device, _SEED_OF_PATTERNS)
        self._launcher: Any = None

    def versions(self) -> Dict[str, str]:
        """PyTorch and what it was built with."""
        torch = self._torch
        return {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
            "arithmetic": str(ARITHMETIC),
            **self._library_versions(),
        }

    def copies_alone(self, seconds: float) -> Tuple[ReadingDict, ReadingDict]:
        """Each direction by itself, from and to pinned memory."""
        rates: Tuple[ReadingDict, ReadingDict] = self._copier.alone(seconds)
        return rates

    def ceiling(self, seconds: float, dtype: str) -> ReadingDict:
        """The median rate of 16384^3 products over the second half of the time, power having settled."""
        torch, n = self._torch, CEILING_SIZE
        try:
            a, b, c = (torch.empty(n * n, dtype=self._dtypes[dtype], device=self._device) for _ in range(3))
        except torch.cuda.OutOfMemoryError as error:
            return reading.error("no memory for the matrix product: %s" % _first_line(error))
        for number, matrix in enumerate((a, b)):
            self._fill(matrix, key(_SEED_OF_PATTERNS, "ceiling%d" % number), 1.0)
        a, b, c = a.view(n, n), b.view(n, n), c.view(n, n)
        times = self._time_products(a, b, c, seconds)
        del a, b, c
        torch.cuda.empty_cache()
        late = sorted(times[len(times) // 2 :])
        return reading.ok(2.0 * n**3 / late[len(late) // 2] / 1e12)

    def memory_rates(self, seconds: float) -> MemoryRates:
        """Copies, reads and writes of 4 GiB."""
        found: MemoryRates = self._memory.rates(self._device, seconds, self._uuid)
        return found

    def walk_memory(self, seconds: float) -> MemoryWalk:
        """All that is free beside what the probe itself holds."""
        found: MemoryWalk = self._memory.walk(self._device, seconds)
        return found

    def bursts(self, period_s: float, duty: float, count: int) -> Bursts:
        """8192^3 products in half precision: nothing draws more."""
        if self._burster is None:
            self._burster = self._make_burster(self._device, self._torch.float16)
        found: Bursts = self._burster.run(period_s, duty, count)
        return found

    def memory_in_use(self) -> Tuple[int, int]:
        """Of PyTorch's caching allocator."""
        cuda = self._torch.cuda
        return int(cuda.memory_reserved(self._device)), int(cuda.memory_allocated(self._device))

    def build(self, workload: Workload) -> None:
        """Makes weights and input on the device.

        Raises:
            ProbeError: They do not fit.
        """
        try:
            self._launcher = self._make_launcher(workload, self._device, self._idle, self._wait_for_device)
            self._torch.cuda.synchronize()
            self._copier.ask(workload.pcie_directions, workload.pcie_share)
        except self._torch.cuda.OutOfMemoryError as error:
            raise ProbeError(
                "out of GPU memory while making %s: %s" % (workload.name, _first_line(error)),
                hint="another process may hold memory of this GPU; see nvidia-smi",
            ) from error

    def start_streaming(self) -> None:
        """Copies go on over the boundaries of iterations; totals count from here."""
        self._copier.restart_totals()

    def iterate(self) -> Iteration:
        """One pass as the workload says, then a wait for the device."""
        self._copier.pump()
        batch = self._launcher.next_batch()
        started = time.monotonic()
        *digests, non_finite, subnormal, errors = self._bring(
            self._torch.cat([self._launcher.launch(batch), self._copier.errors])
        )
        seconds = time.monotonic() - started - self._launcher.rested_s
        self._copier.note_errors(errors)
        return Iteration(seconds, tuple(hexadecimal(d) for d in digests), non_finite, subnormal, batch)

    def digest_again(self, place: int) -> str:
        """Runs up to the place once more, under the same streaming."""
        return hexadecimal(self._bring(self._launcher.again(place))[place])

    def stop_streaming(self) -> None:
        """Waits for the copies under way; the totals then hold the verdict on every checked one."""
        self._copier.drain()

    def copy_totals(self) -> CopyTotals:
        """Totals since start_streaming."""
        totals: CopyTotals = self._copier.totals()
        return totals

    def flip(self, flip: Flip) -> None:
        """Flips one bit of one weight."""
        self._launcher.flip(flip)

    def _bring(self, values: Any) -> List[int]:
        """Brings device values to the host in one transfer, feeding the copies until they are there."""
        self._wait_for_device()
        numbers: List[int] = values.tolist()
        return numbers

    def _wait_for_device(self) -> None:
        """Until all that was launched is done."""
        event = self._torch.cuda.Event()
        event.record()
        while not event.query():
            self._copier.pump()
            time.sleep(_LOOK_S)

    def _idle(self, seconds: float) -> None:
        """Lets the model rest; the copies go on."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._copier.pump()
            time.sleep(min(_LOOK_S, max(0.0, end - time.monotonic())))

    def _time_products(self, a: Any, b: Any, c: Any, seconds: float) -> List[float]:
        """Seconds of each product."""
        torch = self._torch
        marks: List[Any] = []
        end = time.monotonic() + seconds
        while len(marks) < 2 * _PRODUCTS_QUEUED or time.monotonic() < end:
            mark = torch.cuda.Event(enable_timing=True, blocking=True)
            mark.record()
            marks.append(mark)
            torch.mm(a, b, out=c)
            if len(marks) > _PRODUCTS_QUEUED:
                marks[-_PRODUCTS_QUEUED].synchronize()
        torch.cuda.synchronize()
        return [marks[n].elapsed_time(marks[n + 1]) / 1e3 for n in range(len(marks) - 1)]


def _require_cuda(torch: Any, gpu: Dict[str, Any]) -> None:
    if torch.version.cuda is None:
        raise ProbeError(
            "the torch %s of %s has no CUDA" % (torch.__version__, sys.executable), hint=TORCH_HINT
        )
    try:
        torch.cuda.init()
        shown = torch.cuda.device_count()
    except Exception as error:
        raise ProbeError(
            "CUDA does not start: %s" % _first_line(error),
            hint="compare the driver's CUDA version (nvidia-smi) with the one torch was built for (%s)"
            % torch.version.cuda,
        ) from error
    if shown != 1:
        raise ProbeError(
            "CUDA shows %d GPUs where %s alone was asked for" % (shown, gpu["uuid"]),
            hint="is MIG on? The probe needs the whole GPU",
        )
    uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    if uuid is not None and str(uuid).lower() not in str(gpu["uuid"]).lower():
        raise ProbeError("CUDA shows GPU %s where %s was asked for" % (uuid, gpu["uuid"]))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
