"""`nodeprep.explanation/1`: what is known of one code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something to do."""

    id: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One code of the catalogue.

    Attributes:
        code: The number, or for PCI Express errors the name.
        names: What drivers, kernels and libraries call it.
        known: False when no published list gives it a meaning; then nothing is guessed.
        layer: As in a diagnosis; "" when it depends on what goes with it.
        severity: When it is seen alone; "" likewise.
        steps: The first thing to do, then the rest.
        advice: What to look at beside it.
        beside: Codes that go with it, "xid 31".
        since: The driver that first had it; "" when it is older than the lists, or no driver's.
        sources: Where the facts come from.
    """

    family: Literal["xid", "sxid", "aer", "cuda", "recovery"]
    code: str
    names: tuple[str, ...]
    meaning: str
    known: bool
    layer: str
    severity: str
    steps: tuple[Step, ...]
    advice: str = ""
    beside: tuple[str, ...] = ()
    since: str = ""
    sources: tuple[str, ...] = ()
    schema: Literal["nodeprep.explanation/1"] = field(default="nodeprep.explanation/1")
