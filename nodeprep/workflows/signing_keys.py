"""The signing keys of a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nodeprep.certify.signing import SigningKey
from nodeprep.model.certificate import Certificate
from nodeprep.model.facts import NodeFacts
from nodeprep.workflows.home import Home


class SigningKeys:
    """The signing keys of a run: a real one, a simulated one, each opened before any load runs.

    A run that ends after an hour of load with "cannot write the key" would waste the hour.
    """

    def __init__(self, home: Home, given: Path | None) -> None:
        self._given = given
        self._folder = home.keys
        self._keys: dict[bool, SigningKey] = {}

    def open_for(self, facts: Iterable[NodeFacts]) -> None:
        """Opens the keys that certificates about these nodes will need."""
        for simulated in sorted({each.simulated for each in facts}):
            self._open(simulated=simulated)

    def for_certificate(self, certificate: Certificate) -> SigningKey:
        """The key of the certificate's own kind."""
        # A real node whose probe computed on the CPU ends with a simulated certificate.
        return self._keys.get(certificate.simulated) or self._open(simulated=certificate.simulated)

    def _open(self, *, simulated: bool) -> SigningKey:
        name = "simulated" if simulated else "nodeprep"
        path = self._given or self._folder / f"{name}.pem"
        key = SigningKey.load_or_create(path, simulated=simulated, create=self._given is None)
        self._keys[simulated] = key
        return key
