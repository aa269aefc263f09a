"""Which GPUs share a port of the PCI bus or a NUMA node, and so may have to share its bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Set, Tuple

from ...node import pci, reading
from ...node.paths import read_text

ALONE, PORT, NUMA, ALL = "alone", "port", "numa", "all"


@dataclass(frozen=True)
class Group:
    """GPUs that copy at the same time.

    Attributes:
        kind: "alone", "port" (they share a port), "numa" (a NUMA node) or "all".
        at: Address of the port nearest to the CPU that all of them are behind, or the number of the NUMA
            node; "" for none.
        gpus: Their addresses.
    """

    kind: str
    at: str
    gpus: Tuple[str, ...]


@dataclass(frozen=True)
class Topology:
    """What the PCI bus says.

    Attributes:
        shared: Groups of more than one GPU, the smallest first, without the one of all.
        common_port: A port that all GPUs are behind, "" for none.
        unread: Why the bus could not be read, "" when it was.
    """

    shared: Tuple[Group, ...]
    common_port: str
    unread: str


def rounds(topology: Topology, addresses: Sequence[str]) -> List[Group]:
    """Who copies with whom: each alone, each group that shares something, then all."""
    alone = [Group(ALONE, "", (address,)) for address in addresses]
    return [*alone, *topology.shared, Group(ALL, topology.common_port, tuple(addresses))]


def find(root: str, addresses: Sequence[str]) -> Topology:
    """The groups of these GPUs."""
    paths = reading.attempt(pci.gpu_paths, root, ())
    if paths["state"] != "ok":
        return Topology((), "", str(paths["detail"]))
    hops = {path["gpu"]: path["hops"] for path in paths["value"]}
    missing = [address for address in addresses if address not in hops]
    if missing:
        return Topology((), "", "the PCI bus has no GPU at %s" % ", ".join(missing))
    return group({address: hops[address] for address in addresses}, _numa_nodes(root, addresses))


def group(hops: Dict[str, List[str]], numa: Dict[str, Dict[str, Any]]) -> Topology:
    """The groups, from each GPU's hops (root port first) and the reading of its NUMA node."""
    everybody = tuple(hops)
    behind: Dict[str, List[str]] = {}
    for address, path in hops.items():
        for port in path[:-1]:
            behind.setdefault(port, []).append(address)
    seen: Set[Tuple[str, ...]] = set()
    common_port = ""
    shared: List[Group] = []
    # Root ports were entered first: of a chain of ports over the same GPUs, the uppermost names it.
    for port, members in behind.items():
        who = tuple(members)
        if who == everybody:
            common_port = common_port or port
        elif len(who) > 1 and who not in seen:
            shared.append(Group(PORT, port, who))
        seen.add(who)
    for node, members in _by_node(numa).items():
        who = tuple(members)
        if 1 < len(who) < len(everybody) and who not in seen:
            shared.append(Group(NUMA, str(node), who))
    return Topology(tuple(sorted(shared, key=lambda one: len(one.gpus))), common_port, "")


def _by_node(numa: Dict[str, Dict[str, Any]]) -> Dict[int, List[str]]:
    nodes: Dict[int, List[str]] = {}
    for address, node in numa.items():
        # -1 is firmware that did not say.
        if node["state"] == "ok" and node["value"] >= 0:
            nodes.setdefault(node["value"], []).append(address)
    return nodes


def _numa_nodes(root: str, addresses: Sequence[str]) -> Dict[str, Dict[str, Any]]:
    return {
        address: reading.attempt(
            lambda at: int(read_text(root, "%s/%s/numa_node" % (pci.DEVICES, at))), address
        )
        for address in addresses
    }
