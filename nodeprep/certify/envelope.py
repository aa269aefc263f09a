"""Reading a DSSE envelope, strictly: one file means one thing to every reader."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from nodeprep.model.codec import encode, encode_pretty


class NotJson(ValueError):
    """The file is not JSON, or gives a key twice."""


class NotDsse(ValueError):
    """It is JSON and not a DSSE envelope with one signature."""


class NotCanonical(ValueError):
    """It is a DSSE envelope, and not byte for byte as nodeprep writes one."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What an envelope holds; nothing of it is to be believed before the signature holds."""

    payload: bytes
    payload_type: str
    key_id: str
    signature: bytes


def read_envelope(data: bytes) -> Envelope:
    """The parts of an envelope.

    Accepted are the bytes that certify writes, and the canonical JSON of the same: the signature
    does not cover white space and escapes, so nothing else would see a byte of them change.

    Raises:
        NotJson: See there.
        NotDsse: See there.
        NotCanonical: See there.
    """
    try:
        envelope = json.loads(data, object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error
    try:
        (signature,) = envelope["signatures"]
        _only(envelope, {"payload", "payloadType", "signatures"})
        _only(signature, {"keyid", "sig"})
        found = Envelope(
            payload=_base64(envelope["payload"]),
            payload_type=_text(envelope["payloadType"]),
            key_id=_text(signature["keyid"]),
            signature=_base64(signature["sig"]),
        )
    except KeyError as error:
        raise NotDsse(f"it has no {error}") from error
    except (TypeError, ValueError) as error:
        raise NotDsse(str(error)) from error
    written = {
        "payload": envelope["payload"],
        "payloadType": found.payload_type,
        "signatures": [{"keyid": found.key_id, "sig": signature["sig"]}],
    }
    if data not in (encode_pretty(written), encode(written)):
        raise NotCanonical("it was reformatted: its white space, escapes or order are not as written")
    return found


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers must not see two different envelopes in one file."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _only(part: Any, keys: set[str]) -> None:
    if set(part) != keys:
        raise ValueError(f"its keys are {sorted(part)}, not {sorted(keys)}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {type(value).__name__}")
    value.encode()  # half a surrogate pair is JSON and no text
    return value


def _base64(value: Any) -> bytes:
    """Strict: exactly one text stands for given bytes, so that no changed byte goes unseen."""
    text = _text(value)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not base64: {error}") from error
    if base64.b64encode(data).decode() != text:
        raise ValueError("not canonical base64")
    return data
