"""PCIe traffic of a GPU from byte counters that are 32 bits wide and wrap within a tenth of a second."""

from __future__ import annotations

from typing import Optional, Tuple

# Least share of an interval that must have been watched closely enough for its mean to be stated.
LEAST_COVERAGE = 0.5
WRAP = 1 << 32

# Bytes a second and lane after line coding, so nothing on the link can be faster.
# Source: PCI Express Base Specification (8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, then flits).
LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.970e9, 5: 3.939e9, 6: 8.0e9}

Rates = Tuple[Optional[float], Optional[float]]


class PcieMeter:
    """Sums up counter steps between two calls of `take`.

    A step is only known when the counter cannot have wrapped more than once meanwhile; a longer
    step is left out of both the bytes and the time, never guessed.

    Args:
        gen: Highest generation the link may run at.
        lanes: Its greatest width.
    """

    def __init__(self, gen: int, lanes: int) -> None:
        fastest = LANE_BYTES_PER_S.get(gen, max(LANE_BYTES_PER_S.values())) * lanes
        self.longest_step_s = WRAP / fastest
        self._last: Optional[Tuple[float, int, int, bool]] = None
        self._taken_at: Optional[float] = None
        self._rx = self._tx = 0
        self._known_s = 0.0

    def feed(self, now_s: float, rx: int, tx: int, *, wraps: bool) -> None:
        """Takes a reading of both counters in bytes; `wraps` says that they are 32 bits wide."""
        last = self._last
        self._last = (now_s, rx, tx, wraps)
        if self._taken_at is None:
            self._taken_at = now_s
        if last is None or last[3] != wraps:
            return
        step_s = now_s - last[0]
        if wraps:
            if step_s >= self.longest_step_s:
                return
            self._rx += (rx - last[1]) % WRAP
            self._tx += (tx - last[2]) % WRAP
        elif rx < last[1] or tx < last[2]:
            # A driver reload started the counters anew.
            return
        else:
            self._rx += rx - last[1]
            self._tx += tx - last[2]
        self._known_s += step_s

    def miss(self) -> None:
        """A reading failed: the next step would bridge a gap of unknown state."""
        self._last = None

    def take(self, now_s: float) -> Rates:
        """Mean rates in GB/s (rx, tx) since the last `take`; None where too little was watched."""
        since = self._taken_at
        rx, tx, known_s = self._rx, self._tx, self._known_s
        self._rx = self._tx = 0
        self._known_s = 0.0
        self._taken_at = now_s
        if since is None or known_s <= 0 or known_s < LEAST_COVERAGE * (now_s - since):
            return None, None
        return rx / known_s / 1e9, tx / known_s / 1e9
