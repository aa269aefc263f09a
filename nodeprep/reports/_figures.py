"""A table cell from a reading: a figure, or that there is none, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodeprep.model.reading import Reading
from nodeprep.reports._text import reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A table cell: a figure, or that there is none; `note` says why and stands under the table."""

    text: str
    small: str = ""
    note: str = ""
    grave: bool = False


def figure(value: Reading[Any], what: str, text: Any, small: Any = None, grave: Any = None) -> Figure:
    """A reading as a cell.

    Args:
        value: The reading.
        what: Its name, for the note that says why there is none.
        text: Makes the figure from the value.
        small: Makes what stands below it.
        grave: Says whether it is a fault.
    """
    if value.value is None:
        state = "not supported" if value.state == "not_supported" else "unreadable"
        return Figure(text=state, note=f"{what} {reading(value)}", grave=value.state == "error")
    return Figure(
        text=text(value.value),
        small=small(value.value) if small else "",
        grave=bool(grave and grave(value.value)),
    )
