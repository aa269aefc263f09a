"""The process that samples NVML: a driver that hangs, or a sampler that is killed, costs no GPU its load.

It reads its orders from standard input, a JSON document a line, tells what it saw over a pipe, and dies
with its parent.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any, Dict, List

from ..node import aer_path, nvml_events, nvml_sample, reading
from .child import Reporter, die_with_parent

# Counters of ports change rarely; reading them all costs a file each.
AER_S = 2.0


def main() -> None:
    """Never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    spec = json.loads(sys.stdin.readline())
    die_with_parent(spec["parent"])
    reporter = Reporter(spec["descriptor"])
    status = 0
    try:
        _Sampling(spec, reporter).run()
    except BrokenPipeError:
        status = 1
    except Exception as error:
        traceback.print_exc()
        reporter.send(kind="trouble", why="telemetry stopped: %s: %s" % (type(error).__name__, error))
        status = 1
    sys.stderr.flush()
    # Threads may hang in NVML.
    os._exit(status)


class _Sampling:
    def __init__(self, spec: Dict[str, Any], reporter: Reporter) -> None:
        self._root: str = spec["root"]
        self._addresses: List[str] = spec["addresses"]
        self._period_s: float = spec["period_s"]
        self._started: float = spec["started"]
        self._reporter = reporter
        self._lock = threading.Lock()
        self._orders: List[Dict[str, Any]] = []
        self._events: List[Dict[str, Any]] = []
        self._ended = threading.Event()
        self._next_aer = 0.0

    def run(self) -> None:
        """Until standard input ends, or an order says so."""
        threading.Thread(target=self._listen, name="orders", daemon=True).start()
        due = time.monotonic()
        with nvml_sample.Sampler(self._root, self._addresses) as sampler:
            events = nvml_events.Events(sampler.library, self._addresses, self._note_event)
            events.start()
            while not self._ended.wait(max(0.0, due - time.monotonic())):
                self._obey(sampler)
                self._reporter.send(**self._sample(sampler, events))
                # A late sample does not bring a burst of samples after it.
                due = max(due + self._period_s, time.monotonic())
            events.stop()

    def _sample(self, sampler: nvml_sample.Sampler, events: nvml_events.Events) -> Dict[str, Any]:
        begun = self._now()
        samples = sampler.sample()
        done = self._now()
        draws = sampler.draws()
        with self._lock:
            heard, self._events = self._events, []
        return {
            "kind": "sample",
            "start_s": begun,
            "end_s": done,
            "gpus": {
                address: {
                    "values": sample,
                    "failures": sampler.failures(address),
                    "draws": [(round(t - self._started, 4), watts) for t, watts in draws[address]],
                }
                for address, sample in samples.items()
            },
            "events": heard,
            "listening": events.listening(),
            "aer": self._aer(),
            "cpu_s": time.process_time(),
        }

    def _aer(self) -> Dict[str, Any]:
        """Counters of each path now and then; empty in between."""
        if time.monotonic() < self._next_aer:
            return {}
        self._next_aer = time.monotonic() + AER_S
        return {one: reading.attempt(aer_path.totals, self._root, one) for one in self._addresses}

    def _note_event(self, address: str, moment: float, kind: int, data: int) -> None:
        event = {"gpu": address, "t_s": round(moment - self._started, 3), "kind": kind, "data": data}
        with self._lock:
            self._events.append(event)

    def _listen(self) -> None:
        for line in sys.stdin:
            with self._lock:
                self._orders.append(json.loads(line))
        self._ended.set()

    def _obey(self, sampler: nvml_sample.Sampler) -> None:
        with self._lock:
            orders, self._orders = self._orders, []
        for order in orders:
            sampler.watch_power(order["watch_power"])

    def _now(self) -> float:
        return time.monotonic() - self._started
