"""Reading certificates back: files, keys, and the node as it is now."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nodeprep.certify import drift as drifting
from nodeprep.certify import verify as verifying
from nodeprep.certify.signing import PublicKey
from nodeprep.certify.statement import read_unverified
from nodeprep.errors import ExitCode, Inconclusive, Rejected, Unreachable, UsageError
from nodeprep.model.certificate import Certificate
from nodeprep.model.outputs import Drift
from nodeprep.workflows.home import Home
from nodeprep.workflows.session import Session


def read_file(path: Path) -> bytes:
    """A certificate file's bytes.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        hint = "certify writes them to certificates/ in its run folder" if error.errno == errno.ENOENT else ""
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=hint) from error


def read_unchecked(path: Path) -> tuple[Certificate, str]:
    """The certificate and the id of the key that is said to have signed it, signature not checked.

    Raises:
        DocumentError: It is not a certificate.
    """
    return read_unverified(read_file(path), source=str(path))


def verify_file(path: Path, key: Path | None, home: Home, *, allow_simulated: bool) -> verifying.Verified:
    """Whether a certificate holds.

    Args:
        key: Public key file; None takes this controller's own.

    Raises:
        UsageError: A file cannot be read, or there is no key to check with.
    """
    data = read_file(path)
    public = PublicKey.load(key) if key is not None else _own_key(data, home)
    return verifying.verify(
        data, public, now=datetime.now(UTC), file=str(path), allow_simulated=allow_simulated
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """A certificate against its node."""

    drift: Drift
    exit_code: ExitCode


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate whose signature holds, and what `cert verify` says of it."""

    certificate: Certificate
    looked: verifying.Verified


def signed_certificate(path: Path, key: Path | None, home: Home) -> Signed:
    """The certificate whose signature holds, whatever its verdict and age: what drift compares with.

    Raises:
        Rejected: The signature does not hold, what it signs is no certificate, or the key was one
            for simulated nodes and the certificate claims to be of a real one.
        UsageError: As `verify_file`.
    """
    looked = verify_file(path, key, home, allow_simulated=True)
    if looked.certificate is None or not drifting.can_compare(looked.check):
        raise Rejected(f"{path}: {looked.check.message}", hint=looked.hint)
    return Signed(looked.certificate, looked)


def compare(session: Session, signed: Signed) -> Compared:
    """The node as it is now against its certificate.

    Raises:
        Unreachable, Inconclusive: The node cannot be observed.
    """
    observed = session.observe(session.hosts, label="now")
    for outcome in observed.failed.values():
        kind = Unreachable if outcome.state == "unreachable" else Inconclusive
        raise kind(f"{outcome.host}: {outcome.state}: {outcome.error}", hint=outcome.hint)
    (facts,) = observed.facts.values()
    drift = drifting.compare(signed.certificate, facts, signed.looked.check, now=datetime.now(UTC))
    return Compared(drift, drifting.exit_code(drift))


def _own_key(data: bytes, home: Home) -> PublicKey:
    """The key of this controller that the envelope names; the real one when it names neither.

    Which key is taken decides only what the refusal says: a key that did not sign never accepts.
    """
    own = [home.keys / f"{name}.pub" for name in ("nodeprep", "simulated")]
    keys = [PublicKey.load(path) for path in own if path.exists()]
    if not keys:
        raise UsageError(
            f"no key to check with: {home.keys} has none",
            hint="name the public key of the controller that issued it with --key",
        )
    return next((key for key in keys if key.key_id.encode() in data), keys[0])
