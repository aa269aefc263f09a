"""Diagnose: from logs and counters to incidents."""

from __future__ import annotations

from collections.abc import Sequence

from nodeprep.diagnose.engine import Progress, diagnose
from nodeprep.diagnose.inputs import find_inputs
from nodeprep.model.diagnosis import Diagnosis


def diagnose_files(paths: Sequence[str], *, progress: Progress | None = None) -> Diagnosis:
    """Incidents of one node's logs and saved outputs.

    Raises:
        UsageError: A path does not exist.
    """
    return diagnose(find_inputs(paths), progress=progress)
