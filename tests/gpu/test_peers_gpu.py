"""The peers stage on real GPUs: `pytest tests/gpu`. Skips, with the reason, where there are not two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu
PYTHON = os.environ.get("NODEPREP_PROBE_PYTHON", sys.executable)
SOURCES = Path(__file__).resolve().parents[2]


def _why_not() -> str:
    if not Path("/proc/driver/nvidia/version").exists() and not Path("/dev/nvidiactl").exists():
        return "no NVIDIA driver on this machine"
    ask = "import torch; print(torch.cuda.device_count())"
    asked = subprocess.run([PYTHON, "-c", ask], capture_output=True, text=True, check=False)
    if asked.returncode:
        return f"{PYTHON} has no torch"
    count = int(asked.stdout)
    return "" if count >= 2 else f"{count} GPUs here; the peers stage needs two"


WHY_NOT = _why_not()
if WHY_NOT:
    pytest.skip(WHY_NOT, allow_module_level=True)


def run(out: Path, *more: str) -> dict[str, Any]:
    command = [PYTHON, "-m", "nodeprep.probe", "run", "--workload", "vit-g", "--out", str(out)]
    done = subprocess.run(
        [*command, "--duration-s", "4", *more],
        cwd=SOURCES,
        # NVLink multicast can take GPUs out of service that others share.
        env={**os.environ, "NCCL_NVLS_ENABLE": os.environ.get("NCCL_NVLS_ENABLE", "0")},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr}\n{(out / 'probe.log').read_text()}"
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    return result


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("peers"))


def test_every_pair_is_copied_and_arrives_as_sent(plain):
    peers = plain["peers"]["value"]
    count = len(peers["gpus"])
    assert len(peers["pairs"]) == count * (count - 1)
    for pair in peers["pairs"]:
        assert pair["gbps"]["value"] > 1.0
        assert pair["both_ways_gbps"]["value"] > 1.0
        assert pair["content_checks"] >= 4
        assert pair["content_errors"] == 0


def test_the_all_reduce_is_exact_over_nccl(plain):
    reduced = plain["peers"]["value"]["all_reduce"]
    assert reduced["transport"] == "nccl"
    assert reduced["environment"]["NCCL_NVLS_ENABLE"] == "0"
    assert [size["wrong_elements"] for size in reduced["sizes"]["value"]] == [0, 0, 0]
    assert reduced["sizes"]["value"][-1]["bus_gbps"] > 1.0


def test_copies_are_measured_alone_and_together(plain):
    rounds = plain["peers"]["value"]["rounds"]
    assert rounds[-1]["kind"] == "all"
    assert all(rate["value"] > 1.0 for each in rounds for rate in (*each["h2d"], *each["d2h"]))


def test_gpus_of_one_model_compute_the_same_bits(plain):
    references: dict[str, set[tuple[str, ...]]] = {}
    for gpu in plain["gpus"]:
        references.setdefault(gpu["name"], set()).add(tuple(gpu["digests"]["value"]["reference"]))
    assert all(len(found) == 1 for found in references.values())


def test_a_hanging_rank_is_named_and_leaves_nothing_on_the_gpus(tmp_path):
    peers = run(tmp_path, "--inject", "hang:rank=1")["peers"]["value"]
    assert [rank["rank"] for rank in peers["all_reduce"]["hung"]] == [1]
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "peers.rank" not in left
