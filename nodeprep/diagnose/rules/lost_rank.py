"""A collective or an engine gave up waiting, and nothing on this node says why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._symptoms import after_network
from nodeprep.diagnose.rules._words import times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host; shared memory and network, which name their reason, apart."""
    for host in evidence.hosts:
        shm = evidence.open("nccl.shared_memory", host=host)
        if shm:
            yield Finding(
                layer="config",
                severity="warning",
                summary="NCCL could not get shared memory",
                why="The container's /dev/shm is too small, or not shared: its limit is 64 MiB "
                "unless it is set.",
                events=(*shm, *evidence.open("nccl.", host=host)),
                action="fix_config",
                then=("check_host_memory_and_container_limits",),
            )
            continue
        network = evidence.open("nccl.network", host=host)
        others = evidence.open("nccl.", host=host)
        if network and network == others and _reached(evidence, host, network):
            yield Finding(
                layer="host",
                severity="info",
                summary="NCCL reached a peer only after it had tried again",
                why=f"It told {times(total(network))} that it tries again, and then that all ranks are "
                "connected: a peer that started late, or a network that loses packets.",
                events=tuple(network),
                action="observe",
                root_event="nccl.network",
            )
        elif network:
            others += [
                event
                for event in evidence.open("cuda.", host=host)
                if after_network(evidence, event, network)
            ]
            yield Finding(
                layer="host",
                severity="warning",
                summary="NCCL lost a peer over the network",
                why=f"The network layer of NCCL reported it {times(total(network))}; adapter, "
                "cable, switch or the peer's node.",
                events=tuple(others),
                action="run_diagnostics",
                then=("check_other_rank", "read_kernel_log"),
                root_event="nccl.network",
            )
        elif others and all(event.kind == "nccl.cuda_failure" for event in others):
            nvls = [event for event in others if "nvls" in event.lines[0].text]
            yield Finding(
                layer="driver" if nvls else "application",
                severity="warning",
                summary="a CUDA call of NCCL failed" + (" while it set up NVLink SHARP" if nvls else ""),
                why=(
                    f"Told {times(total(others))}; the lines name no error of a GPU."
                    + (
                        " NVLink SHARP needs the fabric that the GPUs registered with: after a restart of "
                        "the fabric manager all GPUs and NVSwitches need a reset."
                        if nvls
                        else ""
                    )
                ),
                events=tuple(others),
                action="run_diagnostics",
                then=("check_fabric_state_completed", "reset_gpus_and_nvswitches", "read_kernel_log")
                if nvls
                else ("read_kernel_log", "check_driver_and_gpu_count"),
            )
        elif others:
            yield Finding(
                layer="application",
                severity="warning",
                summary="a rank or worker did not answer in time",
                why=(
                    f"Told {times(total(others))}. Whoever waits is not the one that failed, and "
                    "nothing of this node's log "
                    "names a fault: look at the other ranks first."
                ),
                events=tuple(others),
                action="observe",
                then=("check_other_rank", "read_kernel_log", "check_acs_and_iommu"),
            )


def _reached(evidence: Evidence, host: str, network: Sequence[Event]) -> bool:
    """Whether all of it were attempts, and after the last of them the ranks were connected."""
    last = max(evidence.position(event) for event in network)
    return all(event.data.get("retrying") for event in network) and any(
        event.data.get("complete") and evidence.position(event) > last
        for event in evidence.seen("collective.started", host=host)
    )


RULE = Rule(id="lost_rank", rank=76, explain=explain)
