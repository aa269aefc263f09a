"""Vendor-neutral BIOS knobs over the attributes of any vendor's BIOS. Pure: a client brings the values.

Reading order: attributes (what is known of a BIOS), match and link_speed (which attribute a knob is),
meanings and spelling (what values mean, and how they are written), knob and knobs/ (the knobs), vendor and
vendors/ (what registries do not tell), resolve, choice, part, over, draft (values of one knob), state, plan.
"""

from nodeprep.bmc.bios.attributes import BiosView
from nodeprep.bmc.bios.knob import BiosKnob, knobs
from nodeprep.bmc.bios.plan import plan
from nodeprep.bmc.bios.show import show
from nodeprep.bmc.bios.wanted import Wanted, from_policy, parse_settings

__all__ = [
    "BiosKnob",
    "BiosView",
    "Wanted",
    "from_policy",
    "knobs",
    "parse_settings",
    "plan",
    "show",
]
