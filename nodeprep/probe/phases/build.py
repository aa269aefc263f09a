"""Weights and image, made on the GPU."""

from __future__ import annotations

from ._phase import Phase, Stage


def _run(stage: Stage, seconds: float) -> None:  # noqa: ARG001 - it takes what it takes
    stage.backend.build(stage.workload)
    # Streaming follows, and would slow the lone copies of a GPU whose turn comes later.
    stage.turns.wait_for_others()


PHASE = Phase(name="build", words="making weights", run=_run)
