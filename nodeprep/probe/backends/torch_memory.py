"""Device memory: how fast it is, and whether it keeps what is written to all of it."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

import torch

from ...node import nvml_library, reading
from ..hashing import hexadecimal, key, signed64
from ..patterns import ALTERNATING, BLOCK_BYTES, PATTERNS
from ._backend import MemoryFault, MemoryRates, MemoryWalk, ReadingDict
from .torch_model import hash_counters

# Left to the driver and to monitors that open a context on the GPU meanwhile.
RESERVE_BYTES = 2 << 30
# One allocation; smaller ones are tried when the memory is in pieces.
CHUNK_BYTES = 8 << 30
RATE_BYTES = 4 << 30
# In full; all are counted.
FAULTS_KEPT = 20
_SEED = 31

Tensor = Any


def rates(device: Any, seconds: float, uuid: str) -> MemoryRates:
    """The median rate of copies, reads and writes of buffers far larger than any cache."""
    try:
        copied, read, written = _measured(device, seconds / 3)
        return MemoryRates(copied, read, written, peak_gbps=peak(uuid))
    except torch.cuda.OutOfMemoryError as error:
        lacking = reading.error("no memory for the buffers: %s" % str(error).splitlines()[0])
        return MemoryRates(lacking, lacking, lacking, peak_gbps=peak(uuid))
    finally:
        torch.cuda.empty_cache()


def _measured(device: Any, seconds: float) -> Tuple[ReadingDict, ReadingDict, ReadingDict]:
    """Copy, read and write, so long each."""
    source = torch.empty(RATE_BYTES // 8, dtype=torch.int64, device=device).fill_(ALTERNATING)
    target = torch.empty(RATE_BYTES // 8, dtype=torch.int64, device=device)
    return (
        _rate(lambda: target.copy_(source), 2 * RATE_BYTES, seconds),
        _rate(source.sum, RATE_BYTES, seconds),
        _rate(target.zero_, RATE_BYTES, seconds),
    )


def peak(uuid: str) -> ReadingDict:
    """Memory clock, two transfers each, times the width of the bus. CUDA 13 no longer says; NVML does."""
    try:
        pynvml = nvml_library.load()
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            bits = int(pynvml.nvmlDeviceGetMemoryBusWidth(handle))
            mhz = int(pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM))
        finally:
            pynvml.nvmlShutdown()
    except Exception as error:  # becomes the reading
        return reading.error("NVML does not say the memory's clock and width: %s" % error)
    return reading.ok(2.0 * mhz * 1e6 * bits / 8 / 1e9)


def _rate(work: Callable[[], Any], moved_bytes: int, seconds: float) -> ReadingDict:
    work()
    times: List[float] = []
    end = time.monotonic() + seconds
    while len(times) < 3 or time.monotonic() < end:
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record()
        work()
        after.record()
        after.synchronize()
        times.append(before.elapsed_time(after) / 1e3)
    return reading.ok(moved_bytes / sorted(times)[len(times) // 2] / 1e9)


class Walker:
    """All free memory of one GPU in blocks, for the length of a walk.

    Offsets count over the blocks in the order in which they were allocated. They tell one place from
    another within a walk; the driver does not say which physical cells stand behind them.
    """

    def __init__(self, device: Any) -> None:
        torch.cuda.empty_cache()
        self._sources = _sources(device)
        self._found = torch.empty(BLOCK_BYTES // 8, dtype=torch.int64, device=device)
        self.free_bytes, self.total_bytes = torch.cuda.mem_get_info(device)
        self.blocks = _blocks(self.free_bytes - RESERVE_BYTES, device)
        self._extremes = torch.empty((2, len(self.blocks)), dtype=torch.int64, device=device)
        # Made once: thousands of launches a second are what limits a walk, not the memory.
        least, greatest = self._extremes
        self._pairs = [(least[place], greatest[place]) for place in range(len(self.blocks))]
        self._errors = 0
        self._faults: List[MemoryFault] = []

    @property
    def walked_bytes(self) -> int:
        """Memory in blocks."""
        return len(self.blocks) * BLOCK_BYTES

    def walk(self, seconds: float) -> MemoryWalk:
        """Every pattern once, and again while there is time."""
        end = time.monotonic() + seconds
        passes = dict.fromkeys(PATTERNS, 0)
        took = dict.fromkeys(PATTERNS, 0.0)
        longest = 0.0
        while not all(passes.values()) or time.monotonic() + longest < end:
            name = min(passes, key=lambda one: passes[one])
            started = time.monotonic()
            self.write(name)
            self.compare(name)
            longest = max(longest, time.monotonic() - started)
            took[name] += time.monotonic() - started
            passes[name] += 1
        return MemoryWalk(
            walked_bytes=self.walked_bytes,
            free_bytes=self.free_bytes,
            total_bytes=self.total_bytes,
            passes=passes,
            gbps={name: self._gbps(passes[name], took[name]) for name in PATTERNS},
            errors=self._errors,
            faults=tuple(self._faults),
        )

    def write(self, name: str) -> None:
        """Fills all blocks."""
        source = self._sources[PATTERNS[name].source]
        for place, block in enumerate(self.blocks):
            torch.bitwise_xor(source, self._key(name, place), out=block)

    def compare(self, name: str) -> None:
        """Reads all blocks; those that differ are looked at word by word."""
        source = self._sources[PATTERNS[name].source]
        for place, block in enumerate(self.blocks):
            torch.bitwise_xor(block, source, out=self._found)
            # Least and greatest are equal to the key only when every word is: exact, and no larger
            # than two words.
            torch.aminmax(self._found, out=self._pairs[place])
        least, greatest = self._extremes.tolist()
        for place in range(len(self.blocks)):
            pair = least[place], greatest[place]
            if pair != (self._key(name, place),) * 2:
                self._look_at(name, place, pair)

    def _key(self, name: str, place: int) -> int:
        return signed64(PATTERNS[name].block_key(place * BLOCK_BYTES))

    def _look_at(self, name: str, place: int, first_read: Tuple[int, int]) -> None:
        wanted = self._key(name, place)
        source = self._sources[PATTERNS[name].source]
        torch.bitwise_xor(self.blocks[place], source, out=self._found)
        wrong = (self._found != wanted).nonzero().view(-1)
        self._errors += max(1, wrong.numel())
        for index in wrong[: FAULTS_KEPT - len(self._faults)].tolist():
            expected, got = int(source[index]) ^ wanted, int(self.blocks[place][index])
            offset = place * BLOCK_BYTES + 8 * index
            self._faults.append(MemoryFault(offset, name, hexadecimal(expected), hexadecimal(got), True))
        if not wrong.numel() and len(self._faults) < FAULTS_KEPT:
            # Right by now: where in the block it was is not known any more, only which bits.
            got = next(value for value in first_read if value != wanted)
            words = hexadecimal(wanted), hexadecimal(got)
            self._faults.append(MemoryFault(place * BLOCK_BYTES, name, *words, again=False))

    def _gbps(self, passes: int, seconds: float) -> float:
        return 2.0 * self.walked_bytes * passes / seconds / 1e9


def walk(device: Any, seconds: float) -> MemoryWalk:
    """Walks all free memory and gives it back."""
    walker = Walker(device)
    try:
        return walker.walk(seconds)
    finally:
        del walker
        torch.cuda.empty_cache()


def _sources(device: Any) -> Dict[str, Tensor]:
    words = BLOCK_BYTES // 8
    offsets = torch.arange(words, dtype=torch.int64, device=device).mul_(8)
    alternating = torch.empty(words, dtype=torch.int64, device=device).fill_(ALTERNATING)
    hashed = hash_counters(key(_SEED, "walk"), 2 * words, device).view(torch.int64)
    return {"offsets": offsets, "alternating": alternating, "hash": hashed}


def _blocks(room_bytes: int, device: Any) -> Sequence[Tensor]:
    blocks: List[Tensor] = []
    size = CHUNK_BYTES
    while room_bytes >= BLOCK_BYTES and size >= BLOCK_BYTES:
        size = min(size, room_bytes) // BLOCK_BYTES * BLOCK_BYTES
        try:
            chunk = torch.empty(size // 8, dtype=torch.int64, device=device)
        except torch.cuda.OutOfMemoryError:
            size //= 2
            continue
        blocks.extend(chunk.split(BLOCK_BYTES // 8))
        room_bytes -= size
    return blocks
