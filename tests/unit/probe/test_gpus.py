"""Finding GPUs, and refusing those that are not free."""

from __future__ import annotations

import dataclasses

import pytest
from probe_root import ADDRESSES, make_root

from nodeprep.probe import gpus
from nodeprep.probe.problem import ProbeError
from nodeprep.sim import hardware


def test_all_gpus_are_found_with_what_is_asked_before_a_load(tmp_path):
    census = gpus.find(str(make_root(tmp_path)), 10)
    assert [gpu.address for gpu in census.gpus] == list(ADDRESSES)
    assert census.problems == ()
    assert census.driver == hardware.DRIVER_VERSION
    first = census.gpus[0]
    assert first.name == "NVIDIA H100 80GB HBM3"
    assert first.uuid.startswith("GPU-")
    assert first.processes == {"state": "ok", "value": []}
    assert first.enforced_limit_w == {"state": "ok", "value": 700.0}
    assert first.free_bytes["value"] > 70e9


def test_no_driver_is_said_so(tmp_path):
    with pytest.raises(ProbeError, match="NVML error 12") as caught:
        gpus.find(str(tmp_path), 10)
    assert caught.value.hint


def test_a_lost_gpu_is_a_problem_and_the_other_is_found(tmp_path):
    root = make_root(tmp_path, hardware.call_error("nvmlDeviceGetUUID", 15))
    census = gpus.find(str(root), 10)
    assert [gpu.address for gpu in census.gpus] == [ADDRESSES[0]]
    assert "GPU index 1: nvmlDeviceGetUUID" in census.problems[0]


def test_a_hung_library_is_given_up_at_the_deadline(tmp_path):
    root = make_root(tmp_path, hardware.hang("nvmlDeviceGetName"), on=0)
    with pytest.raises(ProbeError, match="hung in nvmlDeviceGetName"):
        gpus.find(str(root), 0.5)


def test_selection_by_any_way_to_write_an_address(tmp_path):
    census = gpus.find(str(make_root(tmp_path)), 10)
    for written in ("0000:2a:00.0", "2A:00.0", "00000000:2A:00.0"):
        assert [gpu.address for gpu in gpus.select(census, [written])] == [ADDRESSES[1]]
    assert gpus.select(census, []) == census.gpus
    twice = gpus.select(census, [ADDRESSES[1], "2a:00.0"])
    assert len(twice) == 1


@pytest.mark.parametrize("wrong", ["0000:99:00.0", "nonsense"])
def test_an_address_without_gpu(tmp_path, wrong):
    census = gpus.find(str(make_root(tmp_path)), 10)
    with pytest.raises(ProbeError) as caught:
        gpus.select(census, [wrong])
    assert caught.value.hint


def test_a_gpu_in_use_is_refused_unless_shared(tmp_path):
    census = gpus.find(str(make_root(tmp_path, compute_processes=2)), 10)
    gpus.check_free(census.gpus[0], False, 1)
    with pytest.raises(ProbeError, match="is in use by process") as caught:
        gpus.check_free(census.gpus[1], False, 1)
    assert "--share" in caught.value.hint
    assert gpus.check_free(census.gpus[1], True, 1) == ""


def test_too_little_memory_is_refused(tmp_path):
    gpu = gpus.find(str(make_root(tmp_path)), 10).gpus[0]
    with pytest.raises(ProbeError, match=r"needs about 1024\.0 GiB"):
        gpus.check_free(gpu, False, 1 << 40)


def test_what_cannot_be_read_is_told(tmp_path):
    gpu = gpus.find(str(make_root(tmp_path)), 10).gpus[0]
    unread = dataclasses.replace(
        gpu,
        processes={"state": "error", "detail": "why a"},
        free_bytes={"state": "error", "detail": "why b"},
    )
    told = gpus.check_free(unread, False, 1)
    assert "why a" in told
    assert "why b" in told
