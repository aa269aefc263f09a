"""Every link on the way to a GPU came up with all its lanes."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._hops import LinkEnds, Way, each_link
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a link. Width, unlike speed, does not change when a GPU idles."""

    def judge(link: LinkEnds, found: Way) -> CheckResult:
        measured = min(
            end.device.link.sta_width_lanes.require(f"the link width of {end.address}") for end in link.ends
        )
        wanted, source = _wanted(context, link)
        parts = [f"{link.name} trained to x{measured}, x{wanted} wanted"]
        if measured >= wanted:
            parts = [f"{link.name} is at x{measured}"]
        if link.upper is None:
            parts.append(f"seen from the GPU's own end only: {found.out_of_sight}")
        else:
            parts.append(f"link below {link.upper.address}")
        return CHECK.result(
            "PASS" if measured >= wanted else "FAIL",
            link.lower.address,
            "; ".join(parts),
            measured=measured,
            limit=wanted,
            unit="lanes",
            source=source,
            evidence=tuple(f"{end.where}/link/sta_width_lanes" for end in link.ends),
        )

    yield from each_link(CHECK, context, judge)


def _wanted(context: Context, link: LinkEnds) -> tuple[int, str]:
    if context.spec.pcie_width_lanes is not None:
        return int(context.spec.pcie_width_lanes.value), context.spec.pcie_width_lanes.source
    able = min(
        end.device.link.cap_width_lanes.require(f"the width capability of {end.address}") for end in link.ends
    )
    return able, "what the ends of the link say they can do (PCIe LnkCap)"


CHECK = Check(
    id="pcie_link_width",
    title="PCIe links came up with all lanes",
    phase="static",
    evaluate=evaluate,
    explains=("pcie_link_width_load", "copy_bandwidth"),
)
