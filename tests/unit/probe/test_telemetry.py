"""Columns, summaries and a telemetry process that meets trouble."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import msgspec
import pytest
from probe_root import ADDRESSES, make_root, wait_until_dead

from nodeprep.model.probe import Telemetry as TelemetrySummary
from nodeprep.model.run import TelemetrySeries
from nodeprep.node import nvml_library
from nodeprep.node.nvml_sample import COLUMNS
from nodeprep.probe.series import Series
from nodeprep.probe.series import summary as summarised
from nodeprep.probe.telemetry import FAST_POWER, Telemetry, _added
from nodeprep.sim import hardware

LIMIT = {"state": "ok", "value": 700.0}
ERROR = {"state": "error", "detail": "nvmlDeviceGetPowerUsage: Unknown Error"}
LACKING = {"state": "not_supported", "detail": "no such sensor"}


def series(*samples: tuple[float, dict, dict]) -> Series:
    made = Series()
    for start_s, values, failures in samples:
        full = {**dict.fromkeys(COLUMNS, 1.0), "event_reasons": 0x4, **values}
        made.add(start_s, start_s + 0.01, full, failures)
    return made


def summary(samples: Series, windows=((10.0, 12.0),), trouble="") -> dict:
    return summarised(samples, windows, trouble)


def test_only_the_compute_phase_counts():
    made = series(*[(float(t), {"power_w": float(t)}, {}) for t in range(5, 20)])
    found = summary(made)
    # The sample of 12.0 ended at 12.01: the load may have been gone by then.
    assert found["samples"] == 2
    assert found["power_w"]["value"]["min"] == 10.0
    assert found["power_w"]["value"]["max"] == 11.0


def test_gaps_count_from_the_edges_too():
    made = series((10.2, {}, {}), (10.7, {}, {}))
    assert summary(made)["longest_gap_ms"] == pytest.approx(1300.0)


def test_event_reasons_are_a_union_and_a_count_for_each_bit():
    made = series((10.1, {"event_reasons": 0x4}, {}), (10.2, {"event_reasons": 0x44}, {}))
    found = summary(made)
    assert found["event_reasons_union"] == {"state": "ok", "value": 0x44}
    assert found["event_reason_samples"] == {"0x4": 2, "0x40": 1}


def test_a_failed_value_is_counted_and_left_out():
    made = series((10.1, {"power_w": None}, {"power_w": ERROR}), (10.2, {"power_w": 690.0}, {}))
    found = summary(made)
    assert found["errors"] == 1
    assert found["power_w"]["value"]["count"] == 1


def test_a_column_without_any_value_says_why():
    made = series((10.1, {"power_w": None, "margin_c": None}, {"power_w": ERROR, "margin_c": LACKING}))
    found = summary(made)
    assert found["power_w"] == ERROR
    assert found["margin_c"] == LACKING
    # A sensor that the part does not have is no failed sample, but power was one.
    assert found["errors"] == 1


def test_a_missing_rate_is_no_failure_of_nvml():
    gap = {"state": "error", "detail": "not read often enough"}
    made = series((10.1, {"pcie_rx_gbps": None}, {"pcie_rx_gbps": gap}))
    found = summary(made)
    assert found["errors"] == 0
    assert found["pcie_rx_gbps"] == gap


def test_no_sample_is_an_error_and_not_an_empty_summary():
    found = summary(series())
    assert found["power_w"]["state"] == "error"
    assert found["event_reasons_union"]["state"] == "error"
    assert summary(series(), trouble="telemetry stopped")["power_w"]["detail"] == "telemetry stopped"
    assert summary(series(), windows=())["power_w"]["detail"] == "there was no compute phase"


def started(root, period_s: float = 0.05) -> Telemetry:
    telemetry = Telemetry(str(root), ADDRESSES, period_s, time.monotonic())
    telemetry.start(sys.stderr.fileno())
    end = time.monotonic() + 30
    while telemetry.latest(ADDRESSES[0], "t_s") is None and not telemetry.trouble:
        assert time.monotonic() < end
        time.sleep(0.02)
    return telemetry


@pytest.fixture
def sampled():
    running: list[Telemetry] = []

    def sample(root, seconds: float, **more) -> Telemetry:
        running.append(started(root, **more))
        time.sleep(seconds)
        return running[-1]

    yield sample
    for one in running:
        one.stop(1.0)


def wait_for_trouble(telemetry: Telemetry, within_s: float) -> str:
    end = time.monotonic() + within_s
    while not telemetry.trouble:
        assert time.monotonic() < end, "nobody noticed"
        time.sleep(0.02)
    return telemetry.trouble


def test_documents_decode(tmp_path, sampled):
    telemetry = sampled(make_root(tmp_path), 0.5)
    document = telemetry.document(ADDRESSES[0], True, [{"name": "compute", "start_s": 0.0, "end_s": 9.0}])
    made = msgspec.convert(document, type=TelemetrySeries)
    lengths = {len(column) for column in made.columns.values()}
    assert len(lengths) == 1
    assert lengths.pop() >= 3
    assert made.columns["power_w"][-1] == pytest.approx(71, rel=0.05)
    found = msgspec.convert(telemetry.summary(ADDRESSES[0], [(0.0, 9.0)], LIMIT), type=TelemetrySummary)
    assert found.file == "telemetry-0000-17-00-0.json"
    assert (found.errors, found.trouble) == (0, "")
    assert found.link_width_lanes.require("width").min == 16
    assert 0 < found.cpu_of_run_fraction.require("cost") < 5


def test_without_a_driver_each_column_is_an_error(tmp_path, sampled):
    telemetry = sampled(tmp_path, 0.3)
    found = telemetry.summary(ADDRESSES[0], [(0.0, 9.0)], LIMIT)
    assert found["power_w"]["state"] == "error"
    assert "not found" in found["power_w"]["detail"].lower()
    assert telemetry.listening(ADDRESSES[0])["state"] == "error"


def test_power_is_read_fast_only_when_asked(tmp_path, sampled):
    telemetry = sampled(make_root(tmp_path), 0.3)
    assert telemetry.values(ADDRESSES[0], FAST_POWER, 0.0, 99.0) == []
    telemetry.watch_power(True)
    time.sleep(1.0)
    assert len(telemetry.values(ADDRESSES[0], FAST_POWER, 0.0, 99.0)) > 5


def test_an_event_reaches_the_parent(tmp_path, sampled):
    root = make_root(tmp_path, hardware.xid(79, after_s=0.0))
    simulation = nvml_library.simulation(str(root))
    simulation.begin_load(str(root), ADDRESSES[1])
    telemetry = sampled(root, 1.5)
    found = telemetry.take_events()
    assert [(event["gpu"], event["kind"], event["data"]) for event in found] == [(ADDRESSES[1], 8, 79)]
    assert telemetry.take_events() == []
    assert telemetry.listening(ADDRESSES[0]) == {"state": "ok", "value": True}


def test_a_killed_sampler_is_trouble_and_spoils_every_summary(tmp_path, sampled):
    telemetry = sampled(make_root(tmp_path), 0.2)
    os.kill(telemetry.pid, signal.SIGKILL)
    assert "killed by SIGKILL" in wait_for_trouble(telemetry, 5.0)
    found = telemetry.summary(ADDRESSES[0], [(0.0, 9.0)], LIMIT)
    assert "killed by SIGKILL" in found["trouble"]
    assert telemetry.listening(ADDRESSES[0])["state"] == "error"
    assert telemetry.aer_path(ADDRESSES[0])["state"] == "error"


def test_a_sampler_that_stands_still_is_noticed_and_ended(tmp_path, sampled, monkeypatch):
    monkeypatch.setattr("nodeprep.probe.telemetry.SILENCE_S", 1.0)
    telemetry = sampled(make_root(tmp_path), 0.1)
    os.kill(telemetry.pid, signal.SIGSTOP)
    assert "no sign of life" in wait_for_trouble(telemetry, 10.0)


def test_a_hanging_gpu_costs_its_own_columns_only(tmp_path, sampled):
    telemetry = sampled(make_root(tmp_path, hardware.hang("nvmlDeviceGetPowerUsage")), 1.5)
    assert telemetry.trouble == ""
    healthy, hanging = (telemetry.summary(one, [(0.0, 99.0)], LIMIT) for one in ADDRESSES)
    assert healthy["power_w"]["state"] == "ok"
    assert "nvmlDeviceGetPowerUsage" in hanging["power_w"]["detail"]
    assert hanging["errors"] == hanging["samples"] > 0


def test_the_sampler_dies_with_its_parent(tmp_path):
    root = make_root(tmp_path / "root")
    program = (
        "import sys, time; from nodeprep.probe.telemetry import Telemetry;"
        f"t = Telemetry({str(root)!r}, {ADDRESSES!r}, 0.1, time.monotonic());"
        "t.start(2); print(t.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    sampler = int(parent.stdout.readline())
    time.sleep(1.0)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until_dead(sampler)


def test_errors_on_the_path_are_what_was_added():
    before = {"address": "a", "correctable": {"state": "ok", "value": 3}, "fatal": ERROR, "non_fatal": ERROR}
    after = {**before, "correctable": {"state": "ok", "value": 10}, "fatal": {"state": "ok", "value": 1}}
    found = _added(before, after)
    assert found["correctable"] == {"state": "ok", "value": 7}
    # A count that was unreadable before says nothing about what came since.
    assert found["fatal"]["state"] == "error"
    assert found["non_fatal"] == ERROR
