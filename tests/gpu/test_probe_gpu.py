"""The probe on a real GPU: `pytest tests/gpu`. Skips, with the reason, where there is none.

NODEPREP_PROBE_PYTHON names a Python with torch; without it the one that runs the tests.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from typing import Any

import pytest
from probe_on_gpu import PYTHON, SOURCES, command, run

pytestmark = pytest.mark.gpu


def mean(reading: dict[str, Any]) -> float:
    assert reading["state"] == "ok", reading
    return float(reading["value"]["mean"])


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> dict[str, Any]:
    began = time.monotonic()
    result = run(tmp_path_factory.mktemp("quick"), "--level", "quick")
    return {**result, "wall_s": time.monotonic() - began}


def test_quick_answers_within_a_minute(quick):
    assert quick["wall_s"] < 60
    assert quick["state"] == "completed"
    assert quick["simulated"] is False


def test_power_is_at_the_limit(quick):
    for gpu in quick["gpus"]:
        telemetry = gpu["telemetry"]
        assert mean(telemetry["power_w"]) >= 0.95 * telemetry["enforced_limit_w"]["value"]


def test_every_iteration_is_the_same(quick):
    for gpu in quick["gpus"]:
        digests = gpu["digests"]["value"]
        assert digests["iterations_compared"] == gpu["iterations"] - 1
        assert digests["mismatch_count"] == 0
        assert gpu["non_finite_values"]["value"] == 0


def test_copies_keep_their_rate_and_content(quick):
    for gpu in quick["gpus"]:
        copies = gpu["copies"]
        assert copies["content_errors"] == 0
        assert copies["content_checks"] > 100
        for way in ("h2d", "d2h"):
            assert copies[f"during_{way}_gbps"]["value"] >= 0.8 * copies[f"alone_{way}_gbps"]["value"]


def test_the_model_comes_near_the_ceiling_of_the_same_run(quick):
    for gpu in quick["gpus"]:
        assert gpu["achieved_tflops"]["value"] >= 0.80 * gpu["ceiling_tflops"]["value"]


def test_telemetry_is_dense(quick):
    for gpu in quick["gpus"]:
        telemetry = gpu["telemetry"]
        assert telemetry["errors"] == 0
        assert telemetry["longest_gap_ms"] < 1500
        assert telemetry["samples"] >= 50


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_lowest_bit_anywhere_is_found_in_the_next_iteration(tmp_path, seed):
    chance = random.Random(seed)  # noqa: S311 - chooses places, protects nothing
    block, tensor = chance.randrange(16), chance.choice(["qkv", "proj", "fc1", "fc2"])
    index = chance.randrange(4096 * 4096)
    fault = f"flip:block={block},bit=0,tensor={tensor},index={index},iteration=3"
    result = run(tmp_path, "--duration-s", "6", "--inject", fault)
    assert result["injected"] == fault
    for gpu in result["gpus"]:
        first = gpu["digests"]["value"]["mismatches"][0]
        assert (first["iteration"], first["block"], first["confirmed"]) == (3, block, True)


@pytest.mark.parametrize(
    "change",
    [
        {"launch": "graph"},
        {"batch": 3, "batch_least": 1},
        {"mode": "training", "gradient_norm_max": 1.0, "batch": 1},
        {"input": "prefetched", "pcie_direction": "d2h", "pcie_share": 0.5},
    ],
    ids=["graph", "batches", "training", "prefetched"],
)
def test_a_flip_is_found_in_every_mode_and_nothing_else(tmp_path, quick, change):
    shipped = json.loads((SOURCES / "nodeprep" / "node" / "workloads" / "vit-g.json").read_text())
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**shipped, "name": "mine", **change}))
    # The last --workload counts.
    fault = "flip:block=7,bit=0,iteration=6"
    result = run(tmp_path, "--duration-s", "12", "--workload", str(file), "--inject", fault)
    for gpu in result["gpus"]:
        digests = gpu["digests"]["value"]
        first = digests["mismatches"][0]
        assert (first["iteration"], first["block"], first["part"]) == (6, 7, "weights")
        assert first["confirmed"] is True
        assert gpu["non_finite_values"]["value"] == 0
        if change.get("launch") == "graph":
            assert digests["reference"] == quick["gpus"][0]["digests"]["value"]["reference"]


def test_two_processes_agree_on_every_bit(tmp_path, quick):
    again = run(tmp_path, "--duration-s", "4")
    one, other = (run_["gpus"][0]["digests"]["value"]["reference"] for run_ in (quick, again))
    assert one == other


def test_a_signal_ends_it_within_two_seconds(tmp_path):
    process = subprocess.Popen(command(tmp_path, "--duration-s", "120"), cwd=SOURCES)
    progress = tmp_path / "progress.jsonl"
    end = time.monotonic() + 60
    while not (progress.exists() and '"compute"' in progress.read_text()):
        assert time.monotonic() < end
        time.sleep(0.1)
    time.sleep(2)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 3
    assert time.monotonic() - began < 2
    assert json.loads((tmp_path / "result.json").read_text())["state"] == "interrupted"


WEIGHTS = """
import dataclasses, sys
import numpy as np, torch
from nodeprep.probe import workload
from nodeprep.probe.backends import numpy_model, torch_model
for dtype in ("fp16", "fp32"):
    tiny = dataclasses.replace(workload.load("tiny"), dtype=dtype)
    ours, theirs = torch_model.TorchModel(tiny, "cuda"), numpy_model.NumpyModel(tiny)
    for index, block in enumerate(theirs.blocks):
        for name, expected in block.items():
            assert np.array_equal(ours.blocks[index][name].float().cpu().numpy(), expected), name
    assert np.array_equal(ours.image.float().cpu().numpy(), theirs.image)
outputs = []
with torch.no_grad():
    digests = ours.forward(each=lambda x: outputs.append(x.cpu().numpy()))
for got, expected, digest in zip(outputs, theirs.outputs(), digests):
    assert np.abs(got - expected).max() < 1e-3
    assert int(digest) % (1 << 64) == int(numpy_model.digest(got), 16)
print("equal")
"""


def test_the_gpu_makes_numpys_weights_and_its_outputs():
    done = subprocess.run([PYTHON, "-c", WEIGHTS], cwd=SOURCES, capture_output=True, text=True, check=False)
    if "No module named 'numpy'" in done.stderr:
        pytest.skip(f"{PYTHON} has no numpy")
    assert done.stdout == "equal\n", done.stderr
