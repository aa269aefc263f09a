"""The tools behind the cases: a case that tests nothing must not pass."""

from __future__ import annotations

import pytest

from nodeprep.checks import all_checks
from nodeprep.model.reading import Reading
from tests.cases.base.cases import Case
from tests.cases.base.documents import base, changed, context
from tests.cases.base.readings import pattern_path, read_by, with_reading

GPU = "0000:63:00.0"


def case(expect: object, **documents: object) -> Case:
    return Case(check="ecc_on", name="made_up", what="made up", expect=expect, documents=documents)


def problems(made_up: Case) -> list[str]:
    return made_up.problems(all_checks()["ecc_on"].run(made_up.context()))


def test_a_misspelt_pointer_is_an_error() -> None:
    with pytest.raises(KeyError):
        changed(base("facts"), {f"/nvml/gpus/{GPU}/ecc/enabeld": False})
    with pytest.raises(KeyError):
        changed(base("facts"), {"/nvml/gpus/0000:ff:00.0/ecc/enabled": False})


def test_a_change_reaches_the_named_items_only() -> None:
    one = context(facts={f"/nvml/gpus/{GPU}/persistence": False}).before.nvml.gpus.require("gpus")
    assert [gpu.pci_address for gpu in one if gpu.persistence.value is False] == [GPU]
    every = context(facts={"/nvml/gpus/*/persistence": False}).before.nvml.gpus.require("gpus")
    assert all(gpu.persistence.value is False for gpu in every)


def test_short_readings() -> None:
    gpus = {"/nvml/gpus/0/ecc/enabled": "error: lost", "/nvml/gpus/1/ecc/enabled": "not supported: no ECC"}
    first, second, third, *_ = context(facts=gpus).before.nvml.gpus.require("gpus")
    assert first.ecc.enabled == Reading.error("lost")
    assert second.ecc.enabled == Reading.not_supported("no ECC")
    assert third.ecc.enabled == Reading.ok(True)


def test_a_case_notices_what_it_does_not_expect() -> None:
    off = {f"/nvml/gpus/{GPU}/ecc/enabled": False}
    told = {"status": "FAIL", "subject": GPU, "says": ["until the next reset"]}
    assert problems(case([told], facts=off)) == []
    assert problems(case("PASS", facts=off))
    assert problems(case([told]))
    assert problems(case([{**told, "says": ["something else"]}], facts=off))
    assert problems(case([{**told, "subject": "0000:64:00.0"}], facts=off))
    assert problems(case({"all": "FAIL", "says": []}, facts=off))


@pytest.mark.parametrize(
    ("expect", "kind"),
    [
        ("PASS", "passing"),
        ([{"status": "ERROR"}, {"status": "FAIL"}], "failing"),
        ([{"status": "ERROR"}, {"status": "SKIPPED"}], "unreadable"),
        ({"all": "SKIPPED"}, "skipped"),
    ],
)
def test_the_kind_of_a_case(expect: object, kind: str) -> None:
    assert case(expect).kind == kind


def test_readings_that_a_check_asks_for_are_noted() -> None:
    documents = context()
    read = read_by(all_checks()["recovery_action"], documents)
    paths = {(document, pattern_path(path)) for document, path in read}
    assert paths == {("after", "nvml/gpus"), *(("after", f"nvml/gpus/{n}/recovery_action") for n in range(8))}


def test_one_reading_is_exchanged_and_nothing_else() -> None:
    documents = context()
    ((document, path),) = [
        (document, path)
        for document, path in read_by(all_checks()["recovery_action"], documents)
        if pattern_path(path) == "nvml/gpus/4/recovery_action"
    ]
    other = with_reading(documents, document, path, Reading.error("lost"))
    assert other.before == documents.before
    assert other.after is not None
    changed_gpus = [
        new.pci_address
        for new, old in zip(
            other.after.nvml.gpus.require("gpus"), documents.before.nvml.gpus.require("gpus"), strict=True
        )
        if new != old
    ]
    assert changed_gpus == [GPU]
