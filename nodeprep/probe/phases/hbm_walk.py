"""All free device memory written with patterns, and compared."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List

from ...node import reading
from ..workload import Workload
from ._phase import Document, Part, Phase, Stage, Take, View, not_reached

# In full in the result; all are counted.
FAULTS_KEPT = 100


def _run(stage: Stage, seconds: float) -> None:
    walk = stage.backend.walk_memory(seconds)
    stage.send(kind="hbm_walk", t=stage.now(), round=stage.round, walk=asdict(walk))


class _Part(Part):
    """The first round's walk covers most: the model is not there yet. Errors of all rounds count."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self._walks: List[Dict[str, Any]] = []
        self._faults: List[Dict[str, Any]] = []

    def takes(self) -> Dict[str, Take]:
        return {"hbm_walk": self._take}

    def document(self, view: View) -> Document:  # noqa: ARG002
        if not self._walks:
            return {"hbm_walk": not_reached()}
        largest = max(self._walks, key=lambda walk: walk["walked_bytes"])
        found = {
            **{name: largest[name] for name in ("walked_bytes", "free_bytes", "total_bytes")},
            "walks": len(self._walks),
            "patterns": {
                name: {
                    "passes": sum(walk["passes"][name] for walk in self._walks),
                    "gbps": min(walk["gbps"][name] for walk in self._walks),
                }
                for name in largest["passes"]
            },
            "errors": sum(walk["errors"] for walk in self._walks),
            "faults": self._faults,
        }
        return {"hbm_walk": reading.ok(found)}

    def _take(self, message: Dict[str, Any]) -> None:
        walk = message["walk"]
        self._walks.append(walk)
        room = FAULTS_KEPT - len(self._faults)
        self._faults.extend({**fault, "round": message["round"]} for fault in walk["faults"][:room])


PHASE = Phase(
    name="hbm-walk",
    words="all free device memory written with patterns and compared",
    run=_run,
    part=_Part,
)
