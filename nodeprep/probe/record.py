"""What the parent knows about one GPU: built from its worker's messages, so a killed worker loses nothing."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from ..node.nvml_events import NO_XID, XID_EVENT
from .gpus import Gpu
from .phases import NOT_REACHED, PHASES, Part, View
from .phases.compute import ComputePart
from .workload import Workload

__all__ = ["NOT_REACHED", "GpuRecord"]


class GpuRecord:
    """One GPU's run so far.

    Attributes:
        events: What NVML told of, as nodeprep.probe/1 has it.
        state: "running" until it is "completed", "interrupted" or "failed".
        compute: What its compute phases found.
    """

    def __init__(self, gpu: Gpu, workload: Workload) -> None:
        self.gpu = gpu
        self.state = "running"
        self.error = ""
        self.hint = ""
        self.versions: Dict[str, str] = {}
        self.events: List[Dict[str, Any]] = []
        self.last_message_t = 0.0
        self.compute = ComputePart(workload)
        self._phases: List[Dict[str, Any]] = [_phase("setup", 0.0, 1)]
        self._parts: List[Part] = [
            self.compute if phase.part is ComputePart else phase.part(workload) for phase in PHASES.values()
        ]
        self._handlers: Dict[str, Callable[[Dict[str, Any]], None]] = {
            "versions": lambda m: self.versions.update(m["versions"]),
            "phase": lambda m: self._enter(m["name"], m["t"], m.get("round", 1)),
            "done": self._take_done,
            "failed": lambda m: self.fail(m["error"], m["hint"], self.last_message_t),
        }
        for part in self._parts:
            self._handlers.update(part.takes())
        self._done = False
        self._cooled_down = False

    @property
    def iterations(self) -> int:
        """Measured iterations so far."""
        return len(self.compute.seconds)

    @property
    def phase(self) -> str:
        """The phase it is in."""
        return str(self._phases[-1]["name"])

    @property
    def running(self) -> bool:
        """True until its end is known."""
        return self.state == "running"

    def tflops(self) -> Optional[float]:
        """FLOPs of the workload over the median iteration; None before the first."""
        return self.compute.tflops()

    def apply(self, message: Dict[str, Any], t_s: float) -> None:
        """Takes one message of the worker, which came at `t_s` seconds of the run."""
        self.last_message_t = t_s
        self._handlers[message["kind"]](message)
        if "t" in message:
            # Until a phase ends, it reaches as far as its last word.
            last = self._phases[-1]
            last["end_s"] = round(max(message["t"], last["start_s"]), 3)

    def worker_ended(self, how: str, t_s: float) -> None:
        """The worker is gone; `how` says in which way ("exit code 0", "killed by SIGKILL")."""
        if not self.running:
            return
        if self._done:
            self.state = "completed"
            return
        where = "in the phase %s" % self.phase
        if self.iterations:
            where += " after %d iterations" % self.iterations
        self.fail("the worker process ended early: %s, %s" % (how, where), _hint_for(how), t_s)

    def fail(self, error: str, hint: str, t_s: float) -> None:
        """This GPU has failed; the first reason counts."""
        if self.running:
            self.state, self.error, self.hint = "failed", error, hint
            self._close_phase(t_s)

    def note_event(self, event: Dict[str, Any]) -> bool:
        """Takes an event that NVML told of; true when this GPU has failed by it just now."""
        is_xid = event["kind"] == XID_EVENT and event["data"] != NO_XID
        code = int(event["data"]) if is_xid else None
        self.events.append({"t_s": event["t_s"], "xid": code, "kind": "0x%x" % event["kind"]})
        if code is None:
            return False
        words = "Xid %d at %.1f s of the run, in the phase %s" % (code, event["t_s"], self.phase)
        if self.state == "failed":
            # The worker told of its end first; this is why.
            self.error += "; " + words
            return False
        if self.state == "completed":
            self.state = "running"
        self.fail(words, "look it up: nodeprep diagnose explain xid %d" % code, event["t_s"])
        return True

    def interrupt(self, t_s: float) -> None:
        """The run was stopped from outside."""
        if self.running:
            self.state, self.error = "interrupted", "interrupted in the phase %s" % self.phase
            self._close_phase(t_s)

    def cooled_down(self, t_s: float) -> None:
        """The run as a whole is over: with it ends the phase that needs no worker."""
        if self.state == "completed" and not self._cooled_down:
            self._cooled_down = True
            self._close_phase(t_s)

    def windows(self, name: str) -> List[Tuple[float, float]]:
        """Start and end of every phase of a name, one a round."""
        return [(phase["start_s"], phase["end_s"]) for phase in self._phases if phase["name"] == name]

    def phases(self) -> List[Dict[str, Any]]:
        """All phases so far."""
        return [dict(phase) for phase in self._phases]

    def document(self, telemetry: Dict[str, Any], view: View) -> Dict[str, Any]:
        """The GPU's part of nodeprep.probe/1."""
        document: Dict[str, Any] = {
            "pci_address": self.gpu.address,
            "uuid": self.gpu.uuid,
            "name": self.gpu.name,
            "state": self.state,
            "error": self.error,
            "telemetry": telemetry,
            "phases": self.phases(),
        }
        for part in self._parts:
            for key, value in part.document(view).items():
                both = isinstance(value, dict) and key in document
                document[key] = {**document[key], **value} if both else value
        return document

    @property
    def mismatches(self) -> int:
        """Iterations whose digests differed from the reference."""
        return self.compute.mismatches

    def _take_done(self, message: Dict[str, Any]) -> None:
        self._done = True
        self._enter("cool-down", message["t"], self._phases[-1]["round"])

    def _enter(self, name: str, t_s: float, number: int) -> None:
        self._close_phase(t_s)
        self._phases.append(_phase(name, t_s, number))

    def _close_phase(self, t_s: float) -> None:
        last = self._phases[-1]
        last["end_s"] = round(max(t_s, last["start_s"]), 3)


def _phase(name: str, t_s: float, number: int) -> Dict[str, Any]:
    return {"name": name, "round": number, "start_s": round(t_s, 3), "end_s": round(t_s, 3)}


def _hint_for(how: str) -> str:
    if "SIGKILL" in how:
        return "somebody killed it, or the kernel did for want of memory: journalctl -k -g 'Out of memory'"
    return "probe.log has its last words; look for Xid lines too: journalctl -k -g NVRM"
