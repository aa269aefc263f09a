"""A soak lasted as long as it was to, and its gaps are known."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import result
from nodeprep.model.probe_soak import Soak, SoakGap
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# Least part of the wanted time that was under load. Source: nodeprep's own; a kill costs half an hour at
# most, and a day with more than two of them is no soak.
LEAST_FRACTION = 0.95
SOURCE = "certification level soak, nodeprep's own"
_SHOWN = 5


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for the node."""
    probe = result(context)
    if probe.level != "soak":
        yield CHECK.result("SKIPPED", "node", f"level {probe.level} is no soak")
        return
    yield CHECK.on("node", "probe#/soak", _judge, probe.soak.require("the account of the soak"))


def _judge(soak: Soak) -> CheckResult:
    """A reboot under load is what a soak is there to find; a killed probe says nothing of the node."""
    lost_s = sum(gap.end_s - gap.start_s for gap in soak.gaps)
    part = min(1.0, (soak.lasted_s - lost_s) / soak.wanted_s) if soak.wanted_s > 0 else 0.0
    words = _words(soak.gaps)
    if any(gap.rebooted for gap in soak.gaps):
        return _result("FAIL", part, f"the node rebooted during the soak: {words}")
    if soak.legs < 1 or not part >= LEAST_FRACTION:
        raise Unreadable(
            f"the soak was under load for {part:.1%} of the {soak.wanted_s / 3600:.4g} h asked for, at least "
            f"{LEAST_FRACTION:.0%} wanted" + (f": {words}" if words else "")
        )
    told = f"; gaps: {words}" if words else " without a gap"
    return _result("PASS", part, f"the soak of {soak.wanted_s / 3600:.4g} h ran in {soak.legs} legs{told}")


def _words(gaps: tuple[SoakGap, ...]) -> str:
    shown = [_one(gap) for gap in gaps[:_SHOWN]]
    more = len(gaps) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _one(gap: SoakGap) -> str:
    return f"{gap.end_s - gap.start_s:.0f} s from {gap.start_s / 3600:.2f} h on, {gap.why}"


def _result(status: str, part: float, words: str) -> CheckResult:
    return CHECK.result(
        "FAIL" if status == "FAIL" else "PASS",
        "node",
        words,
        measured=round(part, 4),
        limit=LEAST_FRACTION,
        unit="fraction of the time asked for",
        source=SOURCE,
    )


CHECK = Check(
    id="soak_gaps",
    title="the soak lasted, and its gaps are known",
    phase="load",
    evaluate=evaluate,
)
