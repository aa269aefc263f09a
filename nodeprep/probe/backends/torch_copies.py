"""Pinned host memory copies both ways on streams of their own, with verified content."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Callable, Deque, Tuple

import torch

from ...node import reading
from ..hashing import key
from ._backend import CopyTotals, ReadingDict
from .torch_model import digest, hash_counters, row_weights

COPY_BYTES = 256 << 20
# Copies queued per direction: the next starts while the host still looks at the last.
QUEUED = 3
# One copy in so many is checked, which reads the buffer once on the GPU (0.1 ms of each 40). Odd, so that
# both patterns get their turn.
CHECK_EVERY = 7
# A share of the time is a part of each such period: several copies long, and short beside an iteration.
SHARE_PERIOD_S = 0.1
_ROW_WORDS = 1 << 16

Tensor = Any


class Direction:
    """Copies in flight one way, oldest first."""

    def __init__(self) -> None:
        # First in line for free multiprocessors, so that the digest of a checked copy does not hold up
        # the copies behind it for longer than it must.
        self.stream = torch.cuda.Stream(priority=-1)
        self.in_flight: Deque[Tuple[Any, Callable[[], None]]] = deque()
        self.issued = 0
        self.bytes = 0

    def issue(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Queues a copy; `then` runs on the host after it is done."""
        with torch.cuda.stream(self.stream):
            work()
            event = torch.cuda.Event(blocking=True)
            event.record(self.stream)
        self.issued += 1
        self.in_flight.append((event, then))

    def collect(self) -> None:
        """Counts the copies that are done."""
        while self.in_flight and self.in_flight[0][0].query():
            self._finish()

    def wait(self) -> None:
        """Waits for the oldest copy."""
        self.in_flight[0][0].synchronize()
        self._finish()

    def drain(self) -> None:
        """Waits for all."""
        while self.in_flight:
            self.wait()

    def _finish(self) -> None:
        _, then = self.in_flight.popleft()
        self.bytes += COPY_BYTES
        then()


