"""How fast device memory is: copying, reading, writing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List

from ...node import reading
from ..workload import Workload
from ._phase import Document, Part, Phase, Stage, Take, View, not_reached


def _run(stage: Stage, seconds: float) -> None:
    stage.send(kind="hbm_bandwidth", t=stage.now(), rates=asdict(stage.backend.memory_rates(seconds)))


class _Part(Part):
    """The slowest round counts."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self._rounds: List[Dict[str, Any]] = []

    def takes(self) -> Dict[str, Take]:
        return {"hbm_bandwidth": lambda m: self._rounds.append(m["rates"])}

    def document(self, view: View) -> Document:  # noqa: ARG002
        if not self._rounds:
            return {"hbm_bandwidth": not_reached()}
        names = self._rounds[0]
        return {"hbm_bandwidth": reading.ok({name: self._least(name) for name in names})}

    def _least(self, name: str) -> Dict[str, Any]:
        readings = [rates[name] for rates in self._rounds]
        unread = next((one for one in readings if one["state"] != "ok"), None)
        return unread or reading.ok(min(one["value"] for one in readings))


PHASE = Phase(
    name="hbm-bandwidth",
    words="device memory copied, read and written",
    run=_run,
    part=_Part,
)
