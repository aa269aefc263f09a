"""What holds for every check: its cases, its page, its figures, and that the unreadable never passes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from nodeprep.checks import Check, Context, all_checks
from nodeprep.model.reading import Reading
from nodeprep.model.result import CheckResult
from tests.cases.base.cases import CASES, Case, cases
from tests.cases.base.documents import context
from tests.cases.base.readings import pattern_path, read_by, with_reading

CHECKS = all_checks()
PAGES = Path(__file__).parents[2] / "docs" / "checks"
HEADINGS = ("What it proves", "Why it matters", "Limit", "On FAIL", "On ERROR", "When SKIPPED")

# A check that this version cannot yet decide either way. It must never pass, and its page must say why.
UNDECIDABLE: set[str] = set()

# A check of the load itself: one that was none is an ERROR, for it says nothing of the node.
NEVER_FAILS = {"copy_load"}

every_check = pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.id)


def every_case(*kinds: str) -> pytest.MarkDecorator:
    chosen = [case for case in cases() if not kinds or case.kind in kinds]
    return pytest.mark.parametrize("case", chosen, ids=str)


def blocks_certification(results: Iterable[CheckResult]) -> bool:
    return any(result.status in ("FAIL", "ERROR") for result in results)


@every_case()
def test_case(case: Case) -> None:
    problems = case.problems(CHECKS[case.check].run(case.context()))
    assert not problems, f"{case.what}:\n" + "\n".join(problems)


def test_no_cases_of_checks_that_do_not_exist() -> None:
    assert {path.name for path in CASES.iterdir()} == set(CHECKS)


@every_check
def test_has_passing_failing_and_unreadable_cases(check: Check) -> None:
    kinds = {case.kind for case in cases(check.id)}
    wanted = {"unreadable"} if check.id in UNDECIDABLE else {"passing", "failing", "unreadable"}
    assert wanted - ({"failing"} if check.id in NEVER_FAILS else set()) <= kinds
    assert check.id not in UNDECIDABLE or "passing" not in kinds
    assert check.id not in NEVER_FAILS or "failing" not in kinds


@every_check
def test_has_a_page(check: Check) -> None:
    page = (PAGES / f"{check.id}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {check.id}: {check.title}\n")
    found = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert [heading for heading in HEADINGS if heading not in found] == []
    assert re.search(r"^\| Phase \| " + check.phase, page, re.MULTILINE)


@every_check
def test_page_tells_what_the_check_does_without(check: Check) -> None:
    page = (PAGES / f"{check.id}.md").read_text(encoding="utf-8")
    fields = [pattern.rsplit("/", 1)[1] for pattern in check.tolerates]
    assert [field for field in fields if f"`{field}`" not in page] == []
    assert ("## Does without" in page) == bool(fields)


def test_pages_are_listed() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\) \| (.+?) \| (\w+) \|$", index, re.MULTILINE)
    assert listed == [(check.id, check.id, check.title, check.phase) for check in CHECKS.values()]


@every_case()
def test_results_are_fit_for_a_certificate(case: Case) -> None:
    documents = case.context()
    results = CHECKS[case.check].run(documents)
    for result in results:
        assert result.reason
        assert "check itself failed" not in result.reason
        if result.status in ("PASS", "FAIL"):
            assert result.measured is not None, result
            assert result.limit is not None, result
            assert result.source, result
            numeric = isinstance(result.measured, int | float) and not isinstance(result.measured, bool)
            assert not numeric or result.unit, result
        for pointer in result.evidence:
            if "#/" in pointer:
                assert_leads_somewhere(pointer, documents)
    subjects = [result.subject for result in results]
    assert len(subjects) == len(set(subjects)), "a check gives one result a subject"


def assert_leads_somewhere(pointer: str, documents: Context) -> None:
    name, _, path = pointer.partition("#/")
    part: Any = getattr(documents, name.removeprefix("facts."))
    for step in path.split("/"):
        part = part[int(step)] if isinstance(part, tuple) else getattr(part, step)


@pytest.mark.parametrize(
    "check", [check for check in CHECKS.values() if check.phase == "load"], ids=lambda check: check.id
)
def test_load_checks_do_not_pass_without_load(check: Check) -> None:
    documents = dataclasses.replace(
        context(absent=("after", "probe")), probe_absent_reason="the node was not reached"
    )
    results = check.run(documents)
    assert {result.status for result in results} == {"ERROR"}
    assert "the node was not reached" in results[0].reason


@every_case("passing")
def test_a_reading_that_is_missing_never_passes(case: Case) -> None:
    check, documents = CHECKS[case.check], case.context()
    read = read_by(check, documents)
    waved_through = []
    for document, path in read:
        for reading in (Reading.error("case: unreadable"), Reading.not_supported("case: no such thing")):
            if reading.state == "not_supported" and tolerated(check, pattern_path(path)):
                continue
            results = check.run(with_reading(documents, document, path, reading))
            if not blocks_certification(results):
                waved_through.append(f"{reading.state} {document}/{pattern_path(path)}")
    assert waved_through == []
    assert read or not needs_readings(check), "a pass that no reading stands behind"


@every_case("failing")
def test_an_unreadable_reading_never_heals(case: Case) -> None:
    check, documents = CHECKS[case.check], case.context()
    healed = [
        f"{document}/{pattern_path(path)}"
        for document, path in read_by(check, documents)
        if not blocks_certification(
            check.run(with_reading(documents, document, path, Reading.error("case: unreadable")))
        )
    ]
    assert healed == []


@every_check
def test_each_tolerance_is_one_that_is_needed(check: Check) -> None:
    used = set()
    for case in cases(check.id, "passing"):
        documents = case.context()
        for document, path in read_by(check, documents):
            pattern = tolerated(check, pattern_path(path))
            if pattern and not blocks_certification(
                check.run(with_reading(documents, document, path, Reading.not_supported("case")))
            ):
                used.add(pattern)
    assert used == set(check.tolerates)


def tolerated(check: Check, path: str) -> str | None:
    return next((pattern for pattern in check.tolerates if fnmatchcase(path, pattern)), None)


def needs_readings(check: Check) -> bool:
    # Counts that the probe keeps itself are plain numbers in its result, not readings.
    return check.id != "copy_content"


def test_what_a_check_explains_is_a_check() -> None:
    known = set(all_checks())
    for check in all_checks().values():
        assert set(check.explains) <= known - {check.id}
