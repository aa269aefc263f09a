from __future__ import annotations

import contextlib
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.bmc.ipmi_sim import REQUIRE, Bmc, Relay


@pytest.fixture
def make_bmc(tmp_path: Path) -> Iterator[Callable[..., Bmc]]:
    missing = [name for name in ("ipmi_sim", "ipmitool") if shutil.which(name) is None]
    if missing and os.environ.get(REQUIRE) != "1":
        pytest.skip(f"{' and '.join(missing)} not installed (Debian: openipmi, ipmitool)")
    made: list[Bmc] = []

    def make(*, log_entries: int = 100) -> Bmc:
        folder = tmp_path / f"bmc{len(made)}"
        folder.mkdir()
        made.append(Bmc(folder, log_entries=log_entries))
        return made[-1]

    yield make
    for bmc in made:
        bmc.end()


@pytest.fixture
def bmc(make_bmc: Callable[..., Bmc]) -> Bmc:
    return make_bmc()


@pytest.fixture
def relay(bmc: Bmc) -> Iterator[Relay]:
    relay = Relay(bmc.port)
    yield relay
    relay.end()


@pytest.fixture
def conversations() -> Callable[[], list[str]]:
    """Command lines of the processes that speak to BMCs for this process, with their environments."""

    def find() -> list[str]:
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            with contextlib.suppress(OSError, IndexError):
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                line = (folder / "cmdline").read_bytes()
                if int(parent) == os.getpid() and b"child.py" in line:
                    found.append((line + (folder / "environ").read_bytes()).decode())
        return found

    return find


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes every packet and never answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])
