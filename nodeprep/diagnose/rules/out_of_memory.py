"""A program asked for more memory than there is: no fault of the node."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host for memory of GPUs, one for memory of the host."""
    for host in evidence.hosts:
        gpu = evidence.open("cuda.out_of_memory", host=host)
        if gpu:
            sizes = list(
                dict.fromkeys(str(event.data["asked_for"]) for event in gpu if "asked_for" in event.data)
            )
            asked = f" It asked for {listed(sizes[:3])}." if sizes else ""
            yield Finding(
                layer="application",
                severity="info",
                summary="a program ran out of GPU memory",
                why=(
                    f"An allocation failed {times(total(gpu))}.{asked} That raises no Xid, and asks "
                    "nothing of the node; "
                    "the program must ask for less."
                ),
                events=(*gpu, *evidence.open("nccl.", host=host)),
                action="restart_app",
                then=("use_less_gpu_memory",),
                xids=(),
                count=total(gpu),
            )
        kernel = evidence.open("host.out_of_memory", host=host)
        noted = evidence.open("host.out_of_memory_noted", host=host)
        if kernel or noted:
            names, cgroup = _killed(kernel, noted)
            askers = list(dict.fromkeys(e.data["asked_by"] for e in noted if e.data.get("asked_by")))
            count = total(kernel) or 1
            by = (kernel or noted)[0].data.get("by", "the kernel")
            yield Finding(
                layer="application" if cgroup else "host",
                severity="info" if cgroup else "warning",
                summary=f"{by} ended {listed(names[:4]) or 'a program'} for lack of "
                + ("memory of its group" if cgroup else "host memory"),
                why=(
                    f"{times(count).capitalize()}. "
                    + (
                        "Its group has a limit, which it passed; the node is fine."
                        if cgroup
                        else "The host ran out of memory."
                    )
                    + (f" It was {listed(askers[:4])} that asked for more." if askers and not names else "")
                    + " GPU memory is another matter."
                ),
                events=(*kernel, *noted, *evidence.open("nccl.remote_gone", "nccl.timeout", host=host)),
                action="restart_app",
                then=("use_less_host_memory",),
                root_event="host.out_of_memory",
                count=count,
            )


def _killed(kernel: list[Event], noted: list[Event]) -> tuple[list[str], bool]:
    """Names of programs that were ended, and whether a limit of their group was the reason.

    The report's last line tells both; where it is missing, who asked for memory is all there is.
    """
    told = kernel or noted
    names = list(dict.fromkeys(str(event.data["process"]) for event in told if event.data["process"]))
    if kernel:
        return names, all(event.data["cgroup"] for event in kernel)
    return names, any(event.data["cgroup"] for event in noted)


RULE = Rule(id="out_of_memory", rank=72, explain=explain)
