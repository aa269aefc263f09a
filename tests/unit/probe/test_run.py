"""Whole runs on a simulated root, in processes of their own: the good end and every bad one."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from probe_root import (
    ADDRESSES,
    children,
    command,
    make_root,
    progress,
    result,
    run,
    start,
    wait_for,
    wait_until_dead,
    workers,
)

from nodeprep.fleet import archive
from nodeprep.model.probe import ProbeResult
from nodeprep.model.run import TelemetrySeries
from nodeprep.probe import workload
from nodeprep.sim import hardware

pytest.importorskip("numpy", reason="numpy is not installed")

SHORT = ("--duration-s", "0.6")
LONG = ("--duration-s", "60")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory) -> tuple[Path, ProbeResult]:
    """One quick run on two healthy GPUs."""
    folder = tmp_path_factory.mktemp("healthy")
    done = run(make_root(folder / "root"), folder / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return folder / "out", result(folder / "out")


def test_a_healthy_run_is_complete(healthy):
    _, found = healthy
    assert (found.state, found.error, found.hint) == ("completed", "", "")
    assert found.simulated
    assert found.backend == "numpy"
    assert found.injected == ""
    assert found.workload.digest == workload.load("tiny").digest
    assert found.probe_digest.startswith("sources:")
    assert {"python", "numpy", "driver"} <= found.versions.keys()
    assert [gpu.pci_address for gpu in found.gpus] == list(ADDRESSES)
    for gpu in found.gpus:
        assert gpu.state == "completed"
        assert gpu.iterations >= 10
        digests = gpu.digests.require("digests")
        assert digests.iterations_compared == gpu.iterations - 1
        assert digests.mismatch_count == 0
        # Outputs of 16 blocks and the final norm, weights of 16 blocks and the embedding.
        assert len(digests.reference) == 34
        assert gpu.non_finite_values.require("count") == 0
        assert gpu.copies.content_errors == 0
        assert gpu.copies.content_checks == gpu.iterations


def test_all_gpus_of_a_healthy_run_compute_the_same_bits(healthy):
    _, found = healthy
    assert len({gpu.digests.require("digests").reference for gpu in found.gpus}) == 1


def test_telemetry_is_of_the_load(healthy):
    out, found = healthy
    for gpu in found.gpus:
        limit = gpu.telemetry.enforced_limit_w.require("limit")
        assert gpu.telemetry.power_w.require("power").mean > 0.9 * limit
        assert gpu.telemetry.event_reasons_union.require("reasons") == 0x4
        assert gpu.telemetry.samples >= 5
        assert gpu.telemetry.longest_gap_ms < 2000
        series = msgspec.json.decode((out / gpu.telemetry.file).read_bytes(), type=TelemetrySeries)
        assert series.simulated
        assert series.gpu == gpu.pci_address
        names = [phase.name for phase in series.phases]
        assert names == [
            "setup",
            "copies",
            "ceiling",
            "hbm-bandwidth",
            "hbm-walk",
            "build",
            "warm-up",
            "compute",
            "transients",
            "cool-down",
        ]
        # The idle GPU before and after the load is in the file, and not in the summary.
        assert min(watts for watts in series.columns["power_w"] if watts is not None) < 0.5 * limit
        assert gpu.telemetry.power_w.require("power").min > 0.5 * limit


def test_phases_follow_each_other(healthy):
    _, found = healthy
    for gpu in found.gpus:
        for one, next_one in zip(gpu.phases, gpu.phases[1:], strict=False):
            assert one.end_s == next_one.start_s
        assert gpu.phases[-1].end_s <= found.duration_s


def test_progress_is_for_people_and_for_programs(healthy):
    out, _ = healthy
    lines = progress(out)
    assert all(set(line) == {"t_s", "phase", "message", "percent", "gpu"} for line in lines)
    percents = [line["percent"] for line in lines]
    assert percents == sorted(percents)
    assert percents[-1] == 100
    assert lines[-1]["message"].startswith("completed: ")
    assert any("TFLOP/s" in line["message"] and line["message"].endswith(" W") for line in lines)


def test_a_simulated_flip_is_located_and_confirmed(tmp_path):
    root = make_root(tmp_path / "root", hardware.flip(block=7, bit=0, iteration=4))
    assert run(root, tmp_path / "out", "--duration-s", "1.2").returncode == 0
    good, bad = result(tmp_path / "out").gpus
    assert good.digests.require("digests").mismatch_count == 0
    found = bad.digests.require("digests")
    assert (found.mismatches[0].iteration, found.mismatches[0].block) == (4, 7)
    assert found.mismatches[0].confirmed is True
    assert found.mismatch_count == bad.iterations - 3
    # The machine's own fault was asked for by nobody.
    assert result(tmp_path / "out").injected == ""
    told = [line for line in progress(tmp_path / "out") if line["gpu"] == ADDRESSES[1]]
    assert "iteration 4: the weights of block 7 differ from the reference" in told[0]["message"]
    assert found.mismatches[0].part == "weights"
    assert len(told) == 3


def test_an_injected_flip_is_found_on_every_gpu_and_marked(tmp_path):
    done = run(make_root(tmp_path / "root"), tmp_path / "out", *SHORT, "--inject", "flip:block=2,bit=3")
    assert done.returncode == 0
    found = result(tmp_path / "out")
    assert found.injected == "flip:block=2,bit=3"
    for gpu in found.gpus:
        assert gpu.digests.require("digests").mismatches[0].block == 2


def test_a_flip_can_be_injected_on_one_gpu_which_alone_is_named(tmp_path):
    root = make_root(tmp_path / "root")
    asked = f"flip:block=2,bit=3,gpu={ADDRESSES[1]}"
    assert run(root, tmp_path / "out", *SHORT, "--inject", asked).returncode == 0
    good, bad = result(tmp_path / "out").gpus
    assert good.digests.require("digests").mismatch_count == 0
    assert bad.digests.require("digests").mismatches[0].block == 2
    other = run(root, tmp_path / "other", *SHORT, "--inject", "flip:block=2,bit=3,gpu=0000:ff:00.0")
    assert other.returncode == 4
    assert "no GPU of this run is at 0000:ff:00.0" in other.stderr


def test_each_batch_size_is_compared_with_its_own_reference(tmp_path):
    from nodeprep.node.workload_file import shipped

    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**shipped("tiny"), "name": "mine", "depth": 2, "batch": 3, "batch_least": 1}))
    inject = ("--workload", str(file), "--inject", "flip:block=1,bit=3,iteration=5")
    done = run(make_root(tmp_path / "root"), tmp_path / "out", *SHORT, *inject)
    assert done.returncode == 0, done.stderr
    found = result(tmp_path / "out").gpus[0].digests.require("digests")
    assert set(found.references) == {"1", "2", "3"}
    assert found.reference == found.references["3"]
    assert len({found.references[batch] for batch in "123"}) == 3
    first = found.mismatches[0]
    assert (first.iteration, first.block, first.confirmed) == (5, 1, True)
    assert first.batch in (1, 2, 3)


def test_training_is_refused_on_simulated_nodes(tmp_path):
    from nodeprep.node.workload_file import shipped

    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**shipped("tiny"), "name": "mine", "mode": "training"}))
    run(make_root(tmp_path / "root"), tmp_path / "out", *SHORT, "--workload", str(file))
    found = result(tmp_path / "out")
    assert found.state == "failed"
    assert "no backward pass" in found.error
    assert "GPUs only" in found.hint


def test_a_link_that_loses_lanes_under_load_shows(tmp_path):
    root = make_root(tmp_path / "root", hardware.trained_down(width_lanes=8))
    assert run(root, tmp_path / "out", *SHORT).returncode == 0
    good, bad = result(tmp_path / "out").gpus
    assert good.telemetry.link_width_lanes.require("width").min == 16
    assert bad.telemetry.link_width_lanes.require("width").min == 8
    alone = [gpu.copies.alone_h2d_gbps.require("rate") for gpu in (good, bad)]
    assert alone[1] < 0.6 * alone[0]


def test_one_gpu_alone(tmp_path):
    root = make_root(tmp_path / "root")
    assert run(root, tmp_path / "out", *SHORT, "--gpu", ADDRESSES[1]).returncode == 0
    assert [gpu.pci_address for gpu in result(tmp_path / "out").gpus] == [ADDRESSES[1]]


def test_it_runs_as_one_file_and_names_its_digest(tmp_path):
    program = archive.build("probe")
    pyz = tmp_path / "probe.pyz"
    pyz.write_bytes(program.data)
    line = command(make_root(tmp_path / "root"), tmp_path / "out", *SHORT)
    line[1:3] = [str(pyz)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(line, cwd="/", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert result(tmp_path / "out").probe_digest == program.sha256


# ---- interruptions


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once(tmp_path, number):
    process = start(make_root(tmp_path / "root"), tmp_path / "out", *LONG)
    busy = workers(process.pid)
    assert len(busy) == 2
    began = time.monotonic()
    process.send_signal(number)
    assert process.wait(30) == 3
    assert time.monotonic() - began < 9
    wait_until_dead(*busy)
    found = result(tmp_path / "out")
    assert found.state == "interrupted"
    assert found.error == f"stopped by {number.name}"
    assert [gpu.state for gpu in found.gpus] == ["interrupted", "interrupted"]
    assert all(gpu.iterations > 0 for gpu in found.gpus)
    assert len(list((tmp_path / "out").glob("telemetry-*.json"))) == 2


def test_a_signal_during_setup(tmp_path):
    process = subprocess.Popen(command(make_root(tmp_path / "root"), tmp_path / "out", *LONG))
    wait_for(tmp_path / "out", lambda line: line["phase"] == "setup")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 3
    assert result(tmp_path / "out").state == "interrupted"


def test_a_signal_while_nvml_hangs(tmp_path):
    root = make_root(tmp_path / "root", hardware.hang("nvmlDeviceGetName"), on=0)
    process = subprocess.Popen(command(root, tmp_path / "out"))
    wait_for(tmp_path / "out", lambda line: line["phase"] == "setup")
    time.sleep(0.5)
    busy = list(children(process.pid))
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 3
    assert time.monotonic() - began < 9
    assert result(tmp_path / "out").state == "interrupted"
    assert busy
    wait_until_dead(*busy)


def test_no_worker_outlives_a_killed_probe(tmp_path):
    process = start(make_root(tmp_path / "root"), tmp_path / "out", *LONG)
    busy = workers(process.pid)
    assert len(busy) == 2
    process.kill()
    process.wait(30)
    wait_until_dead(*busy)
    assert not (tmp_path / "out" / "result.json").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_one_dead_worker_fails_its_gpu_and_the_other_goes_on(tmp_path, number):
    process = start(make_root(tmp_path / "root"), tmp_path / "out", "--duration-s", "2")
    os.kill(workers(process.pid)[0], number)
    assert process.wait(30) == 4
    found = result(tmp_path / "out")
    assert found.state == "failed"
    assert "1 of 2 GPUs failed" in found.error
    states = sorted((gpu.state, gpu.error) for gpu in found.gpus)
    assert states[0] == ("completed", "")
    assert states[1][0] == "failed"
    assert f"killed by {number.name}" in states[1][1]
    assert found.hint


def run_patched(tmp_path: Path, code: str, *more: str) -> subprocess.Popen[str]:
    """The probe with other constants."""
    arguments = command(make_root(tmp_path / "root"), tmp_path / "out", *more)[3:]
    imports = "import sys\nfrom nodeprep.probe import __main__ as m, run\n"
    program = f"{imports}{code}\nsys.exit(m.main(sys.argv[1:]))"
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stderr=subprocess.PIPE, text=True)


def test_a_worker_that_hangs_is_given_up(tmp_path):
    process = run_patched(tmp_path, "run.LEAST_SILENCE_S = 3.0", "--duration-s", "2")
    wait_for(tmp_path / "out", lambda line: "TFLOP/s" in line["message"])
    os.kill(workers(process.pid)[0], signal.SIGSTOP)
    assert process.wait(30) == 4
    found = result(tmp_path / "out")
    failed = [gpu for gpu in found.gpus if gpu.state == "failed"]
    assert len(failed) == 1
    assert "no sign of life" in failed[0].error
    assert "the GPU or its driver hangs" in found.error


def test_a_bug_of_the_probe_still_leaves_a_result(tmp_path):
    code = "def boom(self): raise RuntimeError('boom')\nrun.Run._look_for_silence = boom"
    process = run_patched(tmp_path, code, *SHORT)
    assert process.wait(30) == 4
    found = result(tmp_path / "out")
    assert found.error.endswith("the probe itself failed: RuntimeError: boom")
    assert {gpu.state for gpu in found.gpus} == {"failed"}


# ---- refusals and missing things


def test_no_driver(tmp_path):
    (tmp_path / "root").mkdir()
    done = run(tmp_path / "root", tmp_path / "out")
    assert done.returncode == 4
    found = result(tmp_path / "out")
    assert found.state == "failed"
    assert "no GPU can be used" in found.error
    assert "nvmlInit" in found.error
    assert found.gpus == ()
    assert "hint:" in done.stderr


def test_missing_numpy_names_the_python_and_what_to_do(tmp_path):
    code = (
        "import importlib.util\nreal = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'numpy' else real(name)"
    )
    assert run_patched(tmp_path, code).wait(30) == 4
    found = result(tmp_path / "out")
    assert sys.executable in found.error
    assert "nodeprep[sim]" in found.hint


def test_missing_torch_names_the_python_and_the_policy_key():
    from nodeprep.probe import run as module
    from nodeprep.probe.problem import ProbeError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.importlib.util, "find_spec", lambda _: None)
        with pytest.raises(ProbeError, match=f"{sys.executable} has no PyTorch") as caught:
            module._require_library("torch")
    assert "probe_python" in caught.value.hint
    assert "probe_runtime" in caught.value.hint


def test_a_gpu_in_use_stops_everything_before_the_load(tmp_path):
    done = run(make_root(tmp_path / "root", compute_processes=1), tmp_path / "out")
    assert done.returncode == 4
    assert "in use by process" in result(tmp_path / "out").error
    assert not (tmp_path / "root" / "run" / "nodeprep-load").exists()
    assert run(tmp_path / "root", tmp_path / "out", *SHORT, "--share").returncode == 0


def test_a_lost_gpu_makes_the_run_a_failed_one_and_the_other_is_loaded(tmp_path):
    root = make_root(tmp_path / "root", hardware.call_error("nvmlDeviceGetUUID", 15))
    assert run(root, tmp_path / "out", *SHORT).returncode == 4
    found = result(tmp_path / "out")
    assert "GPU index 1" in found.error
    assert [(gpu.pci_address, gpu.state) for gpu in found.gpus] == [(ADDRESSES[0], "completed")]


def test_telemetry_that_hangs_under_load_costs_only_its_own_columns(tmp_path):
    root = make_root(tmp_path / "root", hardware.hang("nvmlDeviceGetPowerUsage", under_load=True))
    assert run(root, tmp_path / "out", "--duration-s", "2").returncode == 0
    good, bad = result(tmp_path / "out").gpus
    assert bad.telemetry.power_w.state == "error"
    assert "nvmlDeviceGetPowerUsage" in bad.telemetry.power_w.detail
    assert good.telemetry.power_w.state == "ok"


def test_a_workload_too_large_for_the_simulated_rack(tmp_path):
    done = run(make_root(tmp_path / "root"), tmp_path / "out", "--workload", "vit-g")
    assert done.returncode == 4
    assert "too large for the simulated rack" in result(tmp_path / "out").error


# ---- disks


def test_a_disk_full_from_the_start(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    done = subprocess.run(
        command(make_root(tmp_path / "root"), tmp_path / "out"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, limits[1])),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert "cannot write" in done.stderr
    assert "hint:" in done.stderr
    assert not (tmp_path / "out" / "result.json").exists()


def test_a_disk_that_fills_up_during_the_run(tmp_path):
    """Progress goes to a full device; the result has its space set aside."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "progress.jsonl").symlink_to("/dev/full")
    done = run(make_root(tmp_path / "root"), tmp_path / "out", *SHORT)
    assert done.returncode == 4
    found = result(tmp_path / "out")
    assert found.state == "failed"
    assert "the disk is full" in found.error
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["progress.jsonl", "result.json"]


