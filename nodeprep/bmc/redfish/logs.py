"""The event logs over Redfish (SEL, IML, Lclog and what others call theirs): what came after a mark.

An entry is new when it was not among those nearest to the log's end at the mark, by its identity and by what
it says. Times do not decide: a BMC's clock is set when its host starts, as often as not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodeprep.bmc.event_log import LogEntry, LogMark, LogNews, LogPlace
from nodeprep.bmc.failures import BmcLoginRefused, BmcUnreachable
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import Malformed, Missing, NotTrusted, RedfishError
from nodeprep.bmc.redfish.log_pages import MOST_PAGES, Entry, Page, newest_first, pages, read_page
from nodeprep.bmc.redfish.service import Service

MOST_ENTRIES = 500
_WINDOW = 50
_LONGEST_RAW = 4000
# Logs of other things than what happened to the host: who logged in (our own login would be news), memory
# dumps, POST codes, the BMC's own journal.
_OTHERS = re.compile(
    r"audit|secur|^sl$|^iel$|dump|diag|journal|hostlog|postcode|metric|telemetry|debug|crash|^salog$"
    r"|faultl(?:ist|og)|maintenance",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Log:
    name: str
    uri: str


def mark(connection: Connection, service: Service) -> LogMark:
    """The present end of each log.

    Raises:
        Missing: The BMC has no event log over Redfish.
        RedfishError: It has, and none can be read.
        BmcUnreachable: No answer.
    """
    places: dict[str, LogPlace] = {}
    logs, failures = _event_logs(connection, service)
    for log in logs:
        try:
            places[log.uri] = _end(connection, log)
        except RedfishError as error:
            failures.append(error)
    if failures and not places:
        raise failures[-1]
    return LogMark("", "", 0, places)


def since(connection: Connection, service: Service, place: LogMark) -> LogNews:
    """What each log recorded after the mark, oldest first; what could not be read is in the note.

    Raises:
        As `mark`.
    """
    logs, failures = _event_logs(connection, service)
    if failures and not logs:
        raise failures[-1]
    entries: list[LogEntry] = []
    whole = not failures
    # A log that can no longer be found has not said nothing.
    notes = [f"a log cannot be looked for: {error.message}" for error in failures]
    lost = sorted(set(place.logs) - {log.uri for log in logs})
    notes += [
        f"{uri} was there at the mark and is not found now: what is new in it is not known" for uri in lost
    ]
    for log in logs:
        before = place.logs.get(log.uri)
        if before is None:
            notes.append(f"{log.name} was not readable before, so what is new in it is not known")
            continue
        try:
            found, note = _new(connection, log, before)
            entries += [_told(connection, log, entry) for entry in found if not _is_audit(entry)]
        except (BmcLoginRefused, NotTrusted):
            raise
        except BmcUnreachable as error:
            notes.append(f"{log.name} and what comes after it is not read: {error.message}")
            whole = False
            break
        except RedfishError as error:
            whole = False
            note = f"it cannot be read: {error.message}"
        notes += [f"{log.name}: {note}"] if note else []
    return LogNews(tuple(entries), "; ".join(notes), whole=whole)


def _event_logs(connection: Connection, service: Service) -> tuple[list[_Log], list[RedfishError]]:
    """The logs, and why others that the BMC names could not be looked at."""
    found: dict[str, _Log] = {}
    failures: list[RedfishError] = []
    for uri in _services(connection, service, failures):
        if _OTHERS.search(uri.rstrip("/").rsplit("/", 1)[-1]):
            continue
        try:
            log = connection.get(uri)
            entries = log.find_link("Entries")
        except RedfishError as error:
            failures.append(error)
            continue
        # Lenovo's SEL is there for its actions, and has no entries.
        if entries and log.body.get("ServiceEnabled") is not False:
            name = log.body.get("Id")
            found[entries] = _Log(name if isinstance(name, str) and name else uri, entries)
    if not found and not failures:
        raise Missing(f"the {connection.target} has no event log over Redfish", uri=service.root.uri)
    return list(found.values()), failures


def _services(connection: Connection, service: Service, failures: list[RedfishError]) -> Iterator[str]:
    seen: set[str] = set()
    for owner in (service.system, service.manager):
        try:
            collection = owner.find_link("LogServices") if owner is not None else None
            # Lenovo's manager names the system's.
            members = connection.get(collection).members() if collection and collection not in seen else ()
        except RedfishError as error:
            failures.append(error)
            continue
        if collection:
            seen.add(collection)
        yield from members


def _end(connection: Connection, log: _Log) -> LogPlace:
    first = read_page(connection, log.uri)
    if not first.following or newest_first(first.entries):
        return _place(first.entries, 0)
    start = max(first.total - _WINDOW, 0)
    near = _jump(connection, log, start, first)
    if near is not None:
        return _place([entry for page in pages(connection, near) for entry in page.entries], start)
    count, last, open_end = 0, first, True
    for page in pages(connection, first):
        if page.entries:
            count, last = count + len(page.entries), page
        open_end = bool(page.following)
    if open_end:
        raise Malformed(f"{log.uri} does not end within {MOST_PAGES} pages", uri=log.uri)
    return _place(last.entries, count - len(last.entries))


def _place(entries: Any, start: int) -> LogPlace:
    return LogPlace({entry.id: entry.digest for entry in entries}, start)


def _jump(connection: Connection, log: _Log, start: int, first: Page) -> Page | None:
    """The page from a position on; None where the BMC does not go there."""
    try:
        page = read_page(connection, f"{log.uri}?$skip={start}")
    except RedfishError:
        return None
    jumped = bool(page.entries) and bool(first.entries) and page.entries[0].id != first.entries[0].id
    return page if jumped else None


def _new(connection: Connection, log: _Log, before: LogPlace) -> tuple[list[Entry], str]:
    first = read_page(connection, log.uri)
    backwards = newest_first(first.entries)
    if not backwards and first.following and before.start:
        near = _jump(connection, log, before.start, first)
        if near is not None and any(entry.id in before.known for entry in near.entries):
            first = near
    found: list[Entry] = []
    met = not before.known
    open_end = False
    for page in pages(connection, first):
        known = [place for place, entry in enumerate(page.entries) if entry.id in before.known]
        # What stands before all known ones in a log that begins with its oldest was there at the mark.
        if known and not met and not backwards:
            found.clear()
        usable = page.entries[: known[-1] + 1] if known and backwards else page.entries
        if known and not backwards and not met:
            usable = page.entries[known[0] :]
        found += [entry for entry in usable if before.known.get(entry.id) != entry.digest]
        met = met or bool(known)
        open_end = bool(page.following)
        if backwards and known:
            open_end = False
            break
    notes = []
    if not met:
        notes.append("it was cleared after the mark, or has overwritten its entries; some may be lost")
    if open_end or len(found) > MOST_ENTRIES:
        notes.append(f"only {min(len(found), MOST_ENTRIES)} entries are read, and there are more")
    if backwards:
        found = found[:MOST_ENTRIES][::-1]
    return found[:MOST_ENTRIES], "; ".join(notes)


def _told(connection: Connection, log: _Log, entry: Entry) -> LogEntry:
    body = entry.body or connection.get(entry.uri).body
    created = body.get("Created")
    return LogEntry(
        f"{log.name}/{entry.id}",
        created if isinstance(created, str) else "",
        f"{log.name}: {_words(body)}",
        json.dumps(body)[:_LONGEST_RAW],
    )


def _words(body: Mapping[str, Any]) -> str:
    said = [str(body[name]) for name in ("Severity", "Message") if isinstance(body.get(name), str)]
    # AMI's message is three bytes in hexadecimal, and these say which sensor and what.
    more = [
        str(body[name])
        for name in ("SensorType", "EntryCode", "MessageId")
        if isinstance(body.get(name), str)
    ]
    text = ": ".join(said) or "an entry without words"
    return f"{text} ({', '.join(more)})" if more else text


def _is_audit(entry: Entry) -> bool:
    """Dell's Lclog holds logins among the events of the hardware."""
    oem = entry.body.get("Oem")
    dell = oem.get("Dell") if isinstance(oem, Mapping) else None
    return isinstance(dell, Mapping) and dell.get("Category") == "Audit"
