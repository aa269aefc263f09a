"""Cases of checks as data: tests/cases/checks/ID/NAME.yaml.

    what: the story in one line
    spec, facts, before, after, probe: changes to the base documents (see documents.py)
    site: {seen: [...], damaged: N, trouble: WHY}  # what the site remembers
    absent: [after, probe]
    expect: PASS                      # at least one result, and all of them pass
    expect: {all: FAIL, says: [...]}  # every result has this status, one of them these words
    expect:                           # exactly these results do not pass, each with all its words
      - {status: FAIL, subject: "0000:63:00.0", says: ["x8"]}
    says: [...]                       # words that some result must have

A case is "passing", "failing", "unreadable" (an ERROR and no FAIL) or "skipped" by what it expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from nodeprep.checks import Context
from nodeprep.model.result import CheckResult
from tests.cases.base.documents import context

CASES = Path(__file__).parent.parent / "checks"
_DOCUMENTS = ("spec", "facts", "before", "after", "probe", "site")
_KEYS = {*_DOCUMENTS, "absent", "what", "expect", "says"}


@dataclass(frozen=True)
class Case:
    """One case."""

    check: str
    name: str
    what: str
    expect: Any
    says: tuple[str, ...] = ()
    documents: dict[str, Any] = field(default_factory=dict)
    absent: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.check}/{self.name}"

    @property
    def kind(self) -> str:
        """passing, failing, unreadable or skipped."""
        if self.expect == "PASS":
            return "passing"
        every = [self.expect["all"]] if isinstance(self.expect, dict) else [e["status"] for e in self.expect]
        if "FAIL" in every:
            return "failing"
        return "unreadable" if "ERROR" in every else "skipped"

    def context(self) -> Context:
        """The documents of the case."""
        return context(**self.documents, absent=self.absent)

    def problems(self, results: Sequence[CheckResult]) -> list[str]:
        """How the results differ from what the case expects; empty when they do not."""
        told = "\n".join(result.reason for result in results)
        found = [f"no result says {words!r}" for words in self.says if words not in told]
        if self.expect == "PASS":
            found += [f"{_brief(result)}" for result in results if result.status != "PASS"]
            return found if results else ["no result at all"]
        if isinstance(self.expect, dict):
            found += [_brief(result) for result in results if result.status != self.expect["all"]]
            return found + [f"no result says {words!r}" for words in self.expect["says"] if words not in told]
        others = [result for result in results if result.status != "PASS"]
        for wanted in self.expect:
            match = next(
                (r for r in others if (r.status, r.subject) == (wanted["status"], wanted["subject"])), None
            )
            if match is None:
                found.append(f"missing: {wanted['status']} on {wanted['subject']}")
                continue
            others.remove(match)
            found += [
                f"{_brief(match)} does not say {words!r}"
                for words in wanted["says"]
                if words not in match.reason
            ]
        return found + [f"not expected: {_brief(result)}" for result in others]


def _brief(result: CheckResult) -> str:
    return f"{result.status} on {result.subject}: {result.reason}"


def cases(check: str = "*", kind: str = "") -> list[Case]:
    """The cases of one check or all, of one kind or all."""
    every = [_load(path) for path in sorted(CASES.glob(f"{check}/*.yaml"))]
    return [case for case in every if kind in ("", case.kind)]


def _load(path: Path) -> Case:
    plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    unknown = plain.keys() - _KEYS
    if unknown:
        raise ValueError(f"{path}: unknown keys {sorted(unknown)}")
    return Case(
        check=path.parent.name,
        name=path.stem,
        what=plain["what"],
        expect=plain["expect"],
        says=tuple(plain.get("says", ())),
        documents={name: plain[name] for name in _DOCUMENTS if name in plain},
        absent=tuple(plain.get("absent", ())),
    )
