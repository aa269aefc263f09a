"""The generator of weights and patterns: a counter-based hash in 32-bit integer arithmetic.

Every value depends on the seed, the tensor's name and the element's index alone, so numpy on a CPU
and torch on any GPU make the same bits in any order, and billions of them in under a second.

The mixing function is `lowbias32` (Chris Wellons, "Prospecting for Hash Functions", public domain):
two rounds of xor-shift and multiply. The backends repeat the three lines below in their own arrays.
"""

from __future__ import annotations

import hashlib

SHIFTS = (16, 15, 16)
MULTIPLIERS = (0x7FEB352D, 0x846CA68B)
MASK32 = 0xFFFFFFFF
# Odd, so that the row weights below are distinct; 2^64 divided by the golden ratio.
ROW_STEP = 0x9E3779B97F4A7C15
MASK64 = (1 << 64) - 1


def mix(value: int) -> int:
    """The hash of one 32-bit counter."""
    value &= MASK32
    value ^= value >> SHIFTS[0]
    value = value * MULTIPLIERS[0] & MASK32
    value ^= value >> SHIFTS[1]
    value = value * MULTIPLIERS[1] & MASK32
    return value ^ value >> SHIFTS[2]


def key(seed: int, name: str) -> int:
    """The 32-bit key of a tensor; xored into the counter before mixing."""
    digest = hashlib.sha256(b"%d/%s" % (seed, name.encode())).digest()
    return int.from_bytes(digest[:4], "little")


def signed32(value: int) -> int:
    """The same bits as a signed 32-bit number, as array libraries without unsigned types want them."""
    return value - (1 << 32) if value & 0x80000000 else value


def signed64(value: int) -> int:
    """The same bits as a signed 64-bit number."""
    value &= MASK64
    return value - (1 << 64) if value >> 63 else value


def row_weight(row: int) -> int:
    """The odd 64-bit weight of a row in an output digest."""
    return (row * ROW_STEP | 1) & MASK64


def hexadecimal(digest: int) -> str:
    """A 64-bit digest as 16 hex digits, whatever its sign."""
    return "%016x" % (digest & MASK64)
