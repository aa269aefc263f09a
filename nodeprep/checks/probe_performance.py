"""The GPU computed as fast as the part can, as its own ceiling allows, and as its peers and the fleet do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._fleet import FRACTION_BELOW_MEDIAN, LEAST_GPUS, SOURCE, Baseline, baseline
from nodeprep.checks._runs import each_run, result
from nodeprep.model.probe import GpuRun, Workload
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import Profile

# The shape the profiles' absolute floor was measured with; any other shape has another throughput.
_DEFAULT_SHAPE = {
    "width": 4096,
    "depth": 16,
    "ffn": 16384,
    "patch": 16,
    "image_height": 1536,
    "image_width": 2048,
    "batch": 5,
}
_FP16 = ("fp16", "float16")
# The matrix product runs in the workload's type. Tensor cores do bf16 at the rate of fp16, and at less
# power: 675 against 655 TFLOP/s on an H200 SXM. Other types have other rates.
_HALF = (*_FP16, "bf16", "bfloat16")


@dataclass(frozen=True, slots=True)
class _Floor:
    """One thing to be at least."""

    measured: float
    limit: float
    unit: str
    source: str
    words: str

    @property
    def held(self) -> bool:
        return self.measured >= self.limit


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU, and an ERROR on the node where no absolute floor is known.

    Each floor alone can be fooled: an absolute one does not see a GPU that is slower than its peers
    but fast enough; relative ones pass a node, and a rack, that is slow throughout.
    """
    workload, whole = result(context).workload, context.spec.profile
    profile = replace(
        whole,
        probe_tflops=whole.probe_tflops if _is_default(workload) else None,
        ceiling_tflops=whole.ceiling_tflops if workload.dtype in _HALF else None,
    )
    if profile.probe_tflops is None and profile.ceiling_tflops is None:
        known = whole.probe_tflops is not None or whole.ceiling_tflops is not None
        why = (
            f"workload {workload.name} in {workload.dtype} is not what the figures were measured with"
            if known
            else f"profile {whole.id} has no figure for this part at its power limit"
        )
        yield CHECK.result(
            "ERROR",
            "node",
            f"no absolute floor is known for this part, and a rack can be uniformly slow ({why})",
        )
    best: dict[str, float] = {}
    for run in result(context).gpus:
        if run.achieved_tflops.value is not None:
            best[run.name] = max(best.get(run.name, 0.0), run.achieved_tflops.value)
    yield from each_run(CHECK, context, "achieved_tflops", partial(_judge, context, profile, best))


def _is_default(workload: Workload) -> bool:
    one_size = workload.batch == _DEFAULT_SHAPE["batch"] and not workload.batch_least
    return _is_of_its_family(workload) and one_size and workload.dtype in _FP16


def _is_of_its_family(workload: Workload) -> bool:
    """Whether the rate per FLOP is the default's: measured the same within 3 % for batches of 1 to 8.

    Other shapes come less near to the ceiling (0.70 for the canonical ViT-G/14), and so does a backward pass.
    """
    same_shape = all(
        getattr(workload, field) == value for field, value in _DEFAULT_SHAPE.items() if field != "batch"
    )
    return same_shape and workload.mode == "inference" and workload.dtype in _HALF


def _judge(context: Context, profile: Profile, best: dict[str, float], run: GpuRun) -> CheckResult:
    fleet = baseline(context.site, result(context), run)
    floors = [*_floors(profile, result(context).workload, best, run), *_fleet_floor(fleet, run)]
    missed = next((floor for floor in floors if not floor.held), None)
    shown = missed or floors[0]
    return CHECK.result(
        "FAIL" if missed else "PASS",
        run.pci_address,
        f"GPU {run.pci_address} reached {shown.words}" + ("" if missed else _fleet_words(fleet)),
        measured=round(shown.measured, 4),
        limit=round(shown.limit, 4),
        unit=shown.unit,
        source=shown.source,
    )


def _floors(profile: Profile, workload: Workload, best: dict[str, float], run: GpuRun) -> Iterator[_Floor]:
    address = run.pci_address
    achieved = run.achieved_tflops.require(f"the throughput of GPU {address}")
    ceiling = run.ceiling_tflops.require(f"the matrix-product ceiling of GPU {address}")
    if profile.probe_tflops is not None:
        floor = profile.probe_tflops
        words = f"{achieved:.4g} TFLOP/s, at least {floor.value:g} wanted"
        yield _Floor(achieved, floor.value, floor.unit, floor.source, words)
    if profile.ceiling_tflops is not None:
        floor = profile.ceiling_tflops
        words = f"{ceiling:.4g} TFLOP/s in its matrix product, at least {floor.value:g} wanted"
        yield _Floor(ceiling, floor.value, floor.unit, floor.source, words)
    if _is_of_its_family(workload):
        fraction = profile.probe_of_ceiling_fraction
        own = achieved / ceiling if ceiling > 0 else 0.0
        words = (
            f"{achieved:.4g} TFLOP/s, {own:.0%} of its own matrix-product ceiling in the same run, "
            f"at least {fraction.value:.0%} wanted"
        )
        yield _Floor(own, fraction.value, "fraction of ceiling", fraction.source, words)
    spread = profile.spread_fraction
    fastest = best[run.name]
    words = f"{achieved:.4g} TFLOP/s, over {spread.value:.0%} less than the {fastest:.4g} of its best peer"
    yield _Floor(achieved, fastest * (1 - spread.value), "TFLOP/s", spread.source, words)


def _fleet_floor(fleet: Baseline, run: GpuRun) -> Iterator[_Floor]:
    """Peers of one node can be slow together, by one firmware or in one hot aisle."""
    if fleet.floor_tflops is not None and fleet.median_tflops is not None:
        achieved = run.achieved_tflops.require(f"the throughput of GPU {run.pci_address}")
        words = (
            f"{achieved:.4g} TFLOP/s, over {FRACTION_BELOW_MEDIAN:.0%} less than the median of "
            f"{fleet.median_tflops:.4g} of {fleet.gpus} other GPUs of this site"
        )
        yield _Floor(achieved, fleet.floor_tflops, "TFLOP/s", SOURCE, words)


def _fleet_words(fleet: Baseline) -> str:
    if fleet.median_tflops is not None:
        return f"; the median of {fleet.gpus} other GPUs of this site is {fleet.median_tflops:.4g}"
    seen = f"{fleet.gpus} comparable GPUs" if fleet.gpus else "no comparable GPU"
    return f"; not held against the fleet: {seen} in this site's history, {LEAST_GPUS} needed"


CHECK = Check(
    id="probe_performance",
    title="the probe reached its performance floors",
    phase="load",
    evaluate=evaluate,
)
