"""The whole run as one JSON document, for other programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nodeprep.model import codec
from nodeprep.model.run import NodeView, Run, RunView
from nodeprep.reports._report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """`nodeprep.run_report/1`: a RunView with a name of its own, so that readers know what they hold."""

    run: Run
    nodes: tuple[NodeView, ...]
    schema: Literal["nodeprep.run_report/1"] = field(default="nodeprep.run_report/1")


def render(view: RunView) -> bytes:
    """The document, indented, keys sorted: the same run gives the same bytes."""
    return codec.encode_pretty(RunReport(run=view.run, nodes=view.nodes))


REPORT = Report(
    id="json",
    title="everything known about the run as one document",
    file_name="report.json",
    render=render,
)
