"""What became of each BIOS value that a run wrote, by what the BMC shows at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nodeprep.bmc.bios.vendor import vendor_of
from nodeprep.bmc.redfish.apply import Result
from nodeprep.bmc.redfish.bios import BiosSettings
from nodeprep.model.bios import BiosOutcome, BiosValue

State = Literal["unchanged", "staged", "applied", "partial", "failed"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run did, and the settings before and after it.

    Attributes:
        last: The settings at the end; None when they could not be read.
        reset: Whether the host was to be restarted; without it values stay staged.
    """

    vendor: str
    before: BiosSettings
    last: BiosSettings | None
    done: Result
    reset: bool

    def outcomes(
        self, steps: Sequence[Mapping[str, BiosValue]], knob_of: Mapping[str, str]
    ) -> tuple[BiosOutcome, ...]:
        """One for each value, in the order of writing."""
        return tuple(
            self._outcome(name, value, knob_of.get(name, ""))
            for step in steps
            for name, value in step.items()
        )

    def state(self, outcomes: Sequence[BiosOutcome]) -> State:
        """All of them in one word."""
        results = {one.result for one in outcomes}
        if not outcomes:
            return "unchanged" if not self.done.error else "failed"
        if results == {"taken"} and not self.done.error:
            return "applied"
        if not self.reset and results <= {"taken", "staged"} and not self.done.error:
            return "staged"
        return "partial" if "taken" in results else "failed"

    def changed_nothing(self) -> bool:
        """Whether the BMC surely carried out nothing, and shows it."""
        done, before, last = self.done, self.before, self.last
        if not done.declined or done.staged or done.jobs or done.restarts or done.resets:
            return False
        return last is not None and (last.current, last.pending) == (before.current, before.pending)

    def _outcome(self, name: str, wanted: BiosValue, knob: str) -> BiosOutcome:
        unread = BiosOutcome(
            name=name,
            knob=knob,
            before=self.before.current.get(name),
            wanted=wanted,
            after=None,
            result="unread",
            detail=self.done.refused.get(name, "") or self.done.details.get(name, ""),
        )
        if self.last is None:
            return unread
        return self._judged(replace(unread, after=self.last.current.get(name), result="taken"), self.last)

    def _judged(self, outcome: BiosOutcome, last: BiosSettings) -> BiosOutcome:  # noqa: PLR0911
        name, wanted, now = outcome.name, outcome.wanted, outcome.after
        if name in self.done.refused:
            return replace(outcome, result="refused")
        if now is None:
            return replace(outcome, result="unread", detail="the BMC does not tell its value")
        if now == wanted and name not in last.pending:
            return replace(outcome, detail="")
        if last.pending.get(name) == wanted:
            return replace(outcome, result="staged")
        if name not in self.done.staged:
            return replace(outcome, result="unwritten", detail=outcome.detail or self.done.error)
        if not self.reset:
            # Nothing to see yet: some BMCs do not show what is staged.
            return replace(outcome, result="staged", detail="the BMC does not show what is staged")
        return replace(
            outcome, result="lost", detail="; ".join(filter(None, (outcome.detail, self._preset(last))))
        )

    def _preset(self, last: BiosSettings) -> str:
        """Source: lenovo/python-redfish-lenovo#174: a preset silently drops single settings."""
        found = [
            f"{name} is {last.current[name]}, a preset that can drop single settings: set it to {free} first"
            for name, free in vendor_of(self.vendor).presets.items()
            if name in last.current and last.current[name] != free
        ]
        return "; ".join(found)


def first_trouble(outcomes: Sequence[BiosOutcome]) -> str:
    """The first value that is neither in effect nor staged, in words."""
    for one in outcomes:
        if one.result not in ("taken", "staged"):
            return f"{one.name}: {one.result}{f': {one.detail}' if one.detail else ''}"
    return ""
