"""Readings as plain dicts: a value, "not supported", or an error with its text.

The same three states as `nodeprep.model.reading.Reading`, which node code cannot import. What
cannot be read is an error with words; it never becomes zero, false or an empty list.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable

Reading = Dict[str, Any]


class NotSupported(Exception):
    """Raised by a reader when the machine or the kernel has no such thing; carries the reason."""


def ok(value: Any) -> Reading:
    """A value that was read.

    Raises:
        ValueError: The value is None, which is not a reading.
    """
    if value is None:
        raise ValueError("a reading without a value is not ok")
    return {"state": "ok", "value": value}


def not_supported(detail: str) -> Reading:
    """The machine has no such thing."""
    return {"state": "not_supported", "detail": detail}


def error(detail: str) -> Reading:
    """It could not be read."""
    return {"state": "error", "detail": detail}


def describe(problem: BaseException) -> str:
    """An exception in words for the SRE; a refused permission says what to do about it."""
    if isinstance(problem, PermissionError):
        return f"needs root: {problem.filename or problem}"
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}"
    if isinstance(problem, (OSError, ValueError)):
        return str(problem) or type(problem).__name__
    return f"unexpected {type(problem).__name__}: {problem}"


def attempt(reader: Callable[..., Any], *args: Any) -> Reading:
    """What a reader returns, as a reading.

    Anything a reader raises becomes an error reading, also what nobody foresaw: a fault in the
    reading of one field must not cost the node all the others.
    """
    try:
        return ok(reader(*args))
    except NotSupported as problem:
        return not_supported(str(problem))
    except Exception as problem:
        return error(describe(problem))


def part(fields: Iterable[str], collect: Callable[..., Dict[str, Any]], *args: Any) -> Dict[str, Any]:
    """A part of the document; if collecting it fails as a whole, every field of it is an error."""
    try:
        return collect(*args)
    except Exception as problem:
        return {name: error(describe(problem)) for name in fields}


def value_or(reading: Reading, default: Any) -> Any:
    """The value of a reading, or a default that cannot be mistaken for one."""
    return reading["value"] if reading["state"] == "ok" else default
