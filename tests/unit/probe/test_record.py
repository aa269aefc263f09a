"""What the parent makes of a worker's messages."""

from __future__ import annotations

import pytest

from nodeprep.model.probe import GpuRun
from nodeprep.probe import workload
from nodeprep.probe.gpus import Gpu
from nodeprep.probe.phases import View
from nodeprep.probe.record import GpuRecord
from nodeprep.probe.telemetry import Telemetry

OK = {"state": "ok", "value": 1.0}
TINY = workload.load("tiny")
GPU = Gpu(
    address="0000:17:00.0",
    uuid="GPU-1",
    name="NVIDIA H100",
    processes={"state": "ok", "value": []},
    free_bytes={"state": "ok", "value": 1},
    enforced_limit_w={"state": "ok", "value": 700.0},
)


def decoded(record: GpuRecord) -> GpuRun:
    import msgspec

    telemetry = Telemetry("/", [GPU.address], 0.5, 0.0)
    summary = telemetry.summary(GPU.address, record.windows("compute"), GPU.enforced_limit_w)
    view = View(GPU.enforced_limit_w, lambda *where: telemetry.values(GPU.address, *where))
    return msgspec.convert(record.document(summary, view), type=GpuRun)


def iteration(number: int, **more):
    base = {"kind": "iteration", "number": number, "t": 10.0 + number, "seconds": 0.5, "non_finite": 0}
    return {**base, "compared": number - 1, "flops": TINY.flops, "subnormal": 0, **more}


def computing() -> GpuRecord:
    record = GpuRecord(GPU, TINY)
    record.apply({"kind": "versions", "versions": {"torch": "2"}}, 1.0)
    for name, t in (("copies", 1.0), ("ceiling", 2.0), ("build", 3.0), ("warm-up", 4.0), ("compute", 10.0)):
        record.apply({"kind": "phase", "name": name, "t": t}, t)
    record.apply({"kind": "reference", "batch": 1, "digests": ["a", "b"]}, 10.5)
    record.apply(iteration(1), 11.0)
    record.apply(iteration(2), 12.0)
    return record


def test_a_whole_run():
    record = computing()
    record.apply({"kind": "copies_alone", "h2d": OK, "d2h": OK}, 12.0)
    record.apply({"kind": "ceiling", "tflops": OK}, 12.0)
    record.apply({"kind": "done", "t": 12.5}, 12.5)
    record.worker_ended("exit code 0", 12.6)
    record.cooled_down(15.0)
    run = decoded(record)
    assert run.state == "completed"
    assert run.iterations == 2
    assert run.achieved_tflops.require("rate") == pytest.approx(TINY.flops / 0.5 / 1e12)
    assert run.digests.require("digests").iterations_compared == 1
    assert run.non_finite_values.require("count") == 0
    assert [(phase.name, phase.start_s, phase.end_s) for phase in run.phases][-2:] == [
        ("compute", 10.0, 12.5),
        ("cool-down", 12.5, 15.0),
    ]
    assert record.windows("compute") == [(10.0, 12.5)]


def test_a_killed_worker_loses_nothing_it_said():
    record = computing()
    record.apply({"kind": "mismatch", "mismatch": {"iteration": 2, "block": 1}}, 12.0)
    record.worker_ended("killed by SIGKILL", 13.0)
    record.cooled_down(20.0)
    assert record.state == "failed"
    assert "killed by SIGKILL, in the phase compute after 2 iterations" in record.error
    assert record.mismatches == 1
    assert record.iterations == 2
    assert record.phases()[-1] == {"name": "compute", "round": 1, "start_s": 10.0, "end_s": 13.0}


def test_leaving_without_being_done_is_no_completion_even_with_exit_code_0():
    record = computing()
    record.worker_ended("exit code 0", 13.0)
    assert record.state == "failed"


def test_the_workers_own_reason_counts_before_its_exit_status():
    record = computing()
    record.apply({"kind": "failed", "error": "CUDA error", "hint": "look"}, 12.0)
    record.worker_ended("exit code 1", 12.1)
    assert (record.error, record.hint) == ("CUDA error", "look")


def test_what_was_not_reached_is_an_error_reading_and_never_a_zero():
    record = GpuRecord(GPU, TINY)
    record.worker_ended("exit code 1", 1.0)
    run = decoded(record)
    for reading in (
        run.iteration_s,
        run.achieved_tflops,
        run.ceiling_tflops,
        run.digests,
        run.non_finite_values,
        run.copies.alone_h2d_gbps,
        run.copies.during_d2h_gbps,
        run.telemetry.power_w,
    ):
        assert reading.state == "error"
        assert reading.detail


def test_a_single_iteration_compares_nothing():
    record = GpuRecord(GPU, TINY)
    record.apply({"kind": "phase", "name": "compute", "t": 1.0}, 1.0)
    record.apply({"kind": "reference", "batch": 1, "digests": ["a"]}, 1.5)
    record.apply(iteration(1), 2.0)
    record.interrupt(2.5)
    digests = decoded(record).digests
    assert digests.state == "error"
    assert "no two iterations" in digests.detail


def test_non_finite_values_of_warm_up_and_compute_add_up():
    record = computing()
    record.apply({"kind": "warm_up", "non_finite": 3}, 12.0)
    record.apply(iteration(3, non_finite=4), 13.0)
    record.interrupt(14.0)
    assert decoded(record).non_finite_values.require("count") == 7


def test_an_interrupted_run_says_where():
    record = computing()
    record.interrupt(12.0)
    assert record.state == "interrupted"
    assert "compute" in record.error
    record.fail("later", "", 13.0)
    assert record.state == "interrupted"
