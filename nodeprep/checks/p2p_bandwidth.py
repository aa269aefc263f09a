"""Copies between GPUs reach what the NVLinks between them give, and what other pairs reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median

from nodeprep.checks._check import Check, Context
from nodeprep.checks._peers import from_source, links_of, of_peers, without_nvlink
from nodeprep.model.probe_peers import PeerPair, Peers
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import Limit

# One link of 18 that carries nothing costs 5.6 %, and the 56 pairs of a healthy HGX H100 lie within 1.6 %.
# Source: 5 % against a baseline (superbench); NVIDIA/nccl#1264 (371.0 to 376.8 GB/s).
LEAST_OF_MEDIAN = 0.95
SOURCE_OF_MEDIAN = "superbench, 5 % against a baseline: here the median of this node's pairs (see the page)"


@dataclass(frozen=True, slots=True)
class _Floor:
    """What a pair must reach, GB/s."""

    gbps: float
    source: str


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU: the copies that it sent, the worst of them shown."""
    return of_peers(CHECK, context, partial(_each, context.spec.profile.p2p_nvlink_gbps))


def _each(per_link: Limit | None, found: Peers) -> Iterator[CheckResult]:
    rates: dict[int, list[float]] = {}
    for pair in found.pairs:
        if pair.nvlinks.value and pair.gbps.value is not None:
            rates.setdefault(pair.nvlinks.value, []).append(pair.gbps.value)
    typical = {links: median(values) for links, values in rates.items()}
    judge = partial(_judge, found, typical, per_link)
    for address in found.gpus:
        yield CHECK.on(address, "probe#/peers/value/pairs", judge, address)


def _judge(found: Peers, typical: dict[int, float], per_link: Limit | None, address: str) -> CheckResult:
    if without_nvlink(links_of(found, address)):
        return CHECK.result(
            "SKIPPED", address, f"no NVLink of GPU {address} is up: copies to other GPUs go over PCIe"
        )
    pairs = [pair for pair in from_source(found, address) if _links(pair)]
    if not pairs:
        raise Unreadable(f"NVLinks of GPU {address} are up, and none leads to a GPU of this node")
    closed = [pair.target for pair in pairs if not pair.access.require(_what("access", pair))]
    if closed:
        return CHECK.result(
            "FAIL",
            address,
            f"GPU {address} cannot reach the memory of {', '.join(closed)} although NVLinks lead there: "
            "copies go through the host",
            measured="no peer access",
            limit="peer access",
            source="CUDA of this node: cudaDeviceCanAccessPeer",
        )
    shown, rate, floor = min(
        (
            (pair, pair.gbps.require(_what("bandwidth", pair)), _floor(pair, typical, per_link))
            for pair in pairs
        ),
        key=lambda entry: entry[1] / entry[2].gbps,
    )
    return CHECK.result(
        "PASS" if rate >= floor.gbps else "FAIL",
        address,
        f"copies from GPU {address} to {shown.target} reached {rate:.1f} GB/s over {_links(shown)} NVLinks, "
        f"at least {floor.gbps:.4g} wanted; the other pairs of this node {_others(found, shown)}",
        measured=round(rate, 1),
        limit=round(floor.gbps, 1),
        unit="GB/s",
        source=floor.source,
    )


def _links(pair: PeerPair) -> int:
    return pair.nvlinks.require(f"the number of NVLinks from GPU {pair.source} to {pair.target}")


def _what(name: str, pair: PeerPair) -> str:
    return f"the {name} from GPU {pair.source} to {pair.target}"


def _floor(pair: PeerPair, typical: dict[int, float], per_link: Limit | None) -> _Floor:
    """The higher of the part's own floor and that of its peers."""
    links = _links(pair)
    floors = [_Floor(LEAST_OF_MEDIAN * typical[links], SOURCE_OF_MEDIAN)] if links in typical else []
    if per_link is not None:
        floors.append(_Floor(per_link.value * links, f"{links} x {per_link.value:g}: {per_link.source}"))
    if not floors:
        raise Unreadable(f"there is nothing to hold {_what('bandwidth', pair)} against")
    return max(floors, key=lambda floor: floor.gbps)


def _others(found: Peers, shown: PeerPair) -> str:
    rates = [pair.gbps.value for pair in found.pairs if pair is not shown and pair.gbps.value is not None]
    return f"{min(rates):.1f} to {max(rates):.1f}" if rates else "were not measured"


CHECK = Check(
    id="p2p_bandwidth",
    title="copies between GPUs reach their NVLinks' bandwidth",
    phase="load",
    evaluate=evaluate,
)
