"""Who plays what: which node of a simulated rack has which fault."""

from __future__ import annotations

from dataclasses import dataclass

HEALTHY_TITLE = "none: healthy"


@dataclass(frozen=True, slots=True)
class Role:
    """What one node of the rack plays: a fault on one of its GPUs, or "" for a healthy node."""

    fault: str = ""
    gpu: int = 0


# Broken nodes stand between healthy ones, and their GPUs differ, so that a tool which blames the
# first node, the first GPU or everybody is found out.
_CAST = (
    Role(),
    Role("link_x8_under_load", 3),
    Role("gpu_missing_in_nvml", 6),
    Role("flipped_bit", 5),
    Role("aer_burst", 2),
    Role("nvml_hang", 4),
)


def cast(nodes: int) -> tuple[Role, ...]:
    """The roles of a rack of that many nodes: the first of the cast, then healthy ones."""
    return (*_CAST[:nodes], *(Role() for _ in range(nodes - len(_CAST))))
