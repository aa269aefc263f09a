"""Bytes of a log as text that can be matched and quoted."""

from __future__ import annotations

import re

MAX_QUOTE = 2000
"""Characters of a line that are kept for quoting; a dump of a whole register file helps nobody."""

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(data: bytes) -> str:
    """Text without colours; other control characters and broken UTF-8 replaced."""
    text = data.decode("utf-8", "replace")
    if text.isprintable():
        return text
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _CONTROL.sub("\ufffd", text.rstrip("\r\n\x00"))


def quote(text: str) -> str:
    """The text as evidence shows it."""
    return text if len(text) <= MAX_QUOTE else text[:MAX_QUOTE] + " [cut]"
