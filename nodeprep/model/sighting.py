"""`nodeprep.sighting/1`: what one GPU did in one run, as a site remembers it.

From these a site knows which bits a workload must give (golden digests) and how fast its GPUs are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodeprep.model.probe import Digests, GpuRun, ProbeResult

# What decides bits besides the GPU and the workload. Triton counts only where its kernels run.
_BUILD = ("torch", "cuda", "cublas", "cudnn", "tensorrt", "arithmetic")
_TRITON_KERNELS = ("triton", "compile")

Kind = Literal["seen", "vouched", "forgotten"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One line of a site's memory.

    Attributes:
        kind: "seen" in a run; "vouched": an operator answers for these digests; "forgotten": lines of
            the same GPU model, build and workload before this one no longer count.
        node: What tells the machine from others, whatever its name is at the moment.
        build: Versions that decide bits.
        digests: Batch size to one digest a place, as the probe's references.
        why: For "vouched" and "forgotten".
    """

    kind: Kind
    time: str
    model: str
    build: str
    workload: str
    workload_digest: str
    run: str = ""
    host: str = ""
    node: str = ""
    gpu: str = ""
    depth: int = 0
    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    achieved_tflops: float | None = None
    enforced_limit_w: float | None = None
    why: str = ""
    schema: Literal["nodeprep.sighting/1"] = field(default="nodeprep.sighting/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRecords:
    """What a site remembers, as checks see it.

    Attributes:
        node: The machine that is being judged.
        sightings: In the order in which they were written, this run's own last.
        damaged: Lines that could not be read.
        trouble: Why nothing could be read; "" when all was.
    """

    node: str = ""
    sightings: tuple[Sighting, ...] = ()
    damaged: int = 0
    trouble: str = ""


def build_of(probe: ProbeResult) -> str:
    """The versions that decide a result's bits; "" when it does not say which PyTorch computed."""
    if "torch" not in probe.versions:
        return ""
    names = (*_BUILD, "triton") if probe.workload.kernels in _TRITON_KERNELS else _BUILD
    return ", ".join(f"{name} {probe.versions[name]}" for name in names if name in probe.versions)


def digests_of(probe: ProbeResult, digests: Digests) -> Mapping[str, tuple[str, ...]]:
    """A GPU's reference digests by batch size."""
    return digests.references or {str(probe.workload.batch): digests.reference}


def sightings_of(probe: ProbeResult, *, node: str, host: str, time: str) -> Iterator[Sighting]:
    """What is worth remembering of a run: its GPUs that got through and always gave the same bits.

    Nothing of a simulated run or one with an injected fault.
    """
    build = build_of(probe)
    if probe.simulated or probe.injected or probe.state != "completed" or not build:
        return
    for run in probe.gpus:
        found = run.digests.value
        if run.state != "completed" or found is None or found.mismatch_count or not found.iterations_compared:
            continue
        yield Sighting(
            kind="seen",
            time=time,
            model=run.name,
            build=build,
            workload=probe.workload.name,
            workload_digest=probe.workload.digest,
            run=probe.run,
            host=host,
            node=node,
            gpu=run.uuid,
            depth=probe.workload.depth,
            digests=digests_of(probe, found),
            achieved_tflops=run.achieved_tflops.value,
            enforced_limit_w=run.telemetry.enforced_limit_w.value,
        )


def comparable(records: SiteRecords, probe: ProbeResult, run: GpuRun) -> tuple[Sighting, ...]:
    """What was seen of the same GPU model, build and workload, and was not forgotten since."""
    build = build_of(probe)
    found: list[Sighting] = []
    for sighting in records.sightings:
        if (sighting.model, sighting.build) != (run.name, build):
            continue
        if sighting.workload_digest != probe.workload.digest:
            continue
        if sighting.kind == "forgotten":
            found.clear()
        else:
            found.append(sighting)
    return tuple(found) if build else ()
