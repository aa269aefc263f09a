"""ETags as BMCs write them, and the If-Match values that are worth a try.

The tag is that of the resource that is written (the settings resource, not Bios, and not the ETag inside
@Redfish.Settings, which tells what was last applied).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ANY = "*"
# Not a tag of anything: an AMI firmware writes it into every answer that has none.
_DUMMIES = frozenset({"dummyetag"})


def read_etag(header: str | None, body: Mapping[str, Any]) -> str:
    """The tag of an answer exactly as the BMC wrote it; "" when there is none.

    Args:
        header: The header ETag; where it is missing or empty, @odata.etag of the body speaks.
    """
    written = body.get("@odata.etag")
    for candidate in (header, written):
        if isinstance(candidate, str) and candidate.strip():
            text = candidate.strip()
            # What no header can carry cannot be sent back.
            sendable = text.isascii() and text.isprintable()
            if sendable and text.strip('"').casefold() not in _DUMMIES:
                return text
    return ""


def normalised(etag: str) -> str:
    """The tag in the form of RFC 9110, weak ones still weak; "" when no tag can be read in it."""
    # Source: community.general#3268: ""abc"", and other firmware W/""abc"" and "W/"abc"".
    text = etag.strip()
    weak = re.match(r'"*W/', text, re.IGNORECASE) is not None
    tag = re.sub(r'^"*(?:W/)?"*|"*$', "", text, flags=re.IGNORECASE)
    if not tag or '"' in tag:
        return ""
    return f'{"W/" if weak else ""}"{tag}"'


def candidates(etag: str) -> tuple[str, ...]:
    """What to send as If-Match, in this order; "" means no header.

    As given; in the form of the standard; the strong tag of a weak one; any. The first three keep the
    protection against a writer in between, so "*" (the only one that some AMI firmware takes) comes last.
    """
    if not etag:
        return ("", ANY)
    form = normalised(etag)
    # Source: ansible-collections/community.general#6433: W/"n" gave "precondition required", "n" gave 412.
    strong = re.sub(r"^W/", "", form)
    return tuple(dict.fromkeys(value for value in (etag, form, strong, ANY) if value))
