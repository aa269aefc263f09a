"""`nodeprep diagnose --explain`."""

from __future__ import annotations

import pytest
from rich.console import Console

from nodeprep.diagnose.explain import explain
from nodeprep.diagnose.story import explained
from nodeprep.errors import UsageError


@pytest.mark.parametrize(
    ("query", "family", "code"),
    [
        ("79", "xid", "79"),
        ("xid 79", "xid", "79"),
        ("Xid:79", "xid", "79"),
        ("sxid 12028", "sxid", "12028"),
        ("aer surprise_down", "aer", "surprise_down"),
        ("aer SDES", "aer", "surprise_down"),
        ("Receiver Error", "aer", "receiver_error"),
        ("cuda 719", "cuda", "719"),
        ("cudaErrorLaunchFailure", "cuda", "719"),
        ("cuda CUDA_ERROR_SYSTEM_NOT_READY", "cuda", "802"),
        ("recovery 0x2", "recovery", "2"),
        ("Xid79", "xid", "79"),
        ("SXid20034", "sxid", "20034"),
        ("cuda719", "cuda", "719"),
        # A number that only another family has.
        ("719", "cuda", "719"),
        ("20034", "sxid", "20034"),
        # Pasted from a log.
        ("Xid (PCI:...): 79,", "xid", "79"),
        ("[ 12.5] NVRM: Xid (PCI:0000:18:00 GPU-I:01): 31, pid=1, name=python3, Ch 8", "xid", "31"),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32", "sxid", "12028"),
    ],
)
def test_ways_to_ask(query: str, family: str, code: str) -> None:
    found = explain(query)
    assert (found.family, found.code) == (family, code)
    assert found.known
    assert found.steps
    assert found.sources


@pytest.mark.parametrize("query", ["xid 250", "9", "sxid 24007", "recovery 12"])
def test_what_nobody_lists_is_said_to_be_unknown(query: str) -> None:
    found = explain(query)
    assert not found.known
    assert "report_to_vendor" in [step.id for step in found.steps]


@pytest.mark.parametrize("query", ["", "aer nonsense", "cuda 5", "xid seven", "xid -3", "xid 9999999", "²"])
def test_no_code_at_all(query: str) -> None:
    with pytest.raises(UsageError) as caught:
        explain(query)
    assert caught.value.hint


def test_a_number_of_several_families_names_the_others() -> None:
    assert "No list here has an Xid 719." in explain("719").advice
    assert explain("46").family == "xid"
    assert "cuda 46" in explain("46").advice
    assert "elsewhere" not in explain("xid 46").advice


@pytest.mark.parametrize("query", ["cuda 5", "nonsense " * 100, "xid " + "seven" * 100])
def test_a_refusal_is_short(query: str) -> None:
    with pytest.raises(UsageError) as caught:
        explain(query)
    assert len(f"{caught.value} {caught.value.hint}") < 250


def test_an_explanation_for_people() -> None:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(explained(explain("31")))
    text = console.export_text()
    assert "Not out of memory" in text
    assert "cuda 700" in text
    assert "Source:" in text
