"""What the parent knows about one GPU: built from its worker's messages, so a killed worker loses nothing."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from ..node import reading
from .digests import Findings
from .gpus import Gpu
from .stats import stats_reading, summary
from .workload import Workload

NOT_REACHED = "the probe did not get that far"


class GpuRecord:
    """One GPU's run so far.

    Attributes:
        state: "running" until it is "completed", "interrupted" or "failed".
        iterations: Measured ones.
    """

    def __init__(self, gpu: Gpu, workload: Workload) -> None:
        self.gpu = gpu
        self.state = "running"
        self.error = ""
        self.hint = ""
        self.versions: Dict[str, str] = {}
        self.seconds: List[float] = []
        self.last_message_t = 0.0
        self._workload = workload
        self._phases: List[Dict[str, Any]] = [{"name": "setup", "start_s": 0.0, "end_s": 0.0}]
        self._reference: Tuple[str, ...] = ()
        self._compared = 0
        self._findings = Findings()
        self._non_finite: Optional[int] = None
        self._ceiling = reading.error(NOT_REACHED)
        self._alone = {way: reading.error(NOT_REACHED) for way in ("h2d", "d2h")}
        self._copies: Dict[str, Any] = {way: reading.error(NOT_REACHED) for way in ("h2d", "d2h")}
        self._copies.update(bytes_h2d=0, bytes_d2h=0, content_errors=0, content_checks=0)
        self._done = False

    @property
    def iterations(self) -> int:
        """Measured iterations so far."""
        return len(self.seconds)

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
        if not self.seconds:
            return None
        median: float = summary(self.seconds)["median"]
        return self._workload.flops / median / 1e12

    def apply(self, message: Dict[str, Any], t_s: float) -> None:
        """Takes one message of the worker, which came at `t_s` seconds of the run."""
        self.last_message_t = t_s
        handlers: Dict[str, Callable[[Dict[str, Any]], None]] = {
            "versions": lambda m: self.versions.update(m["versions"]),
            "phase": lambda m: self._enter(m["name"], m["t"]),
            "copies_alone": lambda m: self._alone.update(h2d=m["h2d"], d2h=m["d2h"]),
            "ceiling": self._take_ceiling,
            "warm_up": lambda m: self._count_non_finite(m["non_finite"]),
            "reference": self._take_reference,
            "iteration": self._take_iteration,
            "mismatch": lambda m: self._findings.add(m["mismatch"]),
            "copies": lambda m: self._copies.update({k: v for k, v in m.items() if k != "kind"}),
            "done": self._take_done,
            "failed": lambda m: self.fail(m["error"], m["hint"], t_s),
        }
        handlers[message["kind"]](message)

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

    def interrupt(self, t_s: float) -> None:
        """The run was stopped from outside."""
        if self.running:
            self.state, self.error = "interrupted", "interrupted in the phase %s" % self.phase
            self._close_phase(t_s)

    def cooled_down(self, t_s: float) -> None:
        """The run as a whole is over: with it ends the phase that needs no worker."""
        if self.state == "completed":
            self._close_phase(t_s)

    def window(self) -> Optional[Tuple[float, float]]:
        """Start and end of the compute phase, None when it was not reached."""
        for phase in self._phases:
            if phase["name"] == "compute":
                return phase["start_s"], phase["end_s"]
        return None

    def phases(self) -> List[Dict[str, Any]]:
        """All phases so far."""
        return [dict(phase) for phase in self._phases]

    def document(self, telemetry: Dict[str, Any]) -> Dict[str, Any]:
        """The GPU's part of nodeprep.probe/1."""
        tflops = self.tflops()
        copies = {k: self._copies[k] for k in ("bytes_h2d", "bytes_d2h", "content_errors", "content_checks")}
        return {
            "pci_address": self.gpu.address,
            "uuid": self.gpu.uuid,
            "name": self.gpu.name,
            "state": self.state,
            "error": self.error,
            "iterations": self.iterations,
            "iteration_s": stats_reading(self.seconds, NOT_REACHED),
            "achieved_tflops": reading.error(NOT_REACHED) if tflops is None else reading.ok(tflops),
            "ceiling_tflops": self._ceiling,
            "digests": self._digests(),
            "non_finite_values": reading.error(NOT_REACHED)
            if self._non_finite is None
            else reading.ok(self._non_finite),
            "copies": {
                "alone_h2d_gbps": self._alone["h2d"],
                "alone_d2h_gbps": self._alone["d2h"],
                "during_h2d_gbps": self._copies["h2d"],
                "during_d2h_gbps": self._copies["d2h"],
                **copies,
            },
            "telemetry": telemetry,
            "phases": self.phases(),
        }

    @property
    def mismatches(self) -> int:
        """Iterations whose digests differed from the reference."""
        return self._findings.count

    def _digests(self) -> Dict[str, Any]:
        if not self._compared:
            return reading.error(
                "%s: no two iterations were compared" % NOT_REACHED if self._reference else NOT_REACHED
            )
        return reading.ok(
            {
                "reference": list(self._reference),
                "iterations_compared": self._compared,
                "mismatch_count": self._findings.count,
                "mismatches": self._findings.kept,
            }
        )

    def _take_ceiling(self, message: Dict[str, Any]) -> None:
        self._ceiling = message["tflops"]

    def _take_reference(self, message: Dict[str, Any]) -> None:
        self._reference = tuple(message["digests"])

    def _take_iteration(self, message: Dict[str, Any]) -> None:
        self.seconds.append(message["seconds"])
        self._compared = message["compared"]
        self._count_non_finite(message["non_finite"])
        # Until the phase ends, it reaches as far as its last iteration.
        self._phases[-1]["end_s"] = round(message["t"], 3)

    def _take_done(self, message: Dict[str, Any]) -> None:
        self._done = True
        self._enter("cool-down", message["t"])

    def _count_non_finite(self, count: int) -> None:
        self._non_finite = (self._non_finite or 0) + count

    def _enter(self, name: str, t_s: float) -> None:
        self._close_phase(t_s)
        self._phases.append({"name": name, "start_s": round(t_s, 3), "end_s": round(t_s, 3)})

    def _close_phase(self, t_s: float) -> None:
        last = self._phases[-1]
        last["end_s"] = round(max(t_s, last["start_s"]), 3)


def _hint_for(how: str) -> str:
    if "SIGKILL" in how:
        return "somebody killed it, or the kernel did for want of memory: journalctl -k -g 'Out of memory'"
    return "probe.log has its last words; look for Xid lines too: journalctl -k -g NVRM"
