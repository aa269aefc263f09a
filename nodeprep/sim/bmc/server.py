"""Simulated BMCs on ports of this machine: one of them or a thousand, in one process."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nodeprep.errors import UsageError
from nodeprep.sim.bmc.dump import Dump
from nodeprep.sim.bmc.http import Connection
from nodeprep.sim.bmc.service import SimulatedBmc
from nodeprep.sim.certificates import Tls

LOOPBACK = "127.0.0.1"
_BACKLOG = 128
# One listener and up to two connections for each BMC, and what the process itself has open.
_FILES_A_BMC = 3
_FILES_BESIDE = 100


@dataclass(frozen=True, slots=True)
class Served:
    """One BMC that listens.

    Attributes:
        url: Without a path.
    """

    url: str
    port: int
    bmc: SimulatedBmc


def many(dumps: Sequence[Dump], count: int, **options: Any) -> list[SimulatedBmc]:
    """So many BMCs over some dumps in turn, each with state and serial number of its own.

    Args:
        options: As SimulatedBmc takes them.
    """
    return [
        SimulatedBmc(dumps[number % len(dumps)], serial=f"SIM{number:05d}" if count > 1 else "", **options)
        for number in range(count)
    ]


def listen(count: int, port: int) -> list[socket.socket]:
    """Listening sockets on ports from the given one on, or on free ones for port 0.

    Raises:
        UsageError: A port is taken, or the machine allows fewer open files.
    """
    _allow_files(count)
    made: list[socket.socket] = []
    try:
        for number in range(count):
            made.append(listener := socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((LOOPBACK, port + number if port else 0))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
    except (OSError, OverflowError) as error:
        for listener in made:
            listener.close()
        where = f"port {port + len(made) - 1}" if port else "a free port"
        reason = getattr(error, "strerror", None) or str(error)
        hint = "choose another --port; 0 takes free ones"
        raise UsageError(f"cannot listen on {where}: {reason}", hint=hint) from error
    return made


async def serve(
    bmcs: Sequence[SimulatedBmc], listeners: Sequence[socket.socket], tls: Tls | None, until: asyncio.Event
) -> None:
    """Serve BMCs, one for each listening socket, until told to end; open connections are cut then."""
    loop = asyncio.get_running_loop()
    connections: set[Connection] = set()
    servers = [
        await loop.create_server(
            _factory(bmc, connections), sock=listener, ssl=tls.context if tls else None, backlog=_BACKLOG
        )
        for bmc, listener in zip(bmcs, listeners, strict=True)
    ]
    try:
        await until.wait()
    finally:
        for server in servers:
            server.close()
        for connection in list(connections):
            connection.close()


@contextlib.contextmanager
def serving(bmcs: Sequence[SimulatedBmc], *, tls: Tls | None, port: int = 0) -> Iterator[list[Served]]:
    """Serve BMCs from a thread of its own while the block runs; for tests and other programs."""
    listeners = listen(len(bmcs), port)
    loop = asyncio.new_event_loop()
    until = asyncio.Event()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(serve(bmcs, listeners, tls, until)),
        name="simulated BMCs",
        daemon=True,
    )
    thread.start()
    try:
        yield addresses(bmcs, listeners, tls)
    finally:
        loop.call_soon_threadsafe(until.set)
        thread.join()
        loop.close()


@contextlib.contextmanager
def serve_many(
    dumps: Sequence[Dump], count: int, *, tls: Tls | None, port: int = 0, **options: Any
) -> Iterator[list[Served]]:
    """Serve so many BMCs over some dumps while the block runs.

    Args:
        options: As SimulatedBmc takes them.
    """
    with serving(many(dumps, count, **options), tls=tls, port=port) as served:
        yield served


def addresses(
    bmcs: Sequence[SimulatedBmc], listeners: Sequence[socket.socket], tls: Tls | None
) -> list[Served]:
    """Where each BMC listens."""
    scheme = "https" if tls else "http"
    ports = [listener.getsockname()[1] for listener in listeners]
    return [Served(f"{scheme}://{LOOPBACK}:{port}", port, bmc) for bmc, port in zip(bmcs, ports, strict=True)]


def _factory(bmc: SimulatedBmc, connections: set[Connection]) -> Any:
    return lambda: Connection(bmc.handle, connections)


def _allow_files(count: int) -> None:
    needed = count * _FILES_A_BMC + _FILES_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise UsageError(
                f"{count} BMCs need {needed} open files, this machine allows {hard}", hint="raise ulimit -Hn"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
