"""What stands on the drawing of a node's topology: rates, links and counts by address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from nodeprep.model.facts import NodeFacts, PciDevice
from nodeprep.model.probe import GpuRun
from nodeprep.model.probe_peers import CopyRound, Peers
from nodeprep.reports._text import link, number

_SWITCH_PORTS = ("upstream_port", "pcie_to_pci_bridge")


class Figures:
    """What is known of a node's GPUs and ports, looked up by address; "" for what is not known."""

    def __init__(self, facts: NodeFacts, peers: Peers | None, runs: dict[str, GpuRun]) -> None:
        self.peers = peers
        self.runs = runs
        self._devices = {device.address: device for device in facts.pci.devices.value or ()}
        self._alone = {each.gpus[0]: each for each in self._rounds("alone")}
        self._all = next(self._rounds("all"), None)

    def device(self, address: str) -> PciDevice | None:
        return self._devices.get(address)

    def numa(self, address: str) -> int:
        """-1 where firmware or the kernel does not say."""
        device = self.device(address)
        node = device.numa_node.value if device else None
        return -1 if node is None else node

    def shown(self, hops: Sequence[str]) -> Iterator[str]:
        """Ports worth a box: root ports, and one for each switch."""
        for hop in hops[:-1]:
            device = self.device(hop)
            kind = device.port_type.value if device else None
            if kind == "root_port" or kind in _SWITCH_PORTS:
                yield hop

    def port(self, address: str) -> tuple[str, str]:
        """Kind of box, and its title."""
        device = self.device(address)
        root = device is not None and device.port_type.value == "root_port"
        return ("root", "root port") if root else ("switch", "PCIe switch")

    def link(self, address: str) -> str:
        """How a link is trained; "" where the table of hops has to say why that is not known."""
        device = self.device(address)
        if (
            device is None
            or device.link.sta_speed_gts.value is None
            or device.link.sta_width_lanes.value is None
        ):
            return ""
        return link(device.link.sta_speed_gts, device.link.sta_width_lanes)

    def loaded_link(self, gpu: str) -> str:
        """How a GPU's link was trained under load; an idle one may run slower."""
        run = self.runs.get(gpu)
        gen = run.telemetry.link_gen.value if run else None
        width = run.telemetry.link_width_lanes.value if run else None
        if gen is None or width is None:
            return self.link(gpu)
        return f"Gen{gen.min:.0f} x{width.min:.0f}"

    def lone(self, gpu: str) -> str:
        """GB/s of one GPU's copies by itself, to it and from it."""
        each = self._alone.get(gpu)
        return _both(each, (gpu,)) if each else ""

    def together(self, gpus: Sequence[str]) -> str:
        """GB/s of some GPUs added up while all copy."""
        return _both(self._all, gpus) if self._all else ""

    def shared(self, port: str, gpus: Sequence[str]) -> str:
        """GB/s of the GPUs behind a port added up while only they copy."""
        each = next((one for one in self._rounds("port") if one.at == port), None)
        return _both(each, gpus) if each else ""

    def summary(self) -> Iterator[str]:
        """What was measured over all GPUs, in words."""
        if self.peers is None:
            return
        rates = [pair.gbps.value for pair in self.peers.pairs if pair.gbps.value is not None]
        both = [
            pair.both_ways_gbps.value for pair in self.peers.pairs if pair.both_ways_gbps.value is not None
        ]
        if rates:
            yield f"copies between GPUs {_span(rates)} GB/s one way"
        if both:
            yield f"{_span(both)} GB/s both ways"
        sizes = self.peers.all_reduce.sizes.value
        if sizes:
            rate, transport = number(round(sizes[-1].bus_gbps, 1)), self.peers.all_reduce.transport
            yield f"all-reduce over {len(self.peers.gpus)} GPUs: {rate} GB/s of bus bandwidth ({transport})"
        else:
            yield f"all-reduce: {self.peers.all_reduce.sizes.detail}"

    def nvlinks(self, gpu: str) -> str:
        """How many NVLinks are up; "" on a part without."""
        around = next((one for one in self.peers.nvlinks if one.gpu == gpu), None) if self.peers else None
        state = around.after.value if around else None
        if state is None or not state.active.value:
            return ""
        return f"{state.active.value} of {state.links} links"

    def sent(self, gpu: str) -> str:
        """The median rate at which it sent to the others."""
        pairs = self.peers.pairs if self.peers else ()
        rates = [pair.gbps.value for pair in pairs if pair.source == gpu and pair.gbps.value is not None]
        return f"{number(round(median(rates)))} GB/s" if rates else ""

    def switched(self) -> bool:
        """Whether NVLinks lead everywhere, as through NVSwitches."""
        pairs = self.peers.pairs if self.peers else ()
        return bool(pairs) and all(pair.nvlinks.value for pair in pairs)

    def _rounds(self, kind: str) -> Iterator[CopyRound]:
        return (each for each in (self.peers.rounds if self.peers else ()) if each.kind == kind)


def _both(each: CopyRound, gpus: Sequence[str]) -> str:
    """GB/s to and from some GPUs of a round, added up; "" when one is missing."""
    places = [place for place, gpu in enumerate(each.gpus) if gpu in gpus]
    sums = []
    for rates in (each.h2d, each.d2h):
        known = [rates[place].value for place in places]
        if None in known or len(known) != len(gpus):
            return ""
        sums.append(number(round(sum(value for value in known if value is not None), 1)))
    return f"{sums[0]} / {sums[1]} GB/s"


def _span(values: Sequence[float]) -> str:
    low, high = number(round(min(values))), number(round(max(values)))
    return low if low == high else f"{low} to {high}"
