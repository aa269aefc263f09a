"""The patterns that are written over device memory and read back, in terms every backend has.

A block of memory holds one of three sources, each word xored with the block's key. So a whole memory
is written and compared with one operation a block, and no two blocks need the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict

from .hashing import MASK64, key, mix

# 16 MiB: source and result of a comparison stay in the cache (50 MB on an H100), so what is timed and
# tested is the memory behind it.
BLOCK_BYTES = 16 << 20
ALTERNATING = 0x5555555555555555
_SEED = 4711


@dataclass(frozen=True)
class Pattern:
    """How a block looks.

    Attributes:
        source: "offsets" (each word its byte offset in the block), "alternating" (0x5555...) or "hash".
        block_key: The 64-bit key of the block that begins at a byte offset; a multiple of its size.
    """

    source: str
    block_key: Callable[[int], int]


def _hashed(offset_bytes: int) -> int:
    block = offset_bytes // BLOCK_BYTES
    return mix(block ^ key(_SEED, "high")) << 32 | mix(block ^ key(_SEED, "low"))


# address finds lines that reach the wrong cell, the checkerboards cells that leak into their
# neighbours, random what depends on the data and neither of them has.
PATTERNS: Dict[str, Pattern] = {
    "address": Pattern("offsets", lambda offset_bytes: offset_bytes),
    "checkerboard": Pattern("alternating", lambda _: 0),
    "inverse": Pattern("alternating", lambda _: MASK64),
    "random": Pattern("hash", _hashed),
}
