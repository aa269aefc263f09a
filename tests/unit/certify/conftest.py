"""A healthy node, its probe, and a way to change one thing about either."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from certify_samples import certificate_for, changed, passed

from nodeprep.certify.signing import SigningKey
from nodeprep.checks import Context
from nodeprep.model.certificate import Certificate
from nodeprep.model.codec import decode
from nodeprep.model.facts import NodeFacts
from nodeprep.model.policy import GpuPolicy, Policy
from nodeprep.model.probe import ProbeResult
from nodeprep.profiles import SiteSettings, resolve

HERE = Path(__file__).parent
FACTS = HERE.parents[1] / "cases" / "knobs" / "facts.json"
# The limit that this node has, now and after its next boot.
POLICY = Policy(gpu=GpuPolicy(power_limit="650W"))

Facts = Callable[..., NodeFacts]


@pytest.fixture
def facts() -> Facts:
    """The facts of a healthy node, changed by JSON pointer."""

    def build(changes: dict[str, Any] | None = None) -> NodeFacts:
        document = changed(json.loads(FACTS.read_text()), changes or {})
        return decode(json.dumps(document), NodeFacts, source="facts")

    return build


@pytest.fixture
def probe() -> Callable[..., ProbeResult]:
    """The result of a clean probe, changed by JSON pointer."""

    def build(changes: dict[str, Any] | None = None) -> ProbeResult:
        document = changed(json.loads((HERE / "probe.json").read_text()), changes or {})
        return decode(json.dumps(document), ProbeResult, source="probe")

    return build


@pytest.fixture
def context(facts: Facts, probe: Callable[..., ProbeResult]) -> Context:
    before = facts()
    spec = resolve("node07", SiteSettings(policy=POLICY), before, today=date(2026, 11, 30))
    return Context(spec=spec, before=before, after=facts(), probe=probe())


@pytest.fixture
def certificate(context: Context) -> Certificate:
    """A certified node's certificate."""
    return certificate_for(context, (passed("ecc_on"), passed("gpu_presence")))


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.load_or_create(tmp_path / "keys" / "nodeprep.pem", simulated=False)


@pytest.fixture
def simulated_key(tmp_path: Path) -> SigningKey:
    return SigningKey.load_or_create(tmp_path / "keys" / "simulated.pem", simulated=True)
