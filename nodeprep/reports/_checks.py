"""The check table of a node, and the table of checks across the rack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from nodeprep.model.result import CheckResult
from nodeprep.model.run import NodeView
from nodeprep.reports._text import number, short_address

Kind = Literal["fail", "error", "waived", "skipped", "pass"]

KINDS: tuple[Kind, ...] = ("fail", "error", "waived", "skipped", "pass")
"""Worst first, which is the order of every table."""

WORDS: Mapping[Kind, str] = {
    "fail": "FAIL",
    "error": "ERROR",
    "waived": "WAIVED",
    "skipped": "SKIPPED",
    "pass": "PASS",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One subject of a row that speaks of several; `limit` only where each has its own."""

    label: str
    address: str
    measured: str
    limit: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a node's check table.

    PASS and SKIPPED of one check share a line, with each subject's own figure and reason inside it; a FAIL
    or ERROR always has its own.
    """

    kind: Kind
    id: str
    title: str
    subjects: tuple[Subject, ...]
    measured: str
    limit: str
    unit: str
    source: str
    reason: str
    evidence: tuple[str, ...]
    waiver: str = ""

    @property
    def word(self) -> str:
        """The status as it stands in the table."""
        return WORDS[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One check on one node; kind None when the node gave no result of it."""

    kind: Kind | None
    text: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One check across the rack."""

    id: str
    title: str
    cells: tuple[Cell, ...]
    fails: int
    errors: int


def kind_of(result: CheckResult) -> Kind:
    """The status, with "waived" apart from other reasons to skip."""
    if result.waiver is not None:
        return "waived"
    return result.status.lower()  # type: ignore[return-value]


def rows(results: Sequence[CheckResult], titles: Mapping[str, str]) -> tuple[Row, ...]:
    """The table of one node, worst first, then by check."""
    ordered = sorted(results, key=lambda result: (_share(result), result.subject))
    table: list[Row] = []
    for (rank, *_), group in groupby(ordered, key=_share):
        kind, members = KINDS[rank], list(group)
        if kind in ("pass", "skipped"):
            table.append(_row(members, titles))
        else:
            table.extend(_row([member], titles) for member in members)
    return tuple(table)


def counts(results: Sequence[CheckResult]) -> dict[Kind, int]:
    """How many results of each kind; kinds without any are left out."""
    kinds = [kind_of(result) for result in results]
    return {kind: kinds.count(kind) for kind in KINDS if kind in kinds}


def matrix(nodes: Sequence[NodeView], titles: Mapping[str, str]) -> tuple[MatrixRow, ...]:
    """Checks against nodes; the checks that fail on most nodes come first."""
    per_node = [_by_check(node) for node in nodes]
    ids = sorted({id_ for results in per_node for id_ in results})
    table = [
        MatrixRow(
            id=id_,
            title=titles.get(id_, ""),
            cells=(cells := tuple(_cell(results.get(id_, [])) for results in per_node)),
            fails=sum(cell.kind == "fail" for cell in cells),
            errors=sum(cell.kind == "error" for cell in cells),
        )
        for id_ in ids
    ]
    return tuple(sorted(table, key=lambda row: (-row.fails, -row.errors, row.id)))


def _by_check(node: NodeView) -> dict[str, list[CheckResult]]:
    found: dict[str, list[CheckResult]] = {}
    for result in node.certificate.checks if node.certificate else ():
        found.setdefault(result.id, []).append(result)
    return found


def _cell(results: list[CheckResult]) -> Cell:
    if not results:
        return Cell(kind=None, text="", title="no result")
    worst = min(results, key=lambda result: KINDS.index(kind_of(result)))
    kind = kind_of(worst)
    many = sum(kind_of(result) == kind for result in results)
    text = str(many) if many > 1 and kind in ("fail", "error") else ""
    title = f"{WORDS[kind]} {short_address(worst.subject)}: {worst.reason}"
    return Cell(kind=kind, text=text, title=title if kind != "pass" else "PASS")


def _share(result: CheckResult) -> tuple[int, str, str, str, str]:
    """What results must have in common to stand in one line; sorts worst first, then by check."""
    kind = kind_of(result)
    reason = result.reason if kind == "skipped" else ""
    return KINDS.index(kind), result.id, result.unit, result.source, reason


def _row(results: list[CheckResult], titles: Mapping[str, str]) -> Row:
    first = results[0]
    waiver = first.waiver
    limits = tuple(dict.fromkeys(number(result.limit) for result in results))
    return Row(
        kind=kind_of(first),
        id=first.id,
        title=titles.get(first.id, ""),
        subjects=tuple(
            Subject(
                label=short_address(result.subject),
                address=result.subject,
                measured=number(result.measured),
                limit=number(result.limit) if len(limits) > 1 else "",
                reason=result.reason,
            )
            for result in results
        ),
        measured=_measured(results),
        limit=limits[0] if len(limits) == 1 else "each its own",
        unit=first.unit,
        source=first.source,
        reason=first.reason,
        evidence=tuple(dict.fromkeys(item for result in results for item in result.evidence)),
        waiver=(
            f"was {first.waived_status or 'not passed'}; {waiver.owner} answers for it until "
            f"{waiver.until.isoformat()}: {waiver.why}"
            if waiver
            else ""
        ),
    )


def _measured(results: list[CheckResult]) -> str:
    values = [result.measured for result in results if result.measured is not None]
    if not values:
        return ""
    figures = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(figures) == len(values) and min(figures) != max(figures):
        return f"{number(min(figures))} … {number(max(figures))}"
    texts = tuple(dict.fromkeys(number(value) for value in values))
    return texts[0] if len(texts) == 1 else f"{len(texts)} values"
