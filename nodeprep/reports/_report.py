"""What a report format is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nodeprep.model.run import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One output format.

    Attributes:
        id: The file's name, and the value of `nodeprep report --format`.
        title: Half a sentence for `nodeprep report --help`.
        file_name: What the file is called in the run folder.
        render: The whole run as bytes. Pure: reads nothing but its argument and the package's own assets.
    """

    id: str
    title: str
    file_name: str
    render: Callable[[RunView], bytes]
