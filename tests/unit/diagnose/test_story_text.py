"""The story of a diagnosis, for people."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from nodeprep.diagnose.engine import diagnose
from nodeprep.diagnose.inputs import find_inputs
from nodeprep.diagnose.story import story

CASES = Path(__file__).parents[2] / "cases" / "diagnose"


def told(case_id: str, *, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(width=160, file=out, force_terminal=terminal, highlight=False, emoji=False)
    console.print(story(diagnose(find_inputs([str(CASES / case_id / "inputs")]))))
    return out.getvalue()


def test_what_happened_why_and_what_to_do() -> None:
    text = told("bus_loss_known_path")
    assert "i1 CRITICAL firmware_pcie 0000:18:00.0" in text
    assert "link of 0000:18:00.0 died at 0000:17:00.0" in text.replace("Link", "link")
    assert "within the 120 s" in text
    assert "dmesg.txt:" in text
    assert "1. take the node out of service" in text
    assert text.index("Why") < text.index("What to do")


def test_colour_only_on_a_terminal() -> None:
    assert "\x1b[" not in told("bus_loss_known_path")
    assert "\x1b[" in told("bus_loss_known_path", terminal=True)


def test_long_evidence_is_shortened_and_says_so() -> None:
    assert "more lines; --json has them" in told("aer_burst")


def test_nothing_wrong() -> None:
    assert told("healthy_boot").strip().startswith("No fault in")


def test_markup_in_a_log_is_text() -> None:
    """Square brackets of log lines are no markup of the terminal library."""
    assert "nvc:[driver], v(2): x" in told("mig_instance_fault")
