"""The entries of one event log over Redfish: in pages, in either order, whole or as links.

Seen: Dell gives the newest first, 50 a page; HPE all at once, the oldest first, as links unless they are
asked for (`$expand=.`), and counts a repeated event on its old entry; AMI and OpenBMC the oldest first, in
pages.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.resource import Resource, own_path

# A log of a BMC has some hundred to some thousand entries; Dell's Lclog has up to 500000.
MOST_PAGES = 20
_NEXT = ("Members@odata.nextLink", "@odata.nextLink")
_COUNTED = ("Count", "Updated")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry.

    Attributes:
        id: The last part of its URI, or its Id.
        body: Empty for an entry that is only a link.
    """

    id: str
    uri: str
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Changes when the entry says something else; "" for one that is only a link."""
        if not self.body:
            return ""
        said = [self.body.get(name) for name in ("Created", "EventTimestamp", "Message", "MessageId")]
        oem = self.body.get("Oem")
        for own in oem.values() if isinstance(oem, Mapping) else ():
            said += [own.get(name) for name in _COUNTED] if isinstance(own, Mapping) else []
        return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a log.

    Attributes:
        following: URI of the next one; "" for the last.
        total: Entries of the whole log, where the BMC counts them.
    """

    entries: tuple[Entry, ...]
    following: str
    total: int


def read_page(connection: Connection, uri: str) -> Page:
    """A page of entries; those that are only links are asked for whole, where the service can.

    Raises:
        RedfishError: It is none, or refused.
        BmcUnreachable: No answer.
    """
    page = _page(connection.get(uri))
    if page.entries and not any(entry.body for entry in page.entries) and _expands(connection.root):
        page = _page(connection.get(f"{uri}{'&' if '?' in uri else '?'}$expand=."))
    return page


def pages(connection: Connection, first: Page) -> Iterator[Page]:
    """A page and those that follow it, MOST_PAGES at most."""
    yield first
    seen = {first.following}
    page = first
    for _ in range(MOST_PAGES - 1):
        if not page.following:
            return
        page = read_page(connection, page.following)
        yield page
        if page.following in seen:
            return
        seen.add(page.following)


def newest_first(entries: Sequence[Entry]) -> bool:
    """Whether a page goes back in time, by its times and its numbers together.

    One entry of a clock that was set in between is outvoted by the others' numbers.
    """
    votes = 0
    for key in (_time, _number):
        values = [value for entry in entries if (value := key(entry)) is not None]
        votes += sum((later > earlier) - (later < earlier) for earlier, later in itertools.pairwise(values))
    return votes < 0


def _page(resource: Resource) -> Page:
    listed = next(
        (found for name in ("Members", "Items") if (found := resource.find(list, name)) is not None), None
    )
    if listed is None:
        # An old form, links only; and what is no collection is told so.
        entries = [Entry(_last(uri), uri) for uri in resource.members()]
    else:
        entries = [_entry(resource, member, place) for place, member in enumerate(listed)]
    following = next((path for name in _NEXT if (path := own_path(resource.body.get(name)))), "")
    total = resource.body.get("Members@odata.count")
    counted = total if isinstance(total, int) and not isinstance(total, bool) else 0
    return Page(tuple(entries), following, max(counted, len(entries)))


def _entry(resource: Resource, member: Any, place: int) -> Entry:
    whole = isinstance(member, Mapping) and any(
        name in member for name in ("Message", "MessageId", "Created")
    )
    uri = "" if whole and "@odata.id" not in member else resource.as_link(member, "Members", place)
    name = member.get("Id") if whole else None
    return Entry(name if isinstance(name, str) and name else _last(uri), uri, member if whole else {})


def _expands(root: Resource) -> bool:
    features = root.body.get("ProtocolFeaturesSupported")
    able = features.get("ExpandQuery") if isinstance(features, Mapping) else None
    return isinstance(able, Mapping) and able.get("NoLinks") is True


def _last(uri: str) -> str:
    return uri.rstrip("/").rsplit("/", 1)[-1]


def _time(entry: Entry) -> float | None:
    value = entry.body.get("Created")
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def _number(entry: Entry) -> float | None:
    return float(entry.id) if entry.id.isdecimal() and len(entry.id) < 16 else None
