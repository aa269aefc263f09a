"""Patterns over a small buffer of the host: real arithmetic for the simulated rack."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from ..hashing import hexadecimal, key
from ..patterns import ALTERNATING, PATTERNS
from ._backend import MemoryFault
from .numpy_model import hash_counters

# Of each block; keys are those of the real block size, so a block number means the same.
BLOCK_WORDS = 1 << 13
BLOCKS = 8
FAULTS_KEPT = 20
_SEED = 31


class Buffer:
    """Memory that is written and compared as the torch backend does it.

    Args:
        block_bytes: Size of a block of the memory that this stands for.
        disturb: Called with each block after it was written, for faults.
    """

    def __init__(self, block_bytes: int, disturb: Optional[Callable[[int, Any], None]] = None) -> None:
        self._block_bytes = block_bytes
        self._disturb = disturb
        self._sources = {
            "offsets": np.arange(BLOCK_WORDS, dtype=np.uint64) * np.uint64(8),
            "alternating": np.full(BLOCK_WORDS, ALTERNATING, dtype=np.uint64),
            "hash": hash_counters(key(_SEED, "walk"), 2 * BLOCK_WORDS).view(np.uint64),
        }
        self._blocks: Any = np.zeros((BLOCKS, BLOCK_WORDS), dtype=np.uint64)

    def walk(self) -> Tuple[int, Tuple[MemoryFault, ...]]:
        """Every pattern once: how many words differed, and the first of them."""
        errors = 0
        faults: List[MemoryFault] = []
        for name, pattern in PATTERNS.items():
            source = self._sources[pattern.source]
            keys = [np.uint64(pattern.block_key(place * self._block_bytes)) for place in range(BLOCKS)]
            for place in range(BLOCKS):
                self._blocks[place] = source ^ keys[place]
                if self._disturb:
                    self._disturb(place, self._blocks[place])
            for place in range(BLOCKS):
                expected = source ^ keys[place]
                wrong = np.nonzero(self._blocks[place] != expected)[0]
                errors += len(wrong)
                for index in wrong[: FAULTS_KEPT - len(faults)]:
                    offset = place * self._block_bytes + 8 * int(index)
                    words = hexadecimal(int(expected[index])), hexadecimal(int(self._blocks[place][index]))
                    faults.append(MemoryFault(offset, name, *words, again=True))
        return errors, tuple(faults)
