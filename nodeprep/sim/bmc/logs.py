"""Event logs: those that the dump names and does not hold are alive; one of them hears of resets."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from nodeprep.sim.bmc.dump import Dump, link_of, plain

_PAGE = 50
# Which log tells of the hardware, by the last part of its URI; the first that a BMC has.
_OF_HARDWARE = ("sel", "iml", "log1", "platformlog", "eventlog", "event", "lclog")


class Logs:
    """The event logs of one BMC.

    Args:
        newest_first: The order (iDRAC), else the oldest come first.
        links: Entries are links unless `$expand` asks for them (iLO).

    Attributes:
        main: URI of the entries of the log of the hardware; "" when there is none.
    """

    def __init__(
        self,
        dump: Dump,
        now: Callable[[], datetime.datetime],
        *,
        newest_first: bool = False,
        links: bool = False,
        capacity: int = 1000,
    ) -> None:
        self._now = now
        self._newest_first = newest_first
        self._links = links
        self._capacity = capacity
        self._logs: dict[str, list[dict[str, Any]]] = {uri: [] for uri in _entries(dump)}
        self._lower = {uri.lower(): uri for uri in self._logs}
        self._last_id = 0
        self.main = next(
            (uri for name in _OF_HARDWARE for uri in self._logs if uri.lower().endswith(f"/{name}/entries")),
            "",
        )

    def add(self, text: str, *, severity: str = "OK", log: str = "", **more: Any) -> None:
        """One more entry; the oldest goes when the log is full.

        Args:
            log: URI of its entries; by default the log of the hardware.
            more: Further properties.
        """
        uri = log or self.main
        if not uri:
            return
        self._last_id += 1
        name = str(self._last_id)
        entry = {
            "@odata.id": f"{uri}/{name}",
            "@odata.type": "#LogEntry.v1_4_0.LogEntry",
            "Id": name,
            "Name": f"Log Entry {name}",
            "EntryType": "SEL",
            "Created": self._now().isoformat(timespec="seconds"),
            "Severity": severity,
            "Message": text,
            **more,
        }
        entries = self._logs[uri]
        entries.append(entry)
        del entries[: -self._capacity]

    def change(self, **more: Any) -> None:
        """Writes into the newest entry of the log of the hardware, as iLO does with a repeated event."""
        self._logs[self.main][-1] |= more

    def clear(self) -> None:
        """Empties all of them."""
        for entries in self._logs.values():
            entries.clear()

    def body(self, path: str, query: str) -> dict[str, Any] | None:
        """The resource at a path; None when it is none of a live log."""
        bare = plain(path)
        uri = self._lower.get(bare.lower())
        if uri is not None:
            return self._page(uri, query)
        uri = self._lower.get(bare.rpartition("/")[0].lower())
        name = bare.rpartition("/")[2]
        return next((one for one in self._logs[uri] if one["Id"] == name), None) if uri else None

    def _page(self, uri: str, query: str) -> dict[str, Any]:
        entries = self._logs[uri][::-1] if self._newest_first else self._logs[uri]
        asked = parse_qs(query)
        skip = asked.get("$skip", ["0"])[0]
        start = int(skip) if skip.isdecimal() else 0
        end = len(entries) if self._links else start + _PAGE
        members: list[dict[str, Any]] = entries[start:end]
        if self._links and "$expand" not in asked:
            members = [{"@odata.id": entry["@odata.id"]} for entry in members]
        body = {
            "@odata.id": uri,
            "@odata.type": "#LogEntryCollection.LogEntryCollection",
            "Name": "Log Entries",
            "Members": members,
            "Members@odata.count": len(entries),
        }
        if end < len(entries):
            body["Members@odata.nextLink"] = f"{uri}?$skip={end}"
        return body


def _entries(dump: Dump) -> list[str]:
    """URIs of the entries that logs of the system and the manager name, and that are not in the dump."""
    found: dict[str, None] = {}
    for owner in (dump.system, dump.manager):
        collection = dump.body(dump.linked(dump.body(owner), "LogServices"))
        members = collection.get("Members")
        for member in members if isinstance(members, list) else []:
            entries = link_of(dump.body(dump.linked(member)), "Entries") if isinstance(member, dict) else ""
            if entries and dump.find(entries, any_case=True) is None:
                found[plain(entries)] = None
    return list(found)
