"""What a rank can do with its GPU; the parent knows nothing else of it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any, Callable, Dict, List, Optional, Tuple

H2D, D2H = "h2d", "d2h"


class Device(ABC):
    """One GPU, and its way to the others.

    Args:
        spec: Number, addresses and uuids of all GPUs of the run in the order of the ranks, and the root.
        tell: Called with keyword arguments for each message to the parent.
    """

    def __init__(self, spec: Dict[str, Any], tell: Callable[..., None]) -> None:
        self.number: int = spec["number"]
        self.addresses: Tuple[str, ...] = tuple(spec["addresses"])
        self.uuids: Tuple[str, ...] = tuple(spec["uuids"])
        self._hangs: bool = spec["hangs"]
        self._tell = tell
        self._collectives = 0

    @abstractmethod
    def about(self) -> Dict[str, Any]:
        """Versions, and by address of each other GPU a reading of whether this one can reach its memory."""

    @abstractmethod
    def host_copies(self, direction: str, seconds: float, at: float, beside: List[str]) -> Dict[str, Any]:
        """Copies one way ("h2d" or "d2h").

        Args:
            direction: Of the copies.
            seconds: How long.
            at: When to begin, on the machine's monotonic clock, which all ranks share.
            beside: Addresses of all GPUs that copy at that time, this one included.

        Returns:
            GB/s, and how many copies were compared with the pattern and differed.
        """

    @abstractmethod
    def pair(self, to: int, seconds: float, both_ways: bool) -> Dict[str, Any]:
        """Copies to another GPU, or both ways at once; GB/s are of all directions together.

        Returns:
            GB/s; how many copies the GPU at the far end compared, and how many of them it found changed; of
            both ways also how many that came back were changed here.
        """

    @abstractmethod
    def join(self, transport: str, meeting: str) -> Dict[str, Any]:
        """Joins the other ranks.

        Args:
            transport: "nccl", "gloo" or "ring".
            meeting: Folder that all ranks share; its path is short.
        """

    def all_reduce(self, size: int, repeats: int, verify: bool) -> Dict[str, Any]:
        """One all-reduce of so many bytes, so many times. Tells the parent when it enters and leaves.

        Returns:
            Seconds of one, and how many elements of the result were wrong (None when not looked at).
        """
        self._collectives += 1
        if self._hangs:
            # Asked for, so that it is proven that a rank which does not arrive is named.
            while True:
                time.sleep(3600.0)
        self._tell(kind="enter", collective=self._collectives)
        seconds, wrong = self._reduce(size, repeats, verify)
        self._tell(kind="leave", collective=self._collectives)
        return {"seconds": seconds, "wrong": wrong}

    @abstractmethod
    def _reduce(self, size: int, repeats: int, verify: bool) -> Tuple[float, Optional[int]]:
        """See `all_reduce`."""
