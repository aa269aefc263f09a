"""One desired-state unit a file; see _knob.py for what a knob is and docs/knobs/ for what each means."""

from nodeprep.knobs._bios_effects import unseen_effects
from nodeprep.knobs._knob import Knob
from nodeprep.knobs._plan import all_knobs, build_plan

__all__ = ["Knob", "all_knobs", "build_plan", "unseen_effects"]
