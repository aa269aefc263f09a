"""One phase a file. The levels say which run, in which order and for how long."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Dict

from ._phase import NOT_REACHED, Assignment, Part, Phase, Stage, View

__all__ = ["NOT_REACHED", "PHASES", "Assignment", "Part", "Phase", "Stage", "View"]


def _discover() -> Dict[str, Phase]:
    """Takes PHASE from every file here, in the order of their names; an import failure is an error."""
    found: Dict[str, Phase] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        if name.startswith("_"):
            continue
        phase: Phase = importlib.import_module("%s.%s" % (__name__, name)).PHASE
        if phase.name != name.replace("_", "-"):
            raise ImportError("the phase in %s.py calls itself %s" % (name, phase.name))
        found[phase.name] = phase
    return found


PHASES = _discover()
