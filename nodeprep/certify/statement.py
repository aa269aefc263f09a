"""in-toto Statement v1 in a DSSE envelope: how a certificate is signed and read back."""

from __future__ import annotations

import json
from typing import Any

from nodeprep.certify.envelope import read_envelope
from nodeprep.certify.identity import identity_digest
from nodeprep.certify.signing import SigningKey
from nodeprep.errors import DocumentError, UsageError
from nodeprep.model.certificate import PREDICATE_TYPE, Certificate
from nodeprep.model.codec import encode, from_builtins, to_builtins
from nodeprep.model.envelope import PAYLOAD_TYPE

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"


def build_statement(certificate: Certificate) -> dict[str, Any]:
    """The statement about one node; its subject is the digest of the node's hardware identity."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": certificate.host, "digest": {"sha256": identity_digest(certificate.identity)}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": to_builtins(certificate),
    }


def sign_certificate(certificate: Certificate, key: SigningKey) -> dict[str, Any]:
    """A DSSE envelope, as plain JSON data.

    Raises:
        UsageError: The key is of the other kind: a simulated key signs simulated certificates only,
            and a real key real ones only.
    """
    if certificate.simulated and not key.simulated:
        raise UsageError(
            f"the certificate of {certificate.host} is simulated and the key {key.path} is not",
            hint="simulated certificates are signed with the simulated key; leave --key out",
        )
    if key.simulated and not certificate.simulated:
        raise UsageError(
            f"the key {key.path} signs simulated certificates only, and that of {certificate.host} is real",
            hint="leave --key out, or name a key for real nodes",
        )
    return key.sign(encode(build_statement(certificate)), PAYLOAD_TYPE)


def read_unverified(data: bytes, *, source: str) -> tuple[Certificate, str]:
    """What a certificate file says, and the id of the key it names; its signature is not checked.

    For showing only: whoever decides something by a certificate asks `verify`.

    Raises:
        DocumentError: It is not a certificate this version can read.
    """
    hint = "a certificate is a DSSE envelope in JSON, as certify writes it"
    try:
        envelope = read_envelope(data)
        statement = json.loads(envelope.payload)
        predicate, found = statement["predicate"], statement["predicateType"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"{source}: not a certificate: {error}", hint=hint) from error
    if found != PREDICATE_TYPE:
        raise DocumentError(f"{source}: not a certificate of a node but {found}", hint=hint)
    return from_builtins(predicate, Certificate, source=source), envelope.key_id
