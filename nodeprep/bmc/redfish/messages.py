"""What a BMC says in words: @Message.ExtendedInfo, wherever it stands in an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

INFO = "@Message.ExtendedInfo"
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        id: As sent, for example "Base.1.11.PropertyUnknown" or "IDRAC.2.8.SWC0700".
        arguments: As text.
        about: The properties it speaks of, as sent ("#/Attributes/ProcX2Apic"), or the property it stands at.
    """

    id: str
    text: str = ""
    arguments: tuple[str, ...] = ()
    severity: str = ""
    resolution: str = ""
    about: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The id without registry and version: "PropertyUnknown", "SWC0700"."""
        return self.id.rsplit(".", 1)[-1]

    def __str__(self) -> str:
        words = self.text or ", ".join(self.arguments)
        return f"{words} ({self.id})" if words and self.id else words or self.id


def read_messages(body: Any, clean: Callable[[str], str] = str) -> tuple[Message, ...]:
    """All messages of an answer, each once, in their order.

    They stand under "error", at the top, or beside the property they are about ("X@Message.ExtendedInfo").

    Args:
        clean: Applied to each text; takes secrets out that a BMC echoes.
    """
    return tuple(dict.fromkeys(_walk(body, "", clean, 0)))


def _walk(value: Any, at: str, clean: Callable[[str], str], depth: int) -> Iterator[Message]:
    if not isinstance(value, Mapping) or depth > _DEEPEST:
        return
    for key, inner in value.items():
        if isinstance(key, str) and key.endswith(INFO):
            about = key.removesuffix(INFO) or at
            yield from _listed(inner, about, clean)
        elif key == "error" and isinstance(inner, Mapping) and INFO not in inner:
            # Only code and message: what bare servers and old firmware send.
            code, text = _text(inner.get("code")), _text(inner.get("message"))
            if code or text:
                yield Message(clean(code), clean(text))
        else:
            yield from _walk(inner, "" if key == "error" else str(key), clean, depth + 1)


def _listed(value: Any, about: str, clean: Callable[[str], str]) -> Iterator[Message]:
    # Some send one message where the schema has a list of them.
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, str):
            yield Message("", clean(entry))
        elif isinstance(entry, Mapping):
            yield _message(entry, about, clean)


def _message(entry: Mapping[str, Any], about: str, clean: Callable[[str], str]) -> Message:
    related = entry.get("RelatedProperties")
    places = tuple(_text(place) for place in related) if isinstance(related, list) else ()
    arguments = entry.get("MessageArgs")
    return Message(
        # iLO 4 writes MessageID.
        clean(_text(entry.get("MessageId") or entry.get("MessageID"))),
        clean(_text(entry.get("Message"))),
        tuple(clean(_text(argument)) for argument in arguments) if isinstance(arguments, list) else (),
        _text(entry.get("MessageSeverity") or entry.get("Severity")),
        clean(_text(entry.get("Resolution"))),
        places or ((about,) if about else ()),
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value)
