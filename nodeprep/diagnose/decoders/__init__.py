"""What messages mean, one family a file: lines become typed events."""

from __future__ import annotations

from nodeprep.diagnose.decoder import Decoder
from nodeprep.registry import discover

__all__ = ["all_decoders"]


def all_decoders() -> dict[str, Decoder]:
    """Every decoder by id, in the order of their names.

    Raises:
        NodeprepError: A module of this folder defines no DECODER, or one with another id.
        ImportError: A module does not import.
    """
    return discover(__name__, "DECODER")
