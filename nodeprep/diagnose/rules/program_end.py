"""A program ended, and nothing on this node says why."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, times, total

# Any of them has a finding of its own, and a process that ends is no news beside it.
_REASONS = (
    "xid.",
    "cuda.",
    "nccl.",
    "gpu.",
    "gsp.",
    "host.out_of_memory",
    "host.out_of_memory_noted",
    "nvml.",
)
_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host for ends from outside, one for crashes, one for errors of libraries."""
    for host in evidence.hosts:
        ends = evidence.open("app.signal", host=host)
        outside = [event for event in ends if event.data["signal"] in _FROM_OUTSIDE]
        crashes = [event for event in ends if event.data["signal"] not in _FROM_OUTSIDE]
        library = evidence.open("app.library_failed", host=host)
        if outside:
            yield _finding(
                outside,
                f"processes were ended from outside ({_signals(outside)})",
                "The kernel for lack of memory, a limit of the container or the scheduler does that, or "
                "another rank of the job that failed before. The kernel log of that time tells which.",
                ("read_kernel_log", "check_host_memory_and_container_limits", "check_other_rank"),
            )
        if crashes:
            yield _finding(
                crashes,
                f"processes of a program crashed ({_signals(crashes)})",
                "The program or one of its libraries did it, on the CPU; no GPU is named.",
                ("fix_the_program",),
            )
        if library:
            names = listed(dict.fromkeys(str(event.data["what"]) for event in library))
            yield _finding(
                library,
                f"a library of CUDA reported {names}",
                "Mostly too little free GPU memory for its workspace, or an error of a kernel before; it "
                "names no fault of a GPU.",
                ("use_less_gpu_memory", "check_program_with_compute_sanitizer", "run_program_on_another_gpu"),
            )


def _finding(events: list[Event], summary: str, why: str, then: tuple[str, ...]) -> Finding:
    return Finding(
        layer="application",
        severity="warning",
        summary=summary,
        why=f"Told {times(total(events))}. {why}",
        events=tuple(events),
        action="restart_app",
        then=then,
        count=total(events),
        yields_to=_REASONS,
    )


def _signals(events: list[Event]) -> str:
    return listed(dict.fromkeys(str(event.data["signal"]) for event in events))


RULE = Rule(id="program_end", rank=92, explain=explain)
