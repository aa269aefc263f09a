"""Does a certificate hold? The signature is answered first; nothing of what it signs is read before.

Every way to be refused has its own short name, message and hint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from nodeprep.certify import waivers
from nodeprep.certify.envelope import Envelope, NotCanonical, NotDsse, NotJson, read_envelope
from nodeprep.certify.identity import identity_digest
from nodeprep.certify.signing import PublicKey
from nodeprep.certify.statement import STATEMENT_TYPE
from nodeprep.errors import DocumentError, ExitCode
from nodeprep.model.certificate import PREDICATE_TYPE, Certificate
from nodeprep.model.codec import from_builtins
from nodeprep.model.envelope import PAYLOAD_TYPE
from nodeprep.model.outputs import CertificateCheck

# Controllers' clocks differ by seconds; a certificate from next week is something else.
_CLOCK_TOLERANCE = timedelta(minutes=5)
_SCHEMA = "nodeprep.certificate/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What looking at a certificate found.

    Attributes:
        check: The document that `cert verify --json` prints.
        hint: What to do about a refusal.
        exit_code: 0 accepted; 20 refused; 21 a good signature on a simulated or inconclusive one.
        certificate: None unless the signature holds and the document can be read.
    """

    check: CertificateCheck
    hint: str
    exit_code: ExitCode
    certificate: Certificate | None


class _Refused(Exception):
    """Ends the look at a certificate, with the answer."""

    def __init__(
        self, problem: str, message: str, hint: str, exit_code: ExitCode = ExitCode.REJECTED
    ) -> None:
        super().__init__(message)
        self.problem = problem
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


def verify(
    data: bytes, key: PublicKey, *, now: datetime, file: str = "", allow_simulated: bool = False
) -> Verified:
    """Signature, then document, then verdict and validity.

    Args:
        data: The certificate file's bytes.
        key: The key it must be signed with.
        now: The present time, with a time zone.
        file: Name for messages.
        allow_simulated: Accept a simulated certificate that is otherwise good.
    """
    look = _Look(key, file)
    try:
        look.open(data)
        look.judge(now, allow_simulated=allow_simulated)
    except _Refused as refusal:
        return look.answer(refusal)
    return look.answer(None)


class _Look:
    """What is known so far, so that a refusal can tell it too."""

    def __init__(self, key: PublicKey, file: str) -> None:
        self._key = key
        self._file = file
        self._key_id = ""
        self._signature_valid = False
        self._certificate: Certificate | None = None

    def open(self, data: bytes) -> None:
        """Checks the signature, then reads what it signs."""
        envelope = _read_envelope(data)
        self._key_id = envelope.key_id
        self._check_signature(envelope)
        self._signature_valid = True
        self._certificate = _read_certificate(envelope)

    def judge(self, now: datetime, *, allow_simulated: bool) -> None:
        """Key kind, verdict, validity."""
        certificate = self._certificate
        if certificate is None:
            raise RuntimeError("judged before it was opened")
        if self._key.simulated and not certificate.simulated:
            raise _Refused(
                "simulated_key",
                "a key for simulated documents signed a certificate that claims to be real",
                "do not trust it: nodeprep refuses to sign so; ask who made it",
            )
        issued, expires = _times(certificate)
        if certificate.verdict == "rejected":
            why = _first(certificate)
            raise _Refused(
                "rejected",
                f"the signature holds, and the verdict is rejected{why}",
                "repair the node and certify anew",
            )
        _check_validity(issued, expires, now)
        if certificate.verdict != "certified":
            raise _Refused(
                "inconclusive",
                f"the signature holds, and the verdict is {certificate.verdict}{_first(certificate)}",
                "remove what kept the answer open and certify anew",
                ExitCode.INCONCLUSIVE,
            )
        if certificate.simulated and not allow_simulated:
            raise _Refused(
                "simulated",
                "the signature holds, and the certificate is simulated: it says nothing about a real node",
                "add --allow-simulated where a simulated rack is meant",
                ExitCode.INCONCLUSIVE,
            )

    def answer(self, refusal: _Refused | None) -> Verified:
        """The outcome as a document."""
        certificate = self._certificate
        check = CertificateCheck(
            file=self._file,
            accepted=refusal is None,
            signature_valid=self._signature_valid,
            problem=refusal.problem if refusal else "",
            message=refusal.message if refusal else _accepted(certificate),
            host=certificate.host if certificate else "",
            verdict=certificate.verdict if certificate else "",
            simulated=certificate.simulated if certificate else None,
            expires=certificate.expires if certificate else "",
            key_id=self._key_id,
            waivers=waivers.described(certificate.checks) if certificate else (),
        )
        return Verified(
            check=check,
            hint=refusal.hint if refusal else "",
            exit_code=refusal.exit_code if refusal else ExitCode.OK,
            certificate=certificate,
        )

    def _check_signature(self, envelope: Envelope) -> None:
        if envelope.key_id != self._key.key_id:
            raise _Refused(
                "wrong_key",
                f"signed with another key: {envelope.key_id[:16]}..., not {self._key.key_id[:16]}...",
                "name the public key of the controller that issued it with --key",
            )
        if not self._key.holds(envelope.payload, envelope.payload_type, envelope.signature):
            raise _Refused(
                "bad_signature",
                "the signature does not hold: the certificate was changed after it was signed",
                "get the file again from where it was issued; do not edit certificates",
            )


