"""Served BMCs for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from bios_site import SECRET, Site

from nodeprep.sim.bmc import SimulatedBmc, serving, tls_in
from nodeprep.workflows.home import Home


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Serves machines; the first one is n1."""
    monkeypatch.setenv("NODEPREP_BMC_PASSWORD", SECRET)
    with ExitStack() as stack:

        def make(*machines: SimulatedBmc, kind: type[Site] = Site, **more: Any) -> Site:
            tls = tls_in(tmp_path / "tls")
            served = stack.enter_context(serving(machines, tls=tls))
            names = [f"n{number}" for number in range(1, len(machines) + 1)]
            return kind(
                Home(tmp_path / "home"), tls, dict(zip(names, machines, strict=True)),
                {name: one.port for name, one in zip(names, served, strict=True)}, **more,
            )  # fmt: skip

        yield make
