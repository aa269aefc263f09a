"""Launch modes, batch sizes, training and the memory pool of the probe's model on this GPU.

    PYTHONPATH=. python3 benchmarks/probe_modes.py [--out FILE]

Says for each whether bits are the same, what a pass takes, and what memory it needs against the estimate.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from nodeprep.probe import workload
from nodeprep.probe.backends import torch_kernels, torch_launch

GIB = 1 << 30


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="training,graphs,pools,canonical")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_grad_enabled(False)
    found: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    parts = {"training": training, "graphs": graphs, "pools": pools, "canonical": canonical}
    for part in (parts[name] for name in given.parts.split(",")):
        try:
            found[part.__name__] = part()
        except Exception as error:
            found[part.__name__] = f"{type(error).__name__}: {str(error)[:500]}"
        gc.collect()
        torch.cuda.empty_cache()
        print(json.dumps({part.__name__: found[part.__name__]}, indent=2), flush=True)
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")


def launcher(shape: workload.Workload) -> Any:
    """A launcher with its memory counted from here."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch_launch.Launcher(shape, "cuda", time.sleep, torch.cuda.synchronize)


def passes(made: Any, count: int) -> dict[int, dict[str, Any]]:
    """Seconds and bits of so many passes, by batch size."""
    seen: dict[int, dict[str, Any]] = {}
    for _ in range(count):
        batch = made.next_batch()
        torch.cuda.synchronize()
        started = time.perf_counter()
        values = tuple(made.launch(batch).tolist())
        one = seen.setdefault(batch, {"seconds": [], "bits": set()})
        one["seconds"].append(time.perf_counter() - started)
        one["bits"].add(values)
    return seen


def memory(shape: workload.Workload) -> dict[str, float]:
    """Peak of the allocator, of what it took from the driver, and the estimate of the model's part."""
    return {
        "allocated_gib": round(torch.cuda.max_memory_allocated() / GIB, 2),
        "reserved_gib": round(torch.cuda.max_memory_reserved() / GIB, 2),
        "estimate_gib": round(shape.memory_bytes / GIB - 2, 2),
    }


def graphs() -> dict[str, Any]:
    """Explicit launch against graph replay at every batch size, then a flipped bit under a graph."""
    shape = workload.load("vit-g-dynamic")
    found: dict[str, Any] = {}
    kept = {}
    for mode in ("explicit", "graph"):
        asked = dataclasses.replace(shape, launch=mode)
        made = launcher(asked)
        kept[mode] = passes(made, 2 * len(shape.batches))
        found[mode] = memory(asked)
        if mode == "graph":
            found["flip"] = flip(made, asked)
        del made
    for batch in sorted(shape.batches):
        one, other = kept["explicit"][batch], kept["graph"][batch]
        found[f"batch {batch}"] = {
            "explicit_s": round(statistics.median(one["seconds"]), 4),
            "graph_s": round(statistics.median(other["seconds"]), 4),
            "same_bits": one["bits"] == other["bits"] and len(one["bits"]) == 1,
        }
    return found


def flip(made: Any, shape: workload.Workload) -> dict[str, Any]:
    """The lowest bit of one weight, there and back."""
    from nodeprep.probe import inject  # noqa: PLC0415

    before = made.launch(5).tolist()
    fault = inject.make(shape, block=7, bit=0)
    made.flip(fault)
    wrong = made.launch(5).tolist()
    made.flip(fault)
    again = made.launch(5).tolist()
    first = next((place for place, (a, b) in enumerate(zip(before, wrong, strict=True)) if a != b), None)
    return {"flipped_block": 7, "first_differing": first, "back_to_reference": again == before}


def training() -> dict[str, Any]:
    """The step as shipped, without truncation, and as a graph."""
    shape = workload.load("vit-g-train")
    found: dict[str, Any] = {}
    changes: dict[str, dict[str, Any]] = {
        "as shipped": {},
        "no truncation": {"gradient_norm_max": 0.0},
        "graph, batch 1": {"launch": "graph", "batch": 1},
        "explicit, batch 1": {"batch": 1},
    }
    for name, change in changes.items():
        asked = dataclasses.replace(shape, **change)
        try:
            made = launcher(asked)
            seen = passes(made, 3)[asked.batch]
            print(name, seen["seconds"], flush=True)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {str(error)[:300]}"
            continue
        values = next(iter(seen["bits"]))
        found[name] = {
            "seconds": [round(one, 3) for one in seen["seconds"]],
            "tflops": round(asked.flops / statistics.median(seen["seconds"]) / 1e12, 1),
            "same_bits": len(seen["bits"]) == 1,
            "non_finite": values[-2],
            "subnormal": values[-1],
            **memory(asked),
        }
        if name.endswith("batch 1"):
            found[name]["bits"] = hash(values[:-2])
        del made
    return found


def canonical() -> dict[str, Any]:
    """The canonical ViT-G/14 with each attention."""
    found: dict[str, Any] = {}
    shape = workload.load("vit-g-14")
    made = launcher(shape)
    for attend in ("auto", "flash", "cudnn"):
        made._model._attend = torch_kernels.attention(attend, "cuda")
        seen = passes(made, 4)[shape.batch]
        found[attend] = {
            "median_s": round(statistics.median(seen["seconds"][1:]), 4),
            "same_bits": len(seen["bits"]) == 1,
        }
    return {**found, **memory(shape)}


def pools() -> dict[str, Any]:
    """The first passes over changing batch sizes, with and without memory taken beforehand."""
    found: dict[str, Any] = {}
    for gib in (0, 24):
        shape = dataclasses.replace(workload.load("vit-g-dynamic"), memory_pool_gib=gib)
        began = time.perf_counter()
        made = launcher(shape)
        torch.cuda.synchronize()
        built = time.perf_counter() - began
        first, second = passes(made, len(shape.batches)), passes(made, len(shape.batches))
        found[f"{gib} GiB"] = {
            "build_s": round(built, 3),
            "first_round_s": {b: round(one["seconds"][0], 4) for b, one in sorted(first.items())},
            "second_round_s": {b: round(one["seconds"][0], 4) for b, one in sorted(second.items())},
            "allocations_from_driver": torch.cuda.memory_stats()["num_device_alloc"],
            **memory(shape),
        }
        del made
    return found


if __name__ == "__main__":
    main()
