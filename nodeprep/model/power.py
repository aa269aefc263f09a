"""Power limits as policies write them, in watts."""

from __future__ import annotations


def is_share(limit: str) -> bool:
    """True for "93%", false for "650W"."""
    return limit.rstrip().endswith("%")


def limit_w(limit: str, default_w: float) -> float:
    """The watts a policy's limit means for a board.

    Args:
        limit: "650W", or "93%" of the board's default.
        default_w: The board's default limit; only looked at for a share.

    Returns:
        Watts; a share is rounded to whole watts, as the node writes it.
    """
    number = float(limit.rstrip("W% "))
    return float(int(default_w * number / 100 + 0.5)) if is_share(limit) else number
