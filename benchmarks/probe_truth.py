"""Does the probe find a flipped bit, the lowest of a weight, and raise no false alarm? On this GPU, by mode.

    PYTHONPATH=. python3 benchmarks/probe_truth.py [--iterations 1000] [--out FILE]

Places are drawn at random with a fixed seed. The image is smaller than the workload's, so that many
iterations fit into minutes; weights, blocks and kernels' kinds are those of vit-g.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import time
from pathlib import Path
from typing import Any

import torch

from nodeprep.probe import inject, workload
from nodeprep.probe.backends import torch_launch
from nodeprep.probe.digests import Comparison
from nodeprep.probe.hashing import hexadecimal

FLIPS = 20


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_grad_enabled(False)
    vit = dataclasses.replace(workload.load("vit-g"), batch=1)
    small = dataclasses.replace(vit, image_height=768, image_width=1024)
    runs = {
        "explicit, 2048 x 1536": (vit, FLIPS, 20),
        "explicit": (small, FLIPS, given.iterations),
        "graph": (dataclasses.replace(small, launch="graph"), FLIPS, given.iterations // 2),
        "batches 1 to 3": (dataclasses.replace(small, batch=3, batch_least=1), FLIPS, given.iterations // 5),
        "training": (dataclasses.replace(small, mode="training", gradient_norm_max=1.0), FLIPS, 20),
    }
    found: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name, (shape, flips, iterations) in runs.items():
        found[name] = try_one(shape, flips, iterations)
        print(json.dumps({name: found[name]}), flush=True)
        torch.cuda.empty_cache()
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")


def try_one(shape: workload.Workload, flips: int, iterations: int) -> dict[str, Any]:
    """Quiet iterations first, then one flip after another, each undone before the next."""
    launcher = torch_launch.Launcher(shape, "cuda", time.sleep, torch.cuda.synchronize)
    comparison = Comparison(shape.depth)
    number = 0

    def iterate() -> Any:
        nonlocal number
        number += 1
        batch = launcher.next_batch()
        *digests, _, _ = launcher.launch(batch).tolist()
        return comparison.see(number, [hexadecimal(one) for one in digests], batch)

    began = time.perf_counter()
    alarms = sum(iterate() is not None for _ in range(iterations))
    spent = time.perf_counter() - began
    chance = random.Random(5)  # noqa: S311 - chooses places, protects nothing
    at_once = located = undone = 0
    missed = []
    for _ in range(flips):
        tensor = chance.choice(inject.TENSORS)
        place = inject.make(
            shape,
            block=chance.randrange(shape.depth),
            bit=0,
            tensor=tensor,
            index=chance.randrange(inject.tensor_size(shape, tensor)),
        )
        launcher.flip(place)
        seen = iterate()
        at_once += seen is not None
        located += seen is not None and seen.block == place.block
        if seen is None or seen.block != place.block:
            missed.append(dataclasses.asdict(place))
        launcher.flip(place)
        undone += iterate() is None
    return {
        "iterations": iterations,
        "seconds_each": round(spent / iterations, 4),
        "false_alarms": alarms,
        "flips": flips,
        "found_in_the_next_iteration": at_once,
        "in_the_right_block": located,
        "quiet_after_undoing": undone,
        "missed": missed,
    }


if __name__ == "__main__":
    main()
