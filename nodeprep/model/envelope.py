"""The DSSE envelope a certificate travels in, as JSON (https://github.com/secure-systems-lab/dsse)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PAYLOAD_TYPE = "application/vnd.in-toto+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeSignature:
    """One signature: which key, and the signature in base64."""

    keyid: str
    sig: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedEnvelope:
    """The whole file. nodeprep writes exactly one signature and accepts exactly one."""

    payload: str
    """Base64 of an in-toto Statement v1."""
    payloadType: Literal["application/vnd.in-toto+json"]  # noqa: N815  DSSE's own spelling
    signatures: tuple[EnvelopeSignature, ...]
