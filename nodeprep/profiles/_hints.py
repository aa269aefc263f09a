"""What to write instead: a hint for every way in which a value can be of the wrong kind."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import msgspec

from nodeprep.errors import Problem

_YAML_WORD = "YAML reads on, off, yes and no as true and false: write the word itself, in quotes"


def with_hints(problems: Iterable[Problem], data: Any, kind: type, root: str) -> list[Problem]:
    """The same problems, each with a hint.

    Args:
        problems: From codec.decode_strict.
        data: What was decoded.
        kind: The dataclass it was decoded as.
        root: The path prefix the problems carry.
    """
    return [
        problem if problem.hint else replace(problem, hint=_hint(problem, data, kind, root))
        for problem in problems
    ]


def describe(kind: Any) -> str:
    """A type in the words of somebody who writes YAML, for example "a whole number from 1 to 6"."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        base, *notes = typing.get_args(kind)
        return _describe_bounded(base, [note for note in notes if isinstance(note, msgspec.Meta)])
    if origin is typing.Literal:
        return "one of: " + ", ".join(str(value) for value in typing.get_args(kind))
    if origin in (typing.Union, types.UnionType):
        rest = [argument for argument in typing.get_args(kind) if argument is not type(None)]
        return " or ".join(describe(argument) for argument in rest)
    if origin is tuple:
        return f"a list, each entry {describe(typing.get_args(kind)[0])}"
    if dataclasses.is_dataclass(kind):
        return "a mapping with the keys " + ", ".join(field.name for field in dataclasses.fields(kind))
    names = {
        str: "a text",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        date: "a day as YYYY-MM-DD",
    }
    return names.get(kind, str(kind))


def _describe_bounded(base: Any, notes: list[msgspec.Meta]) -> str:
    text = describe(base)
    for note in notes:
        if note.examples:
            return "for example " + " or ".join(f'"{example}"' for example in note.examples)
        low = note.ge if note.ge is not None else note.gt
        if low is not None and note.le is not None:
            text += f" from {low} to {note.le}"
        elif low is not None:
            text += f" {'from' if note.ge is not None else 'above'} {low}"
    return text


def _hint(problem: Problem, data: Any, kind: type, root: str) -> str:
    value, wanted = _at(problem.path.removeprefix(root).removeprefix("."), data, kind)
    expected = describe(wanted)
    if isinstance(value, bool) and "true or false" not in expected:
        return f"{expected}; {_YAML_WORD}"
    if isinstance(value, dict) and "text" in expected:
        return f'{expected}; put it in quotes, YAML took the ":" for a mapping'
    if isinstance(value, datetime):
        return f"{expected}, without a time"
    if isinstance(value, str) and "a list" in expected:
        return f"{expected}; write [{value}]"
    if value is None:
        return f"{expected}; or leave the key out for its default"
    return expected


def _at(path: str, data: Any, kind: Any) -> tuple[Any, Any]:
    """The value at a path, and the type that belongs there."""
    for step in path.replace("[", ".[").split("."):
        if not step:
            continue
        kind = _without_none(kind)
        if step.startswith("["):
            data = data[int(step[1:-1])]
            kind = typing.get_args(kind)[0]
        else:
            data = data.get(step) if isinstance(data, dict) else None
            kind = typing.get_type_hints(kind, include_extras=True)[step]
    return data, kind


def _without_none(kind: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return next(argument for argument in typing.get_args(kind) if argument is not type(None))
    return kind