class Copier:
    """Two patterns that take turns, so that a copy that never happened shows as the other one.

    Host to device: pinned sources hold the patterns; every seventh copy goes to a buffer of its own,
    whose digest is compared with the pattern's. Device to host: every seventh copy lands in a buffer of
    its own, which the other direction then sends back; what arrives is compared the same way. So all
    comparing is done on the GPU, on a stream of its own, and no host core reads gigabytes.
    """

    def __init__(self, device: Any, seed: int) -> None:
        words = COPY_BYTES // 8
        self._weights = row_weights(words // _ROW_WORDS, device)
        self._patterns = [self._pattern(key(seed, "copy%d" % n), device) for n in range(2)]
        self._expected = [self._digest(pattern) for pattern in self._patterns]
        self._target = torch.empty(words, dtype=torch.int64, device=device)
        self._checked_target = torch.empty(words, dtype=torch.int64, device=device)
        self._checked_target_is_free = True
        # Copies that arrived changed, counted on the GPU.
        self.errors = torch.zeros(1, dtype=torch.int64, device=device)
        self._noted_errors = 0
        self._sources = [torch.empty(words, dtype=torch.int64, pin_memory=True) for _ in range(2)]
        for which, source in enumerate(self._sources):
            source.copy_(self._patterns[which])
        self._landing = torch.empty(words, dtype=torch.int64, pin_memory=True)
        self._checked_landing = torch.empty(words, dtype=torch.int64, pin_memory=True)
        # "free", "filling", "filled" or "returning": who may touch the buffer that is sent back.
        self._landing_state = "free"
        self._landing_pattern = 0
        self._to_device, self._to_host = Direction(), Direction()
        # A comparison waits its turn among the model's kernels, some 15 ms on an H200; the copies do not.
        self._checking = Direction()
        self._checks = 0
        self._base_errors = 0
        self._directions: Tuple[str, ...] = ("h2d", "d2h")
        self._share = 1.0
        self._started = time.monotonic()
        torch.cuda.synchronize()
        self._check_sources()

    def alone(self, seconds: float) -> Tuple[ReadingDict, ReadingDict]:
        """GB/s of each direction by itself."""
        to_device = self._rate(self._to_device, self._issue_to_device, seconds)
        to_host = self._rate(self._to_host, self._issue_to_host, seconds)
        return reading.ok(to_device), reading.ok(to_host)

    def ask(self, directions: Tuple[str, ...], share: float) -> None:
        """What streaming does from now on: its ways, and the part of the time that each is kept busy."""
        self._directions, self._share = directions, share

    def restart_totals(self) -> None:
        """Totals count from here; errors seen before stay counted, they happened."""
        self.pump()
        self._to_device.bytes = self._to_host.bytes = 0
        self._started = time.monotonic()

    def pump(self) -> None:
        """Collects finished copies and queues new ones; call it every few milliseconds."""
        for direction, issue in (
            (self._to_device, self._issue_to_device),
            (self._to_host, self._issue_to_host),
        ):
            direction.collect()
            self._checking.collect()
            while len(direction.in_flight) < QUEUED and self._may_issue(direction):
                issue()

    def totals(self) -> CopyTotals:
        """What was copied since the totals were restarted, and the errors noted by now."""
        elapsed = time.monotonic() - self._started
        return CopyTotals(
            h2d_gbps=self._rate_of("h2d", self._to_device, elapsed),
            d2h_gbps=self._rate_of("d2h", self._to_host, elapsed),
            bytes_h2d=self._to_device.bytes,
            bytes_d2h=self._to_host.bytes,
            content_errors=self._base_errors + self._noted_errors,
            content_checks=self._checks,
        )

    def note_errors(self, count: int) -> None:
        """Takes a value of `errors` that came to the host with something else."""
        self._noted_errors = count

    def drain(self) -> None:
        """Waits until no copy is under way, and notes what the last checks found."""
        self._to_device.drain()
        self._to_host.drain()
        self._checking.drain()
        self.note_errors(int(self.errors[0]))

    def _may_issue(self, direction: Direction) -> bool:
        """Whether it is this way's turn, and its time within the share of each period."""
        if (
            self._share < 1
            and (time.monotonic() - self._started) % SHARE_PERIOD_S >= self._share * SHARE_PERIOD_S
        ):
            return False
        if direction is self._to_host:
            return "d2h" in self._directions
        # Without copies to the device, those that bring a checked landing back for its comparison still go.
        return "h2d" in self._directions or (self._landing_state == "filled" and self._checked_target_is_free)

    def _rate_of(self, way: str, direction: Direction, elapsed: float) -> ReadingDict:
        if way not in self._directions or not self._share:
            return reading.not_supported("the workload asks for no copies this way")
        return reading.ok(direction.bytes / elapsed / 1e9)

    def _pattern(self, name_key: int, device: Any) -> Tensor:
        return hash_counters(name_key, COPY_BYTES // 4, device).view(torch.int64)

    def _digest(self, buffer: Tensor) -> Tensor:
        return digest(buffer.view(-1, _ROW_WORDS), self._weights)

    def _check_sources(self) -> None:
        """The host's copy of each pattern, digested by the CPU: the first content check of all."""
        weights = row_weights(self._sources[0].numel() // _ROW_WORDS, "cpu")
        for which, source in enumerate(self._sources):
            self._checks += 1
            found = int(digest(source.view(-1, _ROW_WORDS), weights))
            self._base_errors += int(found != int(self._expected[which]))

    def _rate(self, direction: Direction, issue: Callable[[], None], seconds: float) -> float:
        """Decimal GB/s over `seconds`, after two copies that wake the link."""
        for _ in range(2 + QUEUED):
            issue()
        direction.wait()
        direction.wait()
        before = direction.bytes
        started = time.monotonic()
        while True:
            direction.wait()
            elapsed = time.monotonic() - started
            if elapsed >= seconds:
                break
            issue()
        rate = (direction.bytes - before) / elapsed / 1e9
        direction.drain()
        return rate

    def _issue_to_device(self) -> None:
        direction = self._to_device
        which = direction.issued % 2
        if not self._checked_target_is_free:
            direction.issue(lambda: self._send(which, self._target), _nothing)
        elif self._landing_state == "filled":
            self._landing_state = "returning"
            self._checked_target_is_free = False
            direction.issue(self._send_back, self._returned)
        elif direction.issued % CHECK_EVERY == 1:
            self._checked_target_is_free = False
            direction.issue(lambda: self._send(which, self._checked_target), lambda: self._check(which))
        else:
            direction.issue(lambda: self._send(which, self._target), _nothing)

    def _send(self, which: int, target: Tensor) -> None:
        target.copy_(self._sources[which], non_blocking=True)

    def _send_back(self) -> None:
        self._checked_target.copy_(self._checked_landing, non_blocking=True)

    def _returned(self) -> None:
        which = self._landing_pattern
        self._landing_state = "free"
        self._check(which)

    def _check(self, which: int) -> None:
        """Compares what has arrived in the checked target."""
        self._checking.issue(lambda: self._compare(which), self._counted)

    def _compare(self, which: int) -> None:
        """The count stays on the GPU.

        One 8-byte copy to the host waited 986 ms behind the big ones of the
        other direction (profiled on an H200), and the copies to the device with it, at 0.9 GB/s.
        """
        self.errors.add_(self._digest(self._checked_target) != self._expected[which])

    def _issue_to_host(self) -> None:
        direction = self._to_host
        which = direction.issued % 2
        if direction.issued % CHECK_EVERY == 1 and self._landing_state == "free":
            self._landing_state = "filling"
            self._landing_pattern = which
            direction.issue(lambda: self._receive(self._checked_landing, which), self._landing_is_filled)
        else:
            direction.issue(lambda: self._receive(self._landing, which), _nothing)

    def _receive(self, landing: Tensor, which: int) -> None:
        landing.copy_(self._patterns[which], non_blocking=True)

    def _landing_is_filled(self) -> None:
        self._landing_state = "filled"

    def _counted(self) -> None:
        self._checked_target_is_free = True
        self._checks += 1


def _nothing() -> None:
    """A copy that is not checked."""