def test_a_result_that_cannot_be_written_is_no_result(tmp_path):
    code = (
        "from nodeprep.probe import files\nimport errno\n"
        "def full(self, document): raise OSError(errno.ENOSPC, 'x')\n"
        "files.Folder.write_result = full"
    )
    process = run_patched(tmp_path, code, *SHORT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 4
    assert "the disk is full" in said
    assert not (tmp_path / "out" / "result.json").exists()


# ---- command line


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (("--level", "soaked"), "unknown level"),
        (("--workload", "tini"), "did you mean tiny?"),
        (("--inject", "flip:block=99,bit=0"), "block must be between 0 and 15"),
        (("--duration-s", "-3"), "--duration-s must be above 0"),
    ],
)
def test_usage(tmp_path, more, complaint):
    done = run(make_root(tmp_path / "root"), tmp_path / "out", *more)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert not (tmp_path / "out").exists()


def test_tiny_is_not_for_real_machines(tmp_path):
    done = run(Path("/"), tmp_path / "out")
    assert done.returncode == 2
    assert "simulated nodes" in done.stderr


def test_numpy_never_computes_for_a_real_machine():
    from nodeprep.probe.backends.numpy_backend import NumpyBackend
    from nodeprep.probe.problem import ProbeError

    with pytest.raises(ProbeError, match="never runs on a real machine"):
        NumpyBackend("/", {"address": ADDRESSES[0], "name": "x"})


def test_a_workload_file(tmp_path):
    from nodeprep.node.workload_file import shipped

    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**shipped("tiny"), "name": "mine", "depth": 3}))
    done = run(make_root(tmp_path / "root"), tmp_path / "out", *SHORT, "--workload", str(file))
    assert done.returncode == 0
    found = result(tmp_path / "out")
    assert (found.workload.name, found.workload.depth) == ("mine", 3)
    assert len(found.gpus[0].digests.require("digests").reference) == 8