def _read_envelope(data: bytes) -> Envelope:
    hint = "a certificate is a DSSE envelope in JSON, as certify writes it"
    try:
        return read_envelope(data)
    except NotJson as error:
        raise _Refused("not_json", f"not a certificate: not JSON: {error}", hint) from error
    except NotDsse as error:
        raise _Refused("not_dsse", f"not a certificate: not a DSSE envelope: {error}", hint) from error
    except NotCanonical as error:
        raise _Refused(
            "not_canonical",
            f"not the file that certify wrote: {error}",
            "do not edit or reformat certificates; get the file again from where it was issued",
        ) from error


def _read_certificate(envelope: Envelope) -> Certificate:
    """The predicate. The signature holds, so whatever is odd here was signed so."""
    upgrade = "read it with the nodeprep version that made it, or a later one"
    if envelope.payload_type != PAYLOAD_TYPE:
        raise _Refused("unsupported_schema", f"signs something else: {envelope.payload_type!r}", upgrade)
    try:
        statement = json.loads(envelope.payload)
        kind, predicate_type = statement["_type"], statement["predicateType"]
        predicate, subjects = statement["predicate"], statement["subject"]
        schema = predicate["schema"]
    except (KeyError, TypeError, ValueError) as error:
        raise _Refused("malformed", f"not an in-toto statement about a node: {error!r}", upgrade) from error
    found = (kind, predicate_type, schema)
    if found != (STATEMENT_TYPE, PREDICATE_TYPE, _SCHEMA):
        raise _Refused(
            "unsupported_schema", f"this version cannot read {' '.join(str(part) for part in found)}", upgrade
        )
    try:
        certificate = from_builtins(predicate, Certificate, source="certificate")
    except DocumentError as error:
        raise _Refused("malformed", error.message, upgrade) from error
    digest = identity_digest(certificate.identity)
    if subjects != [{"name": certificate.host, "digest": {"sha256": digest}}]:
        raise _Refused(
            "subject_mismatch",
            "the statement's subject is not the node its certificate describes",
            "do not trust it: nodeprep does not issue such statements",
        )
    return certificate


def _times(certificate: Certificate) -> tuple[datetime, datetime]:
    """When it was issued and when it ends."""
    try:
        issued = datetime.fromisoformat(certificate.issued)
        expires = datetime.fromisoformat(certificate.expires)
    except ValueError as error:
        raise _Refused(
            "malformed", f"its times cannot be read: {error}", "ask for a new certificate"
        ) from error
    if issued.tzinfo is None or expires.tzinfo is None:
        raise _Refused("malformed", "its times name no time zone", "ask for a new certificate")
    return issued, expires


def _check_validity(issued: datetime, expires: datetime, now: datetime) -> None:
    if now >= expires:
        raise _Refused(
            "expired", f"the certificate expired at {expires.isoformat()}", "certify the node anew"
        )
    if now < issued - _CLOCK_TOLERANCE:
        raise _Refused(
            "not_yet_valid",
            f"the certificate was issued at {issued.isoformat()}, which is yet to come",
            "compare the clocks of this machine and of the controller that issued it",
        )


def _accepted(certificate: Certificate | None) -> str:
    """What stands on somebody's word is said with the verdict, not in a table further down."""
    resting = waivers.summary(certificate.checks) if certificate else ""
    return "the signature holds and the node is certified" + (f", with {resting}" if resting else "")


def _first(certificate: Certificate) -> str:
    if not certificate.reasons:
        return ""
    more = len(certificate.reasons) - 1
    return f": {certificate.reasons[0]}" + (f" (and {more} more)" if more else "")
