"""The boundary: documents to and from JSON, strict policies, schemas, digests."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import types
import typing
from typing import Any, TypeVar

import msgspec

from nodeprep.errors import DocumentError, PolicyError, Problem

T = TypeVar("T")


def encode(document: object) -> bytes:
    """A document as canonical JSON: keys sorted, no spaces. The same document gives the same bytes."""
    return msgspec.json.encode(document, order="sorted")


def encode_pretty(document: object) -> bytes:
    """A document as JSON for people: in the order its fields were declared, a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def digest(document: object) -> str:
    """SHA-256 (hex) of the canonical JSON."""
    return hashlib.sha256(encode(document)).hexdigest()


def to_builtins(document: object) -> Any:
    """A document as plain dicts and lists, for templates and Ansible variables."""
    return msgspec.to_builtins(document)


def decode(data: bytes | str, kind: type[T], *, source: str) -> T:
    """A document from JSON. Unknown fields are ignored: additions keep the schema's major version.

    Raises:
        DocumentError: It is not JSON, not this schema, or a field is missing or of another type.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError) as error:
        raise DocumentError(f"{source}: not a {_schema_name(kind)} document: {error}") from error


def from_builtins(data: Any, kind: type[T], *, source: str) -> T:
    """A document from plain dicts and lists, as they come out of an Ansible result.

    Raises:
        DocumentError: As `decode`.
    """
    try:
        return msgspec.convert(data, type=kind)
    except (msgspec.ValidationError, ValueError) as error:
        raise DocumentError(f"{source}: not a {_schema_name(kind)} document: {error}") from error


def decode_strict(data: Any, kind: type[T], *, source: str, root: str = "") -> T:
    """A policy-like document: every unknown key and every wrong value is reported, all at once.

    Args:
        data: Plain dicts and lists from YAML.
        kind: A dataclass.
        source: File or variable the data came from, for the message.
        root: Path prefix of the data inside the source, for example "nodeprep_policy".

    Raises:
        PolicyError: With one Problem for each fault.
    """
    problems = list(_problems(data, kind, root))
    if problems:
        raise PolicyError(source, problems)
    return msgspec.convert(data, type=kind)


def json_schema(kind: type) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document."""
    schema = msgspec.json.schema(kind)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _schema_name(kind: type) -> str:
    for field in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ():
        if field.name == "schema":
            return str(field.default)
    return kind.__name__


def _problems(data: Any, kind: Any, path: str) -> typing.Iterator[Problem]:
    kind = _strip_optional(kind, data)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        yield from _dataclass_problems(data, kind, path)
    elif typing.get_origin(kind) is tuple and isinstance(data, list | tuple):
        (item_kind, *_) = typing.get_args(kind)
        for index, item in enumerate(data):
            yield from _problems(item, item_kind, f"{path}[{index}]")
    else:
        try:
            msgspec.convert(data, type=kind)
        except msgspec.ValidationError as error:
            yield Problem(path or "(top)", str(error))


def _dataclass_problems(data: Any, kind: type, path: str) -> typing.Iterator[Problem]:
    if not isinstance(data, dict):
        yield Problem(path or "(top)", f"expected a mapping, got {type(data).__name__}")
        return
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for key, value in data.items():
        at = f"{path}.{key}" if path else str(key)
        if key in fields:
            yield from _problems(value, hints[key], at)
        else:
            close = difflib.get_close_matches(str(key), fields, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(sorted(fields))}"
            yield Problem(at, "unknown key", hint)
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in data:
            yield Problem(f"{path}.{name}" if path else name, "missing", "this key is required")


def _strip_optional(kind: Any, data: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType) and data is not None:
        rest = [arg for arg in typing.get_args(kind) if arg is not type(None)]
        if len(rest) == 1:
            return rest[0]
    return kind
