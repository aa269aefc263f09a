"""What `nodeprep plan` shows and how it exits."""

from __future__ import annotations

from typing import Any

import pytest

from nodeprep.cli._output import Output
from nodeprep.cli.plan import _exit_of, exit_of_plan, show
from nodeprep.errors import ExitCode
from nodeprep.model.plan import Change, ChangeStatus, Plan

HUNG = "the GPUs could not be read: NVML hung in nvmlDeviceGetPowerUsage on 0000:9d:00.0 for 5 s; killed"


def change(status: ChangeStatus, knob: str = "gpu_ecc", **more: Any) -> Change:
    return Change(knob=knob, subject="node", status=status, old="off", new="on", why="it is wanted", **more)


def plan(*changes: Change) -> Plan:
    return Plan(host="n1", simulated=False, profile="h100", policy_digest="", changes=changes)


@pytest.mark.parametrize(
    ("statuses", "planned", "applied"),
    [
        (["ok"], ExitCode.OK, ExitCode.OK),
        (["ok", "change"], ExitCode.DRIFT, ExitCode.DRIFT),
        (["unknown", "ok"], ExitCode.INCONCLUSIVE, ExitCode.INCONCLUSIVE),
        (["unknown", "change"], ExitCode.DRIFT, ExitCode.INCONCLUSIVE),
        (["unknown", "refused"], ExitCode.DRIFT, ExitCode.INCONCLUSIVE),
        (["unsupported"], ExitCode.DRIFT, ExitCode.DRIFT),
    ],
)
def test_a_plan_says_drift_when_anything_differs(
    statuses: list[ChangeStatus], planned: ExitCode, applied: ExitCode
) -> None:
    made = plan(*map(change, statuses))
    assert (_exit_of(made), exit_of_plan(made)) == (planned, applied)


def test_a_reason_that_several_rows_share_is_told_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    knobs = ("gpu_ecc", "gpu_persistence", "gpu_power_limit")
    rows = [change("unknown", knob, reason=HUNG) for knob in knobs]
    show(plan(*rows, change("refused", "kernel_args", reason="no trial boot is possible")), Output())
    text = capsys.readouterr().out
    assert text.count("NVML hung") == 1
    assert text.count("see (1)") == 3
    assert "no trial boot is possible" in text
    # Why it would be wanted helps nobody where it cannot be.
    assert "it is wanted" not in text


def test_why_a_change_is_wanted_comes_before_what_is_to_be_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    show(plan(change("change", reason="begun by sre@ctl1")), Output())
    assert "it is wanted; begun by sre@ctl1" in capsys.readouterr().out
