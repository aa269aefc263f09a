"""Large matrix products in the workload's precision: what the model's rate is held against."""

from __future__ import annotations

from typing import Any, Dict

from ..workload import Workload
from ._phase import Document, Part, Phase, Stage, Take, View, not_reached


def _run(stage: Stage, seconds: float) -> None:
    stage.send(kind="ceiling", tflops=stage.backend.ceiling(seconds, stage.workload.dtype))


class _Part(Part):
    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self._ceiling = not_reached()

    def takes(self) -> Dict[str, Take]:
        return {"ceiling": self._take}

    def document(self, view: View) -> Document:  # noqa: ARG002
        return {"ceiling_tflops": self._ceiling}

    def _take(self, message: Dict[str, Any]) -> None:
        self._ceiling = message["tflops"]


PHASE = Phase(name="ceiling", words="large matrix products", run=_run, part=_Part)
