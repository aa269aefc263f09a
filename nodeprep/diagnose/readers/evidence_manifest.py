"""MANIFEST.json of an archive of evidence: which of its parts are missing or cut, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodeprep.diagnose.reader import Item, RawLine, Reader, Remark
from nodeprep.diagnose.readers._json_document import Document

# Without these nobody knows what happened on the node, or how its GPUs are.
_NEEDED = ("kernel.log", "facts/")


def _sniff(lines: Sequence[bytes]) -> int:
    head = b"\n".join(lines[:40])
    return 97 if b'"parts"' in head and b'"collected_at"' in head and b'"state"' in head else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    document = Document(source, lines)
    parts = document.get("parts")
    if not isinstance(parts, list):
        yield Remark(gap="its JSON is cut off or broken")
        return
    if document.get("simulated") is not False:
        yield Remark(simulated=True)
    for part in parts:
        if not isinstance(part, dict) or part.get("state") == "included":
            continue
        words = f"{part.get('name')} is {part.get('state')}: {part.get('reason') or 'no reason given'}"
        if str(part.get("name")).startswith(_NEEDED):
            yield Remark(gap=words)
        else:
            yield Remark(note=words)


READER = Reader(id="evidence_manifest", sniff=_sniff, read=_read, whole=True)
