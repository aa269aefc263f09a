"""What `nodeprep sim bmc` does: serve, say where, and end at once when told to."""

from __future__ import annotations

import asyncio
import itertools
import signal
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from nodeprep.model.outputs import ReadyBmc, ReadyBmcs
from nodeprep.sim.bmc.dump import read_dump
from nodeprep.sim.bmc.server import addresses, listen, many, serve
from nodeprep.sim.certificates import tls_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to serve.

    Attributes:
        port: The first BMC's; 0 takes free ones.
        tls_folder: Where the certificates are, or are to be; None is a folder that goes with the server.
        plain: Without TLS.
        post_s: Seconds that a host spends in POST.
    """

    dumps: Sequence[Path]
    count: int
    port: int
    user: str
    password: str = field(repr=False)
    faults: Sequence[str] = ()
    tls_folder: Path | None = None
    plain: bool = False
    post_s: float = 2.0


def run(asked: Asked, ready: Callable[[ReadyBmcs], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        ready: Called once all BMCs can be spoken to.

    Raises:
        UsageError: A dump, a fault, a port or a folder that cannot be used.
    """
    dumps = [read_dump(path) for path in asked.dumps]
    options = {"user": asked.user, "password": asked.password, "faults": asked.faults, "post_s": asked.post_s}
    bmcs = many(dumps, asked.count, **options)
    with ExitStack() as stack:
        tls = None
        if not asked.plain:
            folder = asked.tls_folder or Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="sim-bmc-"))
            )
            tls = tls_in(folder)
        listeners = listen(len(bmcs), asked.port)
        served = addresses(bmcs, listeners, tls)
        document = ReadyBmcs(
            url=served[0].url,
            ca=str(tls.ca) if tls else "",
            fingerprint=tls.fingerprint if tls else "",
            user=asked.user,
            faults=tuple(asked.faults),
            bmcs=tuple(
                ReadyBmc(url=one.url, dump=dump.source, vendor=one.bmc.conduct.vendor)
                for one, dump in zip(served, itertools.cycle(dumps), strict=False)
            ),
        )

        async def until_told() -> None:
            until = asyncio.Event()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, until.set)
            # The sockets listen already: who connects now is served in a moment.
            loop.call_soon(ready, document)
            await serve(bmcs, listeners, tls, until)

        asyncio.run(until_told())
