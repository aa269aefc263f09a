"""What several checks look up in the probe's result."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.model.probe import GpuRun, ProbeResult, Telemetry
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# A summary over fewer samples than this, or with longer gaps, could have missed what it is asked about.
MOST_FAILED_SAMPLES = 0.1
LONGEST_GAP_MS = 10_000.0


def result(context: Context) -> ProbeResult:
    """The probe's result.

    Raises:
        Unreadable: The probe did not run.
    """
    if context.probe is None:
        raise Unreadable(f"not measured: {context.probe_absent_reason or 'the probe did not run'}")
    return context.probe


def runs(context: Context) -> Iterator[tuple[GpuRun, str]]:
    """What each GPU did, with a pointer to it."""
    for position, run in enumerate(result(context).gpus):
        yield run, f"probe#/gpus/{position}"


def each_run(
    check: Check, context: Context, part: str, judge: Callable[[GpuRun], CheckResult]
) -> Iterator[CheckResult]:
    """One result for each GPU that the probe loaded.

    Args:
        check: The check that judges.
        context: Where to look.
        part: Which part of a run is the evidence, for example "telemetry".
        judge: Returns the result; may raise Unreadable.
    """
    for run, where in runs(context):
        yield check.on(run.pci_address, f"{where}/{part}", judge, run)


def telemetry(run: GpuRun) -> Telemetry:
    """The telemetry of a run, if it is dense enough to judge by.

    Raises:
        Unreadable: Sampling ended early, no samples, more than a tenth of them failed, or a gap longer
            than 10 s.
    """
    samples = run.telemetry
    if samples.trouble:
        raise Unreadable(f"telemetry of GPU {run.pci_address} is not whole: {samples.trouble}")
    if samples.samples == 0:
        raise Unreadable(f"no telemetry of GPU {run.pci_address} was taken under load")
    if samples.errors > MOST_FAILED_SAMPLES * (samples.samples + samples.errors):
        raise Unreadable(f"{samples.errors} telemetry samples of GPU {run.pci_address} failed under load")
    if samples.longest_gap_ms > LONGEST_GAP_MS:
        gap_s = samples.longest_gap_ms / 1000
        raise Unreadable(f"telemetry of GPU {run.pci_address} has a gap of {gap_s:.1f} s under load")
    return samples
