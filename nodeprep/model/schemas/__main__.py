"""`python -m nodeprep.model.schemas`: writes the schema files anew."""

from __future__ import annotations

from pathlib import Path

from nodeprep.model.schemas import DOCUMENTS, file_name, render


def main() -> None:
    """Writes one file a document, and removes the files of documents that are no more."""
    folder = Path(__file__).parent
    names = {file_name(document) for document in DOCUMENTS}
    for document in DOCUMENTS:
        (folder / file_name(document)).write_text(render(document), encoding="utf-8")
    for stale in folder.glob("*.json"):
        if stale.name not in names:
            stale.unlink()


main()
