"""Columns, summaries and a telemetry thread that meets trouble."""

from __future__ import annotations

import time

import msgspec
import pytest
from probe_root import ADDRESSES, make_root

from nodeprep.model.probe import Telemetry as TelemetrySummary
from nodeprep.model.run import TelemetrySeries
from nodeprep.node.nvml_sample import COLUMNS
from nodeprep.probe.telemetry import Series, Telemetry, _summary

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
    return _summary(samples, windows, trouble)


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


def sampled(root, seconds: float) -> Telemetry:
    telemetry = Telemetry(str(root), ADDRESSES, 0.05, time.monotonic())
    telemetry.start()
    time.sleep(seconds)
    telemetry.stop(1.0)
    return telemetry


def test_documents_decode(tmp_path):
    telemetry = sampled(make_root(tmp_path), 0.4)
    document = telemetry.document(ADDRESSES[0], True, [{"name": "compute", "start_s": 0.0, "end_s": 9.0}])
    made = msgspec.convert(document, type=TelemetrySeries)
    lengths = {len(column) for column in made.columns.values()}
    assert len(lengths) == 1
    assert lengths.pop() >= 3
    assert made.columns["power_w"][-1] == pytest.approx(71, rel=0.05)
    found = msgspec.convert(telemetry.summary(ADDRESSES[0], [(0.0, 9.0)], LIMIT), type=TelemetrySummary)
    assert found.file == "telemetry-0000-17-00-0.json"
    assert found.errors == 0
    assert found.link_width_lanes.require("width").min == 16


def test_without_a_driver_each_column_is_an_error(tmp_path):
    telemetry = sampled(tmp_path, 0.3)
    found = telemetry.summary(ADDRESSES[0], [(0.0, 9.0)], LIMIT)
    assert found["power_w"]["state"] == "error"
    assert "Not Found" in found["power_w"]["detail"] or "not found" in found["power_w"]["detail"].lower()


def test_a_sampler_that_breaks_is_reported(tmp_path, monkeypatch):
    from nodeprep.node import nvml_sample

    def broken(*_args, **_kwargs):
        raise RuntimeError("no threads left")

    monkeypatch.setattr(nvml_sample, "Sampler", broken)
    found = sampled(tmp_path, 0.1).summary(ADDRESSES[0], [(0.0, 9.0)], LIMIT)
    assert found["power_w"]["detail"] == "telemetry stopped: RuntimeError: no threads left"
    assert found["samples"] == 0
