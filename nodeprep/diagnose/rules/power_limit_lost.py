"""A power limit that was set is gone, since the driver let go of the GPU."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._symptoms import follows

_TOLERANCE_W = 1.0


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU whose limit stands at the default after another was set."""
    for host, device, sets in evidence.by_device(evidence.open("power.limit_set")):
        last = sets[-1]
        limit = float(last.data["limit_w"])
        later = [
            event
            for event in evidence.seen("smi.gpu", host=host, device=device)
            if "power_limit_w" in event.data and follows(evidence, last, event, float("inf"))
        ]
        found = next(
            (event for event in later if abs(float(event.data["power_limit_w"]) - limit) > _TOLERANCE_W), None
        )
        if found is None:
            evidence.explain(sets)
            continue
        now = float(found.data["power_limit_w"])
        off = evidence.open("power.persistence_off", host=host)
        is_off = found.data.get("persistence") is False or bool(off)
        default = float(found.data.get("power_default_w", 0)) == now
        yield Finding(
            layer="config",
            severity="warning",
            device=device,
            summary=f"power limit of {device} went back from {limit:g} W to {now:g} W"
            + (" with persistence mode off" if is_off else ""),
            why=(
                f"{limit:g} W was set, and later {now:g} W is in force"
                + (", the card's default." if default else ".")
                + " The limit lives in the driver's state"
                + (
                    "; with persistence mode disabled the driver lets go of an idle GPU, and the "
                    "default comes back "
                    "without any reboot."
                    if is_off
                    else ", which a reboot or a reload of the driver resets."
                )
            ),
            events=(*sets, *off, found),
            action="fix_config",
            then=("enable_persistence_mode", "set_power_limit_at_each_start"),
            root_event="power.limit_set",
            count=1,
        )


RULE = Rule(id="power_limit_lost", rank=68, explain=explain)
