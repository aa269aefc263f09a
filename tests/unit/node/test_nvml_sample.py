"""The telemetry sampler and the arithmetic of wrapping byte counters."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from nvml_root import FIRST, SECOND, gpu, root_with

from nodeprep.node import nvml_library, nvml_sample
from nodeprep.node.nvml_pcie import WRAP, PcieMeter
from nodeprep.sim import hardware


def meter() -> PcieMeter:
    return PcieMeter(5, 16)


def test_longest_step_is_shorter_than_a_wrap_at_full_speed() -> None:
    # Gen5 x16 carries 63 GB/s: 4 GiB in 68 ms.
    assert meter().longest_step_s == pytest.approx(0.068, abs=0.001)
    assert PcieMeter(3, 16).longest_step_s == pytest.approx(0.273, abs=0.001)


def test_mean_rate_over_a_wrap() -> None:
    one = meter()
    one.feed(0.0, WRAP - 500_000_000, 1_000, wraps=True)
    one.take(0.0)
    one.feed(0.02, 500_000_000, 20_001_000, wraps=True)
    assert one.take(0.02) == (pytest.approx(50.0), pytest.approx(1.0))


def test_a_step_that_may_hide_a_wrap_is_left_out() -> None:
    one = meter()
    one.feed(0.00, 0, 0, wraps=True)
    one.take(0.0)
    one.feed(0.02, 200_000_000, 0, wraps=True)
    one.feed(0.04, 400_000_000, 0, wraps=True)
    one.feed(0.06, 600_000_000, 0, wraps=True)
    one.feed(0.13, 700_000_000, 0, wraps=True)  # 70 ms: once round or not, nobody knows
    assert one.take(0.11) == (pytest.approx(10.0), pytest.approx(0.0))


def test_too_little_watched_is_no_rate() -> None:
    one = meter()
    one.feed(0.0, 0, 0, wraps=True)
    one.take(0.0)
    one.feed(0.02, 200_000_000, 0, wraps=True)
    assert one.take(0.5) == (None, None)


def test_a_missed_reading_is_a_gap() -> None:
    one = meter()
    one.feed(0.0, 0, 0, wraps=True)
    one.take(0.0)
    one.miss()
    one.feed(0.03, 900_000_000, 0, wraps=True)
    one.feed(0.05, 1_100_000_000, 0, wraps=True)
    one.feed(0.07, 1_300_000_000, 0, wraps=True)
    assert one.take(0.07) == (pytest.approx(10.0), pytest.approx(0.0))


def test_wide_counters_need_no_close_watch_and_survive_a_reload() -> None:
    one = meter()
    one.feed(0.0, 10 << 32, 0, wraps=False)
    one.take(0.0)
    one.feed(1.0, (10 << 32) + 30_000_000_000, 0, wraps=False)
    assert one.take(1.0) == (pytest.approx(30.0), pytest.approx(0.0))
    one.feed(2.0, 5, 0, wraps=False)
    assert one.take(2.0) == (None, None)


def samples(root: str, *addresses: str, count: int = 2, deadline_s: float = 5.0) -> list[dict]:  # type: ignore[type-arg]
    with nvml_sample.Sampler(root, addresses, deadline_s=deadline_s) as sampler:
        taken = []
        for _ in range(count):
            taken.append(sampler.sample())
            time.sleep(0.3)
    return taken


def test_an_idle_gpu(tmp_path: Path) -> None:
    last = samples(root_with(tmp_path, gpu()), FIRST)[-1][FIRST]
    assert tuple(last) == nvml_sample.COLUMNS
    assert last["power_w"] == pytest.approx(71, rel=0.05)
    assert (last["event_reasons"], last["utilization_percent"], last["sm_mhz"]) == (1, 0, 345)
    assert last["pcie_rx_gbps"] < 0.1
    assert (last["link_gen"], last["link_width_lanes"], last["replays"]) == (5, 16, 0)


def test_load_shows_in_every_column(tmp_path: Path) -> None:
    root = root_with(tmp_path, gpu(FIRST, hardware.trained_down(width_lanes=8)), gpu(SECOND))
    library = nvml_library.simulation(root)
    assert library is not None
    library.begin_load(root, FIRST)
    # 26 GB/s wrap 32 bits six times a second; the rate must still be that of the x8 link. A busy test
    # machine may fail to poll often enough in some intervals, but not in all.
    taken: list[dict[str, Any]] = []
    known: list[float] = []
    deadline = time.monotonic() + 60
    while not known and time.monotonic() < deadline:
        taken = samples(root, FIRST, SECOND, count=5)
        rates = [sample[FIRST]["pcie_rx_gbps"] for sample in taken[1:]]
        known = [rate for rate in rates if rate is not None]
    library.end_load(root, FIRST)
    first, second = taken[-1][FIRST], taken[-1][SECOND]
    assert first["power_w"] > 500
    assert first["sm_mhz"] > 1500
    assert first["event_reasons"] == 4
    assert first["link_width_lanes"] == 8
    assert known
    assert known == [pytest.approx(26.1, rel=0.1)] * len(known)
    assert second["power_w"] < 100


def test_a_gpu_nvml_does_not_know(tmp_path: Path) -> None:
    root = root_with(tmp_path, gpu())
    with nvml_sample.Sampler(root, [FIRST, "0000:99:00.0"]) as sampler:
        taken = sampler.sample()
        assert taken[FIRST]["power_w"] is not None
        assert set(taken["0000:99:00.0"].values()) == {None}
        why = sampler.failures("0000:99:00.0")["power_w"]
    assert why["state"] == "error"
    assert "nvmlDeviceGetHandleByPciBusId" in why["detail"]


def test_not_supported_and_error_are_told_apart(tmp_path: Path) -> None:
    fault = hardware.call_error("nvmlDeviceGetPowerUsage", 15)
    root = root_with(tmp_path, gpu(FIRST, fault, model="a100-pcie"))
    with nvml_sample.Sampler(root, [FIRST]) as sampler:
        sampler.sample()
        failures = sampler.failures(FIRST)
    assert failures["margin_c"]["state"] == "not_supported"
    assert failures["power_w"]["state"] == "error"
    assert "temperature_c" not in failures


def test_a_hanging_gpu_costs_one_deadline_and_not_the_other_series(tmp_path: Path) -> None:
    root = root_with(tmp_path, gpu(FIRST), gpu(SECOND, hardware.hang("nvmlDeviceGetPowerUsage")))
    with nvml_sample.Sampler(root, [FIRST, SECOND], deadline_s=3.0) as sampler:
        first = sampler.sample()
        started = time.monotonic()
        second = sampler.sample()
        took_s = time.monotonic() - started
        why = sampler.failures(SECOND)["power_w"]["detail"]
    for taken in (first, second):
        assert taken[FIRST]["power_w"] is not None
        assert set(taken[SECOND].values()) == {None}
    assert took_s < 2.5
    assert f"nvmlDeviceGetPowerUsage on {SECOND}" in why


def test_without_byte_counters_the_driver_is_asked_for_its_rate(tmp_path: Path) -> None:
    faults = (hardware.field_error(197, 3), hardware.field_error(198, 3))
    root = root_with(tmp_path, gpu(FIRST, *faults))
    library = nvml_library.simulation(root)
    assert library is not None
    library.begin_load(root)
    last = samples(root, FIRST)[-1][FIRST]
    library.end_load(root)
    assert last["pcie_tx_gbps"] == pytest.approx(46.6, rel=0.3)


def test_closing_lets_go_of_the_library(tmp_path: Path) -> None:
    root = root_with(tmp_path, gpu())
    with nvml_sample.Sampler(root, [FIRST]) as sampler:
        sampler.sample()
    pynvml = nvml_library.pynvml
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()


def test_no_library(tmp_path: Path) -> None:
    (taken,) = samples(str(tmp_path), FIRST, count=1)
    assert set(taken[FIRST].values()) == {None}
