"""A program asked for more memory than there is: no fault of the node."""

from __future__ import annotations

from collections.abc import Iterator

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
        if kernel:
            names = list(dict.fromkeys(str(event.data["process"]) for event in kernel))
            cgroup = all(event.data["cgroup"] for event in kernel)
            yield Finding(
                layer="application" if cgroup else "host",
                severity="info" if cgroup else "warning",
                summary=f"the kernel ended {listed(names[:4])} for lack of "
                + ("memory of its group" if cgroup else "host memory"),
                why=(
                    f"{times(total(kernel)).capitalize()}. "
                    + (
                        "Its group has a limit, which it passed; the node is fine."
                        if cgroup
                        else "The host ran out of memory."
                    )
                    + " GPU memory is another matter."
                ),
                events=(*kernel, *evidence.open("nccl.remote_gone", "nccl.timeout", host=host)),
                action="restart_app",
                then=("use_less_host_memory",),
                count=total(kernel),
            )


RULE = Rule(id="out_of_memory", rank=72, explain=explain)
