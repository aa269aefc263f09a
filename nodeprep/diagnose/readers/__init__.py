"""One log format, or one kind of document, a file; see reader.py for what a reader is."""

from __future__ import annotations

from nodeprep.diagnose.reader import Reader
from nodeprep.registry import discover


def all_readers() -> dict[str, Reader]:
    """Every reader by id, in the order of their names.

    Raises:
        NodeprepError: A module of this folder defines no READER, or one with another id.
        ImportError: A module does not import.
    """
    return discover(__name__, "READER")
