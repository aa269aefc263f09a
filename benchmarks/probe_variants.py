"""Which kernels, attention, input and pool make the probe's model faster on this GPU, side by side.

    PYTHONPATH=. python3 benchmarks/probe_variants.py [--workload vit-g] [--out FILE]

Variants share one set of weights and take turns, so that a GPU that warms up slows all of them alike.
Each line: median seconds, gain over "plain", and whether every pass of the variant gave the same bits.
Needs a GPU and the Python that the probe uses.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import torch

from nodeprep.probe import workload
from nodeprep.probe.backends import torch_kernels, torch_launch, torch_model

VARIANTS = [
    ("plain", "auto"),
    ("plain", "flash"),
    ("plain", "cudnn"),
    ("cublaslt", "auto"),
    ("triton", "auto"),
    ("compile", "auto"),
]
ROUNDS, PASSES = 3, 3


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default="vit-g")
    parser.add_argument("--parts", default="digests,kernels,inputs")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_grad_enabled(False)
    shape = workload.load(given.workload)
    made = torch_model.TorchModel(shape, "cuda")
    parts = {"digests": digest_cost, "kernels": kernels, "inputs": inputs}
    found: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        **torch_kernels.versions(),
        "workload": shape.name,
    }
    for name in given.parts.split(","):
        found[name] = parts[name](made)
        print(json.dumps({name: found[name]}, indent=2), flush=True)
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")


def timed(run: Any) -> tuple[float, list[int]]:
    """Seconds of one pass and its values."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    values = run()
    torch.cuda.synchronize()
    return time.perf_counter() - started, [int(one) for one in values]


def take_turns(runs: dict[str, Any]) -> dict[str, Any]:
    """Median seconds and sameness of bits of each."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    bits: dict[str, set[tuple[int, ...]]] = {name: set() for name in runs}
    power: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            for number in range(PASSES):
                spent, values = timed(run)
                bits[name].add(tuple(values))
                if number:
                    seconds[name].append(spent)
            power[name].append(draw(run))
    first = statistics.median(seconds[next(iter(runs))])
    return {
        name: {
            "median_s": round(statistics.median(seconds[name]), 4),
            "min_s": round(min(seconds[name]), 4),
            "max_s": round(max(seconds[name]), 4),
            "gain_percent": round(100 * (first / statistics.median(seconds[name]) - 1), 2),
            "passes": ROUNDS * PASSES,
            "same_bits": len(bits[name]) == 1,
            "draw_w": round(statistics.median(power[name]), 0),
        }
        for name in runs
    }


def draw(run: Any) -> float:
    """Power while a pass runs."""
    run()
    asked = ["nvidia-smi", "--query-gpu=power.draw.average", "--format=csv,noheader,nounits"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split("\n")[0]
    torch.cuda.synchronize()
    try:
        return float(told)
    except ValueError:
        return 0.0


def kernels(made: Any) -> dict[str, Any]:
    """All variants that this machine can run, and why it cannot run the others."""
    runs: dict[str, Any] = {}
    others: dict[str, Any] = {"first_pass_s": {}}
    for which, attend in VARIANTS:
        name = f"{which}/{attend}"
        began = time.perf_counter()
        try:
            strategy = (torch_kernels.make(which, "cuda"), torch_kernels.attention(attend, "cuda"))
            timed(_bound(made, strategy))
        except Exception as error:  # a variant that this machine cannot run is a finding, not an end
            others[name] = f"{type(error).__name__}: {str(error)[:300]}"
            continue
        others["first_pass_s"][name] = round(time.perf_counter() - began, 2)
        print(name, others["first_pass_s"][name], flush=True)
        runs[name] = _bound(made, strategy)
    made._kernels, made._attend = torch_kernels.make("plain", "cuda"), torch_kernels.attention("auto", "cuda")
    return {**take_turns(runs), **others}


def _bound(made: Any, strategy: Any) -> Any:
    def run() -> Any:
        made._kernels, made._attend = strategy
        return made.forward()

    return run


def digest_cost(made: Any) -> dict[str, Any]:
    """A pass with no digests, with those of outputs, and with those of outputs and weights."""
    nothing = torch.zeros((), dtype=torch.int64, device="cuda")

    def without(*names: str) -> Any:
        def run() -> Any:
            made.__dict__.update({"digest": lambda _: nothing, "weight_digests": list})
            for name in names:
                del made.__dict__[name]
            try:
                return made.forward()
            finally:
                for name in {"digest", "weight_digests"} - set(names):
                    del made.__dict__[name]

        return run

    return take_turns({"no digests": without(), "of outputs": without("digest"), "all": made.forward})


def inputs(made: Any) -> dict[str, Any]:
    """The three ways of an input to the device, over one set of weights."""
    runs = {}
    for how in ("copied", "prefetched", "resident"):
        feed = torch_launch._Feed(dataclasses.replace(made.workload, input=how), made)
        runs[how] = _fed(made, feed)
    return take_turns(runs)


def _fed(made: Any, feed: Any) -> Any:
    def run() -> Any:
        feed.bring(made.workload.batch)
        values = made.forward()
        feed.taken()
        return values

    return run


if __name__ == "__main__":
    main()
