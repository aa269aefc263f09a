"""`python3 probe.pyz run`: the probe's command line."""

from __future__ import annotations

import argparse
import sys
from typing import List, Optional

from ..node import nvml_library, workload_file
from . import inject, levels, workload
from .options import Options
from .problem import UsageProblem
from .run import Run
from .soak import Soak

USAGE = 2


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command line; returns the exit code.

    0 completed, 2 usage, 3 interrupted, 4 failed. With 0, 3 and 4 there is a result.json, unless the
    result folder cannot be written; standard error then says so.
    """
    given = _parser().parse_args(arguments)
    try:
        options = _options(given)
    except UsageProblem as problem:
        print("error: %s" % problem.message, file=sys.stderr)
        if problem.hint:
            print("hint: %s" % problem.hint, file=sys.stderr)
        return USAGE
    return Soak(options).execute() if options.level == "soak" else Run(options).execute()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="probe", description="Loads GPUs with a vision transformer and checks every bit of it."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the probe on this node")
    run.add_argument("--root", default="/", help="another root is a simulated node (default: /)")
    run.add_argument(
        "--workload",
        default="vit-g",
        help="%s, or a JSON file (default: vit-g)" % ", ".join(workload_file.SHIPPED),
    )
    run.add_argument("--level", default="quick", help="quick, standard, extended or soak (default: quick)")
    run.add_argument("--out", required=True, help="folder for the results")
    run.add_argument(
        "--gpu", action="append", default=[], metavar="ADDRESS", help="only this GPU; repeatable"
    )
    run.add_argument("--inject", default="", metavar="FAULT", help="for example flip:block=7,bit=0")
    run.add_argument("--duration-s", type=float, help="length of the compute phase, or of the soak")
    run.add_argument("--run", default="", metavar="ID", help="id of the run this is part of")
    run.add_argument(
        "--backend",
        choices=("torch", "tensorrt"),
        default="torch",
        help="what computes the model on real GPUs (default: torch)",
    )
    run.add_argument("--share", action="store_true", help="load GPUs that others compute on")
    run.add_argument(
        "--nvml-deadline-s", type=float, default=30.0, help="how long NVML may take to list GPUs"
    )
    return parser


def _options(given: argparse.Namespace) -> Options:
    backend = "torch" if nvml_library.is_real(given.root) else "numpy"
    chosen = workload.load(given.workload)
    if backend == "torch" and chosen.name in workload_file.SIMULATED_ONLY:
        raise UsageProblem(
            "the workload %s is for simulated nodes; it would not load a GPU" % chosen.name,
            hint="use vit-g, or a workload file of your own",
        )
    if given.backend == "tensorrt" and backend == "numpy":
        raise UsageProblem("a simulated node has no TensorRT", hint="leave --backend out")
    return Options(
        root=given.root,
        backend=backend,
        workload=chosen,
        level=given.level,
        budget=levels.budget(given.level, backend, given.duration_s),
        out=given.out,
        gpus=tuple(given.gpu),
        inject=given.inject,
        flip=inject.parse(given.inject, chosen) if given.inject else None,
        share=given.share,
        nvml_deadline_s=given.nvml_deadline_s,
        run=given.run,
        engine="tensorrt" if given.backend == "tensorrt" else "",
    )


if __name__ == "__main__":
    sys.exit(main())
