"""One output format a file; `write_report` puts any of them into a folder."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from nodeprep import registry
from nodeprep.errors import UsageError
from nodeprep.model.run import RunView
from nodeprep.reports._report import Report

__all__ = ["Report", "all_reports", "write_report"]


def all_reports() -> dict[str, Report]:
    """Every format by id."""
    return registry.discover("nodeprep.reports", "REPORT")


def write_report(view: RunView, format_: str, folder: Path) -> Path:
    """Renders a run and writes it; a reader never meets half a page.

    Args:
        view: The run.
        format_: Id of a report, for example "html".
        folder: Where to; made when it is not there. Links on the page are relative to the run folder.

    Returns:
        The file.

    Raises:
        UsageError: There is no such format, or the file cannot be written.
    """
    reports = all_reports()
    if format_ not in reports:
        raise UsageError(f"no report format {format_!r}", hint=f"formats: {', '.join(reports)}")
    report = reports[format_]
    content = report.render(view)
    file = folder / report.file_name
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise UsageError(
            f"{file} cannot be written: {error.strerror}", hint="name another folder with --output"
        ) from error
    return file
