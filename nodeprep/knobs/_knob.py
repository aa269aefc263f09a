"""What a knob is: one desired-state unit, how it is read, compared, written, and its risks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodeprep.model.facts import NodeFacts
from nodeprep.model.plan import Change
from nodeprep.model.spec import NodeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One desired-state unit.

    Attributes:
        id: The file's name; also docs/knobs/ID.md and tests/cases/knobs/ID/.
        risks: What can go wrong when it is turned; shown in every plan that turns it.
        needs_reboot: True when the effect comes with the next boot only.
        plan: Compares; yields a Change for each subject, also when nothing differs.
        settings: What the node is given when a change is due, from all changes of this knob, due or not;
            None when this version has no way to write it. Keys are those of nodeprep/node/apply.py, and
            kernel_args for a trial boot.
    """

    id: str
    title: str
    risks: tuple[str, ...]
    needs_reboot: bool
    plan: Callable[[NodeSpec, NodeFacts], Iterator[Change]]
    settings: Callable[[NodeSpec, tuple[Change, ...]], Mapping[str, Any]] | None = None
