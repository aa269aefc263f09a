"""Passes that are not measured, but whose NaNs and infinities count."""

from __future__ import annotations

import time

from ._phase import Phase, Stage


def _run(stage: Stage, seconds: float) -> None:
    end = time.monotonic() + seconds
    stage.backend.start_streaming()
    while True:
        started = time.monotonic()
        stage.send(kind="warm_up", non_finite=stage.backend.iterate().non_finite)
        if time.monotonic() >= end:
            return
        stage.pace(started)


PHASE = Phase(
    name="warm-up",
    words="the model with copies both ways, not yet measured",
    run=_run,
)
