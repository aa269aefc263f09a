"""Every reading of a document: which ones a check reads, and what it makes of a missing one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.checks import Check, Context
from nodeprep.model.reading import Reading

Path = tuple[str | int, ...]
DOCUMENTS = ("before", "after", "probe")


class _Watched(Reading[Any]):
    """A reading that notes when somebody asks it for its value or state."""

    __slots__ = ("_seen",)

    def _get(self, name: str) -> Any:
        seen = getattr(self, "_seen", None)
        if seen is not None:
            seen()
        return getattr(Reading, name).__get__(self, Reading)

    value = property(lambda self: self._get("value"), Reading.value.__set__)
    state = property(lambda self: self._get("state"), Reading.state.__set__)


def read_by(check: Check, context: Context) -> list[tuple[str, Path]]:
    """The readings a check asks for, as document and path, in the order it first does so."""
    seen: dict[tuple[str, Path], None] = {}
    watched = {
        name: _watched(getattr(context, name), (), lambda path, name=name: seen.setdefault((name, path)))
        for name in DOCUMENTS
        if getattr(context, name) is not None
    }
    check.run(dataclasses.replace(context, **watched))
    return list(seen)


def _watched(part: Any, path: Path, note: Any) -> Any:
    if isinstance(part, Reading):
        value = part.value if part.value is None else _watched(part.value, (*path, "value"), note)
        copy = _Watched(part.state, value, part.detail)
        object.__setattr__(copy, "_seen", lambda: note(path))
        return copy
    return _rebuilt(part, {key: _watched(child, (*path, key), note) for key, child in _children(part)})


def with_reading(context: Context, document: str, path: Path, reading: Reading[Any]) -> Context:
    """The context with one reading exchanged."""
    part = _exchanged(getattr(context, document), path, reading)
    return dataclasses.replace(context, **{document: part})


def _exchanged(part: Any, path: Path, reading: Reading[Any]) -> Any:
    if not path:
        return reading
    key, *rest = path
    if isinstance(part, Reading):
        return dataclasses.replace(part, value=_exchanged(part.value, tuple(rest), reading))
    child = part[key] if isinstance(part, tuple | Mapping) else getattr(part, str(key))
    return _rebuilt(part, {key: _exchanged(child, tuple(rest), reading)})


def _children(part: Any) -> Iterator[tuple[str | int, Any]]:
    if dataclasses.is_dataclass(part):
        yield from ((field.name, getattr(part, field.name)) for field in dataclasses.fields(part))
    elif isinstance(part, tuple):
        yield from enumerate(part)


def _rebuilt(part: Any, children: dict[Any, Any]) -> Any:
    if isinstance(part, tuple):
        return tuple(children.get(position, item) for position, item in enumerate(part))
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return dataclasses.replace(part, **children)
    return part


def pattern_path(path: Path) -> str:
    """A path as `Check.tolerates` writes it: without the steps into a reading's value."""
    return "/".join(str(step) for step in path if step != "value")
