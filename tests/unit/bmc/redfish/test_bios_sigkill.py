"""SIGKILL of `bios apply` after any request: the next run knows the state it finds, and finishes.

The killed run is a process of its own, forked from this one, with the simulated BMC on this side of a
socket: it runs no `finally` and closes no file. Time is the simulator's: a hundred runs take seconds.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bios_trees
import httpx
import pytest
from bios_bench import TARGET, Bench

from nodeprep.bmc.bios import parse_settings
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.sim.bmc import Dump
from nodeprep.workflows import bios_apply, bios_work

WANTED = ("iommu=disabled", "pcie_link_gen=3")
# Disabling the IOMMU switches SR-IOV off by itself.
CHANGED = {
    "IommuSupport": "Disabled",
    "SriovGlobalEnable": "Disabled",
    "PciSlot1LinkSpeed": "Gen3",
    "PciSlot2LinkSpeed": "Gen3",
}


class Wire:
    """Messages between the two processes."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, message: Any) -> None:
        data = pickle.dumps(message)
        self._end.sendall(struct.pack("!I", len(data)) + data)

    def receive(self) -> Any:
        (length,) = struct.unpack("!I", self._read(4))
        return pickle.loads(self._read(length))  # noqa: S301 - from our own child

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._end.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data


class RemoteClock(Clock):
    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def now(self) -> float:
        self._wire.send(("now", 0.0))
        return float(self._wire.receive())

    def wait(self, seconds: float) -> None:
        self._wire.send(("wait", seconds))
        self._wire.receive()


class RemoteBmc(httpx.BaseTransport):
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._wire.send(("ask", (request.method, str(request.url), dict(request.headers), request.read())))
        status, headers, content = self._wire.receive()
        return httpx.Response(status, headers=headers, content=content)


def killed_at(bench: Bench, number: int) -> bool:
    """Runs apply in another process and kills it after the BMC has carried out a request; False: it ended."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            ours.close()
            _apply(Wire(theirs), bench)
        finally:
            os._exit(0)
    theirs.close()
    wire, asked = Wire(ours), 0
    try:
        while True:
            kind, what = wire.receive()
            if kind == "wait":
                bench.clock.wait(what)
            if kind != "ask":
                wire.send(bench.clock.time)
                continue
            asked += 1
            method, url, headers, content = what
            answer = bench.handle_request(httpx.Request(method, url, headers=headers, content=content))
            if asked == number:
                os.kill(child, signal.SIGKILL)
                return True
            # What was packed is unpacked by now.
            told = {key: value for key, value in answer.headers.items() if key != "content-encoding"}
            wire.send((answer.status_code, told, answer.read()))
    except EOFError:
        return False
    finally:
        os.waitpid(child, 0)
        ours.close()
        bench.close()


def _apply(wire: Wire, bench: Bench) -> None:
    clock = RemoteClock(wire)
    bios_apply.apply(
        bios_work.Asked(TARGET),
        parse_settings(WANTED),
        bench.home,
        connect=lambda target: Connection(target, clock=clock, transport=lambda: RemoteBmc(wire)),
        clock=clock,
    )


@pytest.mark.parametrize("dump", [bios_trees.dell, bios_trees.ami])
def test_sigkill_after_any_request_leaves_what_the_next_run_finishes(
    dump: Callable[[], Dump], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Hundreds of runs: power cuts of the controller are not what is judged here.
    monkeypatch.setattr("os.fsync", lambda _: None)
    made = dump()
    for number in range(1, 300):
        bench = Bench(made, tmp_path / str(number), post_s=20.0)
        before = bench.current
        if not killed_at(bench, number):
            assert number > 30
            assert {**before, **CHANGED} == bench.current
            return
        bench.clock.wait(3.0)
        done = bench.apply(*WANTED)
        assert done.state in ("applied", "unchanged"), (number, done.error)
        assert bench.current == {**before, **CHANGED}, number
        assert bench.bmc.state.host.power == "On", number
        undone = bench.rollback()
        assert undone.state in ("applied", "unchanged"), (number, undone.error)
        assert (bench.current, bench.waiting) == (before, {}), number
    pytest.fail("it never ended")
