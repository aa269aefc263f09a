"""Putting a certificate together from a judgement and its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import nodeprep
from nodeprep.certify.configuration import configuration_of
from nodeprep.certify.identity import identity_of
from nodeprep.certify.judge import Judgement
from nodeprep.errors import NodeprepError
from nodeprep.model.certificate import Certificate, ProbeSummary
from nodeprep.model.codec import digest
from nodeprep.model.facts import NodeFacts
from nodeprep.model.probe import GpuRun, ProbeResult
from nodeprep.model.probe_stats import Stats
from nodeprep.model.reading import Reading
from nodeprep.model.spec import NodeSpec


def build_certificate(
    *,
    run: str,
    spec: NodeSpec,
    judgement: Judgement,
    before: NodeFacts,
    after: NodeFacts | None,
    probe: ProbeResult | None,
    level: str,
    workload: str,
    issued: datetime,
    expires: datetime,
    digests: Mapping[str, str],
) -> Certificate:
    """The certificate of one node.

    Args:
        run: Id of the run.
        spec: What the node should be.
        judgement: From `judge`, over the same evidence.
        before: Facts from before the load.
        after: Facts from after it; the configuration that is vouched for is theirs.
        probe: What the node did under load.
        level: Asked for; the level and workload that ran are written when the probe ran.
        workload: Asked for.
        issued: Now, with a time zone.
        expires: End of validity.
        digests: SHA-256 of "policy" and "content"; those of the evidence are added here.

    Raises:
        NodeprepError: The judgement cannot come from this evidence.
    """
    _refuse_impossible(judgement, after, probe)
    return Certificate(
        host=spec.host,
        run=run,
        verdict=judgement.verdict,
        reasons=judgement.reasons,
        level=probe.level if probe else level,
        workload=probe.workload.name if probe else workload,
        simulated=judgement.simulated,
        issued=issued.isoformat(timespec="seconds"),
        expires=expires.isoformat(timespec="seconds"),
        nodeprep_version=nodeprep.__version__,
        profile=spec.profile.id,
        identity=identity_of(after or before),
        configuration=configuration_of(after or before),
        checks=judgement.checks,
        probe=_summary(probe) if probe else None,
        digests={**digests, **_evidence_digests(before, after, probe)},
    )


def _refuse_impossible(judgement: Judgement, after: NodeFacts | None, probe: ProbeResult | None) -> None:
    """A second, independent look at what must never be signed as certified."""
    if judgement.verdict != "certified":
        return
    if probe is None or probe.injected or probe.state != "completed" or after is None:
        raise NodeprepError("a certified verdict without a whole, clean probe run")
    statuses = {result.status for result in judgement.checks}
    if "PASS" not in statuses or statuses & {"FAIL", "ERROR"} or judgement.reasons:
        raise NodeprepError("a certified verdict over checks that did not hold")


def _evidence_digests(
    before: NodeFacts, after: NodeFacts | None, probe: ProbeResult | None
) -> dict[str, str]:
    digests = {"facts_before": digest(before)}
    if after is not None:
        digests["facts_after"] = digest(after)
    if probe is not None:
        digests["probe"] = probe.probe_digest
        digests["workload"] = probe.workload.digest
        digests["probe_result"] = digest(probe)
    return digests


def _summary(probe: ProbeResult) -> ProbeSummary:
    return ProbeSummary(
        state=probe.state,
        backend=probe.backend,
        duration_s=probe.duration_s,
        injected=probe.injected,
        gpus={gpu.pci_address: _gpu_summary(gpu) for gpu in probe.gpus},
    )


def _gpu_summary(gpu: GpuRun) -> dict[str, float | int | str]:
    """The numbers a reader asks for first; what was not measured is left out, not zero."""
    found: dict[str, float | int | str] = {"state": gpu.state, "iterations": gpu.iterations}
    if gpu.digests.value is not None:
        found["bitwise_mismatches"] = gpu.digests.value.mismatch_count
        found["iterations_compared"] = gpu.digests.value.iterations_compared
    plain: dict[str, Reading[float] | Reading[int]] = {
        "achieved_tflops": gpu.achieved_tflops,
        "ceiling_tflops": gpu.ceiling_tflops,
        "non_finite_values": gpu.non_finite_values,
        "copy_h2d_gbps": gpu.copies.alone_h2d_gbps,
        "copy_d2h_gbps": gpu.copies.alone_d2h_gbps,
        "enforced_limit_w": gpu.telemetry.enforced_limit_w,
    }
    found.update({name: reading.value for name, reading in plain.items() if reading.value is not None})
    series: dict[str, tuple[Reading[Stats], str]] = {
        "mean_power_w": (gpu.telemetry.power_w, "mean"),
        "max_temperature_c": (gpu.telemetry.temperature_c, "max"),
        "min_margin_c": (gpu.telemetry.margin_c, "min"),
        "min_link_gen": (gpu.telemetry.link_gen, "min"),
        "min_link_width_lanes": (gpu.telemetry.link_width_lanes, "min"),
    }
    for name, (reading, what) in series.items():
        if reading.value is not None:
            found[name] = getattr(reading.value, what)
    return found
