"""What programs and agents say once a GPU has a fault: no news of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from nodeprep.diagnose import catalog
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence

# Source: XID catalogue, combination rules: a program notices within its own timeouts, collective ones 30 min.
WINDOW_S = 3600.0
# Clocks of one host stamp one moment differently: journal, agents, applications.
_SLACK_S = 5.0
_NEAR_LINES = 20
_ALWAYS = ("nccl.", "host.task_hung", "host.soft_lockup", "agent.unhealthy", "agent.other_event", "nvml.hang",
           "nvml.failed")  # fmt: skip
_OF_A_DEAD_GPU = ("cuda.unknown", "cuda.no_device", "cuda.not_initialized", "cuda.launch_failed",
                  "cuda.devices_unavailable", "nvml.no_devices", "smi.err_cell", "driver.oops",
                  "display.gpu_stuck")  # fmt: skip


def symptoms(
    evidence: Evidence, host: str, cause: Event, xids: Collection[int], *, gpu_dead: bool = False
) -> list[Event]:
    """Events on a host that a fault explains.

    Args:
        cause: The fault; what comes before it is no symptom of it.
        xids: Codes of the fault, to find the CUDA errors that go with them.
        gpu_dead: The GPU answers nothing any more.
    """
    cuda = tuple(f"cuda.{entry.id}" for entry in catalog.all_cuda().values() if set(entry.xids) & set(xids))
    wanted = (*_ALWAYS, *cuda, *(_OF_A_DEAD_GPU if gpu_dead else ()))
    return [
        event
        for event in evidence.open(*wanted, host=host)
        if follows(evidence, cause, event) or _beside(evidence, cause, event)
    ]


def _beside(evidence: Evidence, cause: Event, event: Event) -> bool:
    """Whether two lines stand together in a text without times, where people put them as they like."""
    one, other = cause.lines[0], event.lines[0]
    unknown = evidence.clock.seconds(cause, event) is None
    return unknown and one.source == other.source and 0 <= one.number - other.number <= _NEAR_LINES


def follows(evidence: Evidence, cause: Event, event: Event, window_s: float = WINDOW_S) -> bool:
    """Whether an event may be a consequence by its time; one without a time may."""
    apart = evidence.clock.seconds(cause, event)
    if apart is not None:
        return -_SLACK_S <= apart <= window_s
    one, other = cause.lines[0], event.lines[0]
    return one.source != other.source or other.number >= one.number


def after_network(evidence: Evidence, event: Event, network: Iterable[Event]) -> bool:
    """Whether NCCL tells a CUDA error after it lost a peer: it takes its buffers away then."""
    return "NCCL" in event.lines[0].text and any(follows(evidence, lost, event) for lost in network)


def same_boot(one: Event, other: Event) -> bool:
    """Whether two events are of one boot, as far as their sources tell."""
    first, second = one.lines[0].boot, other.lines[0].boot
    return not first or not second or first == second
