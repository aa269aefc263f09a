"""BIOS settings: those in force, those that wait, and what POST makes of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from nodeprep.sim.bmc.conduct import Conduct
from nodeprep.sim.bmc.dump import Dump
from nodeprep.sim.bmc.messages import Message
from nodeprep.sim.bmc.validation import Validator


class BiosSettings:
    """The BIOS of one simulated BMC.

    Attributes:
        current: Values in force.
        waiting: Values that come into force at a later boot.
        results: What the last POST said about settings; None before there was one.
        changes: Grows with every change of what waits.
        promotions: Grows whenever values came into force.

    Args:
        on_staged: Called with the values whenever some are staged.
        on_promoted: Called with the values that came into force.
    """

    def __init__(
        self,
        dump: Dump,
        conduct: Conduct,
        *,
        on_staged: Callable[[Mapping[str, Any]], None] | None = None,
        on_promoted: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self._conduct = conduct
        self._registry = dump.registry
        self.validator = Validator(
            dump.registry, conduct.base, unknown_is_value=conduct.staging.unknown_is_value
        )
        self.current = dump.shape.read(dump.body(dump.bios))
        listed = dump.shape.read(dump.body(dump.settings))
        self.waiting: dict[str, Any] = {
            name: value for name, value in listed.items() if self.current.get(name) != value
        }
        self._due: dict[str, int] = dict.fromkeys(self.waiting, 1)
        self._lost: set[str] = set()
        self.results: tuple[Message, ...] | None = None
        self.results_time = ""
        self.changes = 0
        self.promotions = 0
        self._on_staged = on_staged
        self._on_promoted = on_promoted

    def problems(self, values: Mapping[str, Any]) -> dict[str, Message]:
        """What is wrong with a batch, by attribute."""
        after = {**self.current, **self.waiting, **values}
        found = {
            name: self.validator.problem(name, value, self.current, after) for name, value in values.items()
        }
        return {name: problem for name, problem in found.items() if problem is not None}

    def differs(self, values: Mapping[str, Any]) -> bool:
        """Whether a batch asks for anything that is neither in force nor waiting."""
        overlay = {**self.current, **self.waiting}
        return any(name not in overlay or overlay[name] != value for name, value in values.items())

    def stage(self, values: Mapping[str, Any], due: int) -> None:
        """Let values wait. A value that is in force takes back one that waited.

        Args:
            due: Number of the boot that can bring them into force.
        """
        for name, value in values.items():
            self.waiting.pop(name, None)
            if name not in self.current or self.current[name] != value:
                self.waiting[name] = value
                self._due[name] = due
        if self._conduct.staging.drops == "first" and values:
            self._lost.add(next(iter(values)))
        self.changes += 1
        if self._on_staged is not None:
            self._on_staged(dict(values))

    def clear(self) -> None:
        """Forget what waits."""
        self.waiting.clear()
        self._lost.clear()
        self.changes += 1

    def fall_back(self, due: int) -> None:
        """Let every default wait, as an action ResetBios does."""
        if self._registry is not None:
            defaults = {
                name: value
                for name, value in self._registry.defaults().items()
                if name in self.current and type(value) is type(self.current[name])
            }
            self.stage(defaults, due)

    def promote(self, boot: int, now: datetime.datetime) -> None:
        """What the POST of a boot does with what waits for it."""
        ripe = {name: value for name, value in self.waiting.items() if self._due[name] <= boot}
        if not ripe:
            return
        problems = self.problems(ripe) if self._conduct.staging.checks == "after_post" else {}
        good = {name: value for name, value in ripe.items() if name not in problems}
        before = self.current
        kept = {name: value for name, value in good.items() if not self._drops(name)}
        after = {**before, **kept}
        if self._registry is not None:
            after |= self._registry.forced(before, after)
        self.current = after
        for name in ripe:
            del self.waiting[name]
        self._lost.clear()
        success = Message(f"{self._conduct.base}.Success", "Successfully Completed Request", severity="OK")
        self.results = tuple(problems.values()) or (success,)
        self.results_time = now.isoformat(timespec="seconds")
        self.changes += 1
        self.promotions += 1
        if self._on_promoted is not None:
            self._on_promoted(kept)

    def _drops(self, name: str) -> bool:
        drops = self._conduct.staging.drops
        if drops == "all":
            return True
        if drops == "first":
            return name in self._lost
        if drops == "grayed" and self._registry is not None:
            # Source: lenovo/python-redfish-lenovo#174. The preset in force counts, or the one that comes.
            return self._registry.flag(name, "GrayOut", {**self.current, **self.waiting})
        return False
