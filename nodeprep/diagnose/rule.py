"""What ties events together, and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.model.diagnosis import Action, Layer, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One incident before it is written out.

    Attributes:
        events: What it rests on, at least one; they need no other reason from then on.
        then: Steps after the action, ids of catalog/steps.yaml.
        root_event: Kind of the event that began it; that of the first event when empty.
        root_device: Where it began; `device` when empty.
        xids: Codes to show; those of `events` when None.
        count: How often it happened; the sum over `events` of the root's kind when 0.
        yields_to: Kinds or families of events of which this is but an echo: it is left out when another
            finding of its host that is at least as grave rests on one. A harmless event hides nothing.
    """

    layer: Layer
    severity: Severity
    summary: str
    why: str
    events: tuple[Event, ...]
    action: Action
    then: tuple[str, ...] = ()
    device: str = ""
    root_event: str = ""
    root_device: str = ""
    xids: tuple[int, ...] | None = None
    count: int = 0
    yields_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way in which things go wrong.

    Attributes:
        id: The file's name.
        rank: Rules of lower rank look first. Causes come before consequences: what a rule explains, no
            later one explains again.
        explain: Findings from events that no rule has explained yet. May look at all events.
    """

    id: str
    rank: int
    explain: Callable[[Evidence], Iterator[Finding]]
