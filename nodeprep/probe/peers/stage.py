"""The peers stage of a run, as its parent leads it: start the ranks, ask them in turn, write it down."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ...node import reading
from ..gpus import Gpu
from . import all_reduce, budget, contention, groups, links, pairs
from .ranks import Crew, Rank

# "ring" is the simulated rack's own. gloo needs PyTorch, seconds of import in each of eight processes.
TRANSPORT_VARIABLE = "NODEPREP_SIMULATED_COLLECTIVE"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """What the stage is to do.

    Attributes:
        backend: "torch" or "numpy"; the latter has processes of the CPU for ranks.
        gpus: Those that got through their own load, in NVML's order.
        loaded: How many GPUs the run has in all.
        log: File descriptor for what ranks print.
        hanging_rank: One that shall not come to the all-reduce, None for none.
    """

    root: str
    backend: str
    gpus: Tuple[Gpu, ...]
    loaded: int
    nvml_deadline_s: float
    log: int
    hanging_rank: Optional[int] = None


@dataclass
class Peers:
    """One stage; `run` it once.

    Args:
        order: What to do.
        say: For progress lines.
        stopped: True once the run was stopped from outside.
    """

    order: Order
    say: Say
    stopped: Callable[[], bool]
    _meeting: str = field(default="", init=False)

    def run(self) -> Dict[str, Any]:
        """A reading of the peers part of nodeprep.probe/1.

        Raises:
            OSError: No temporary folder can be made.
        """
        order = self.order
        if order.loaded < 2:
            return reading.not_supported("a single GPU has no peers")
        if len(order.gpus) < 2:
            return reading.error(
                "only %d of %d GPUs got through their own load" % (len(order.gpus), order.loaded)
            )
        started = time.monotonic()
        addresses = [gpu.address for gpu in order.gpus]
        before = self._links(addresses)
        # With a GPU that has gone CUDA hides those behind it too: nobody could be measured.
        absent = {
            address: str(before[address]["detail"]) for address in addresses if _is_gone(before[address])
        }
        gpus = [gpu for gpu in order.gpus if gpu.address not in absent]
        if len(gpus) < 2:
            return reading.error("too few GPUs were still there: %s" % "; ".join(absent.values()))
        # Short: the path of a Unix socket may have 107 bytes, and a result folder's may be longer.
        self._meeting = tempfile.mkdtemp(prefix="nodeprep-")
        crew = Crew([self._rank(number, gpus) for number in range(len(gpus))], self.stopped)
        try:
            part = self._measure(crew, before)
        finally:
            crew.close()
            shutil.rmtree(self._meeting, ignore_errors=True)
        if self.stopped():
            return reading.error("stopped while the GPUs were measured together")
        return reading.ok({**part, "absent": absent, "duration_s": round(time.monotonic() - started, 3)})

    def _measure(self, crew: Crew, before: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
        order = self.order
        plan = budget.budget(order.backend)
        addresses = [rank.address for rank in crew.ranks]
        self.say("starting one process a GPU")
        about = crew.ask({rank.number: {"do": "open"} for rank in crew.ranks}, plan.open_s)
        crew.give_up("its start")
        topology = groups.find(order.root, addresses)
        self.say("host memory copies, each alone, in groups, and all at once")
        rounds = contention.measure(crew, groups.rounds(topology, addresses), plan)
        self.say("copies from each GPU to each other one")
        found = pairs.measure(crew, about, plan, lambda one, other: nvlinks_between(before, one, other))
        self.say("all-reduce over all GPUs")
        transport = "nccl" if order.backend == "torch" else os.environ.get(TRANSPORT_VARIABLE, "ring")
        reduced = all_reduce.AllReduce(crew, transport, plan).measure(self._meeting)
        after = self._links(addresses)
        return {
            "gpus": addresses,
            "ranks": [self._rank_document(rank, about[rank.number]) for rank in crew.ranks],
            "versions": _versions(about),
            "topology": reading.error(topology.unread)
            if topology.unread
            else reading.ok(len(topology.shared)),
            "rounds": rounds,
            "pairs": found,
            "nvlinks": [
                {"gpu": address, "before": _compact(before[address]), "after": _compact(after[address])}
                for address in addresses
            ],
            "all_reduce": reduced,
        }

    def _rank(self, number: int, gpus: Sequence[Gpu]) -> Rank:
        order = self.order
        spec = {
            "backend": order.backend,
            "root": order.root,
            "address": gpus[number].address,
            "addresses": [gpu.address for gpu in gpus],
            "uuids": [gpu.uuid for gpu in gpus],
            "hangs": number == order.hanging_rank,
        }
        return Rank(number, spec, _environment(order.backend, gpus), order.log)

    def _links(self, addresses: Sequence[str]) -> Dict[str, Dict[str, Any]]:
        return links.read(self.order.root, addresses, self.order.nvml_deadline_s, self.stopped)

    def _rank_document(self, rank: Rank, about: Dict[str, Any]) -> Dict[str, Any]:
        opened = about["state"] == "ok"
        trouble = "" if rank.gone == all_reduce.ENDED else rank.gone
        return {
            "rank": rank.number,
            "gpu": rank.address,
            "error": trouble or ("" if opened else str(about["detail"])),
        }


def _is_gone(found: Dict[str, Any]) -> bool:
    """True when NVML could not open the GPU; links of which one could not be read are a list all the same."""
    return bool(found["state"] == "error")


def nvlinks_between(found: Dict[str, Dict[str, Any]], one: str, other: str) -> Dict[str, Any]:
    """A reading of how many NVLinks carry what goes from one GPU to another: those to switches, and to it.

    Where all that are up lead to switches, those that are down should too, and count.
    """
    counts = []
    for end, target in ((found[one], other), (found[other], one)):
        if end["state"] != "ok":
            return end
        remotes = [link["remote"] for link in end["value"] if link["active"].get("value")]
        unknown = [remote for remote in remotes if remote["state"] != "ok"]
        if unknown:
            return reading.not_supported("where NVLinks lead is not known: %s" % unknown[0]["detail"])
        switched = bool(remotes) and all(remote["value"] == "switch" for remote in remotes)
        carrying = sum(remote["value"] in ("switch", target) for remote in remotes)
        counts.append(len(end["value"]) if switched else carrying)
    return reading.ok(min(counts))


def _compact(found: Dict[str, Any]) -> Dict[str, Any]:
    """Links in brief: how many, how many up, and every counter summed over them."""
    if found["state"] != "ok":
        return found
    states = [link["active"] for link in found["value"]]
    unread = [state for state in states if state["state"] != "ok"]
    return reading.ok(
        {
            "links": len(states),
            "active": unread[0] if unread else reading.ok(sum(state["value"] for state in states)),
            "counters": [
                {"name": name, "count": _sum([link["counters"][name] for link in found["value"]])}
                for name in links.COUNTERS
            ],
        }
    )


def _sum(counts: List[Dict[str, Any]]) -> Dict[str, Any]:
    """The sum of readings; one that could not be read makes it unreadable."""
    for state in ("error", "not_supported"):
        for count in counts:
            if count["state"] == state:
                return count
    return reading.ok(sum(int(count["value"]) for count in counts))


def _versions(about: Dict[int, Dict[str, Any]]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for answer in about.values():
        if answer["state"] == "ok":
            found.update(answer["value"]["versions"])
    return found


def _environment(backend: str, gpus: Sequence[Gpu]) -> Dict[str, str]:
    environment = dict(os.environ)
    if backend == "torch":
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.uuid for gpu in gpus)
        environment.setdefault("OMP_NUM_THREADS", "1")
        # Names of interfaces and hosts are of no use within one node, and a look for them can take long.
        environment.setdefault("NCCL_SOCKET_IFNAME", "lo")
        environment.setdefault("NCCL_IB_DISABLE", "1")
    return environment
