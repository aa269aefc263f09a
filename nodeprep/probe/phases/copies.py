"""Pinned copies, one direction at a time, one GPU of the node at a time."""

from __future__ import annotations

from typing import Dict

from ...node import reading
from ..workload import Workload
from ._phase import Document, Part, Phase, Stage, Take, View, not_reached

_NOT_ALONE = reading.error("another GPU did not end its copies, so none could be measured alone")


def _run(stage: Stage, seconds: float) -> None:
    """`seconds` for both directions together."""
    with stage.turns.alone() as alone:
        h2d, d2h = stage.backend.copies_alone(seconds / 2) if alone else (_NOT_ALONE, _NOT_ALONE)
    stage.send(kind="copies_alone", h2d=h2d, d2h=d2h)


class _Part(Part):
    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self._alone = {"h2d": not_reached(), "d2h": not_reached()}

    def takes(self) -> Dict[str, Take]:
        return {"copies_alone": lambda m: self._alone.update(h2d=m["h2d"], d2h=m["d2h"])}

    def document(self, view: View) -> Document:  # noqa: ARG002
        return {"copies": {"alone_h2d_gbps": self._alone["h2d"], "alone_d2h_gbps": self._alone["d2h"]}}


PHASE = Phase(
    name="copies",
    words="host memory copies, one direction at a time",
    run=_run,
    part=_Part,
)
