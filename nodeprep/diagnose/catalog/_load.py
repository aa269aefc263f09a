"""Reading the catalogue's files: strictly, once."""

from __future__ import annotations

from importlib import resources
from typing import Any, TypeVar

import yaml

from nodeprep.model.codec import decode_strict

T = TypeVar("T")

# The C parser reads the catalogue in a tenth of the time; where libyaml is missing the other one does.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(name: str) -> Any:
    """One file of this folder as plain dicts and lists."""
    text = (resources.files("nodeprep.diagnose.catalog") / f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)  # noqa: S506  # both are safe loaders


def load(name: str, kind: type[T]) -> T:
    """One file of this folder as a document.

    Raises:
        PolicyError: It holds a key or a value that the document does not know.
    """
    return decode_strict(read(name), kind, source=f"catalog/{name}.yaml")
