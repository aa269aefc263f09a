"""What an answer of HTTP means: good, later, or which refusal."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeprep.bmc.redfish.errors import (
    LicenceNeeded,
    LockedDown,
    Malformed,
    Missing,
    PasswordNeeded,
    PreconditionFailed,
    RedfishError,
    Refused,
)
from nodeprep.bmc.redfish.messages import Message, read_messages

# Bytes of an answer, unpacked. The largest seen is a registry of 0.8 MB.
MOST_BYTES = 64 << 20
_LATER_STATUS = frozenset({429, 503})
# Dell: iDRAC not ready, and busy. HPE: the host is in POST. The standard: the service itself.
# Source: quadsproject/badfish#129 (a 400, at a hundred nodes), HPE iLO 5 error messages, Base registry 1.19.
_LATER_KEYS = frozenset(
    {
        "SWC0700",
        "SYS518",
        "UnableToModifyDuringSystemPOST",
        "ServiceTemporarilyUnavailable",
        "ServiceShuttingDown",
    }
)
# HPE's, too: in POST for a setting, but for a reset: not in this state of the power.
_LATER_FOR_SETTINGS = "InvalidOperationForSystemState"
_LATER_WORDS = re.compile(
    r"not (?:yet )?ready|still (?:starting|initiali[sz]ing)|temporarily unavailable|try again later",
    re.IGNORECASE,
)
_LICENCE = re.compile(r"licen[cs]e", re.IGNORECASE)
_LOCKDOWN = re.compile(r"lock[\s-]?(?:ed[\s-]?)?down", re.IGNORECASE)
_PASSWORD = re.compile(r"\b(?:bios|setup|uefi|administrator)\b[^.]{0,30}password", re.IGNORECASE)
_PASSWORD_KEYS = frozenset({"BIOSPasswordRequired", "BiosPasswordRequired", "InvalidBIOSPassword"})
_PRECONDITION = re.compile(r"precondition", re.IGNORECASE)
_REFUSING = frozenset({400, 401, 403, 405, 409})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a BMC said to a request, good or bad.

    Attributes:
        body: The JSON object; empty for an answer without one.
        location: Path of the header Location on the BMC, for example of a job or a session; "" for none.
        if_match: The value that was taken; "" when none was sent.
        after_lost_answer: An earlier try of the same request got no answer, and may have been carried out.
    """

    method: str
    uri: str
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    messages: tuple[Message, ...] = ()
    location: str = ""
    if_match: str = ""
    after_lost_answer: bool = False

    @property
    def good(self) -> bool:
        """Whether it is one of 2xx."""
        return 200 <= self.status < 300

    def told(self, key: str) -> bool:
        """Whether the BMC gave this message, for example "SystemResetRequired"."""
        return any(message.key == key for message in self.messages)

    def asks_for_patience(self) -> bool:
        """Whether the same request may go through a little later, and nothing was done now."""
        if self.good:
            return False
        if self.method != "POST" and self.told(_LATER_FOR_SETTINGS):
            return True
        if self.status in _LATER_STATUS or any(message.key in _LATER_KEYS for message in self.messages):
            return True
        # AMI says it in words only, under the key of any other error.
        return self.status in _REFUSING and any(_LATER_WORDS.search(one.text) for one in self.messages)

    def wants_other_etag(self) -> bool:
        """Whether it is If-Match that was refused, or missed."""
        if self.status in (412, 428):
            return True
        return self.status in _REFUSING and any(
            _PRECONDITION.search(f"{message.id} {message.text}") for message in self.messages
        )

    def words(self) -> str:
        """What the BMC said, for people."""
        return "; ".join(str(message) for message in self.messages) or "no reason given"


def read_body(data: bytes, uri: str) -> Mapping[str, Any]:
    """The JSON object of an answer.

    Raises:
        Malformed: It is none.
    """
    if data.startswith(b"\x1f\x8b"):
        # Some registries are stored packed, and sent so without saying it.
        data = _unpacked(data, uri)
    if not data.strip():
        return {}
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{uri} is not JSON: {error}", uri=uri) from error
    if not isinstance(value, dict):
        raise Malformed(f"{uri} is not a JSON object but {type(value).__name__}", uri=uri)
    return _encodable(value, data)


def refusal(answer: Answer, who: str) -> RedfishError:
    """The error for an answer that is not good."""
    said = f"the {who} refused {answer.method} {answer.uri}: {answer.words()} (HTTP {answer.status})"
    about: dict[str, Any] = {
        "uri": answer.uri,
        "status": answer.status,
        "messages": answer.messages,
        "after_lost_answer": answer.after_lost_answer,
        "methods": frozenset(re.findall(r"[A-Z]+", answer.headers.get("allow", "").upper())),
    }
    if answer.status in (404, 410):
        return Missing(f"the {who} has no {answer.uri}", **about)
    if answer.wants_other_etag():
        return PreconditionFailed(said, **about)
    words = " ".join(f"{message.id} {message.text}" for message in answer.messages)
    if answer.status in _REFUSING and _LICENCE.search(words):
        return LicenceNeeded(
            said, hint="the BMC needs another licence for this; trying again is no use", **about
        )
    if answer.status in _REFUSING and _LOCKDOWN.search(words):
        return LockedDown(said, hint="lift the lockdown of the system's configuration first", **about)
    if answer.status in _REFUSING and (
        _PASSWORD.search(words) or any(answer.told(key) for key in _PASSWORD_KEYS)
    ):
        return PasswordNeeded(said, hint="the BIOS has a setup password", **about)
    return Refused(said, **about)


def messages_of(data: bytes, clean: Any) -> tuple[Message, ...]:
    """The messages of an answer that is not good; one that cannot be read has its first words as one."""
    try:
        return read_messages(read_body(data, ""), clean)
    except Malformed:
        text = re.sub(r"<[^>]*>|\s+", " ", data[:2000].decode("utf-8", "replace"))
        text = re.sub(r"\s+", " ", text).strip()[:200]
        return (Message("", clean(text)),) if text else ()


def _encodable(value: dict[str, Any], data: bytes) -> dict[str, Any]:
    """The value with a mark for each half of a UTF-16 pair: no document could be written with one."""
    if b"\\ud" not in data.lower():
        return value
    text = json.dumps(value, ensure_ascii=False)
    whole: dict[str, Any] = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return whole


def _unpacked(data: bytes, uri: str) -> bytes:
    packed = zlib.decompressobj(wbits=31)
    try:
        plain = packed.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise Malformed(f"{uri} is packed and damaged: {error}", uri=uri) from error
    if packed.unconsumed_tail or not packed.eof:
        raise Malformed(f"{uri} is packed, and cut off or far too large", uri=uri)
    return plain
