"""A resource with declared access: what is missing and what is malformed are different errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from nodeprep.bmc.redfish.errors import Malformed, Missing

T = TypeVar("T")
_LONGEST = 2048
_LINK_KEYS = ("@odata.id", "href", "extref")
_NAMES: Mapping[type, str] = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource as it was read.

    Attributes:
        uri: What was asked for; the answer's own @odata.id may be spelled differently.
        etag: As the BMC wrote it; "" when it gave none.
    """

    uri: str
    body: Mapping[str, Any]
    etag: str = ""

    def get(self, kind: type[T], *path: str | int) -> T:
        """A property that must be there.

        Args:
            kind: str, int, bool, dict or list; JSON's true is no int.
            path: Keys and positions, one each: a key may itself hold a slash.

        Raises:
            Missing: Some part of the path is not there, or is null.
            Malformed: It is of another kind.
        """
        found = self.find(kind, *path)
        if found is None:
            raise Missing(f"{self.uri} has no {json_path(path)}", uri=self.uri, path=json_path(path))
        return found

    def find(self, kind: type[T], *path: str | int) -> T | None:
        """A property that may be missing or null: then None.

        Raises:
            Malformed: It is there, and of another kind.
        """
        value: Any = self.body
        for depth, key in enumerate(path):
            if isinstance(key, int):
                value = self._as(list, value, path[:depth])
                value = value[key] if -len(value) <= key < len(value) else None
            else:
                value = self._as(dict, value, path[:depth]).get(key)
            if value is None:
                return None
        return self._as(kind, value, path)

    def link(self, *path: str | int) -> str:
        """The path on the BMC that a link leads to.

        Raises:
            Missing: No such link.
            Malformed: Not a link, or one that leads to another machine.
        """
        found = self.find_link(*path)
        if found is None:
            raise Missing(f"{self.uri} has no link {json_path(path)}", uri=self.uri, path=json_path(path))
        return found

    def find_link(self, *path: str | int) -> str | None:
        """As `link`; None when it is missing or null."""
        value = self.find(object, *path)
        if value is None:
            return None
        return self.as_link(value, *path)

    def as_link(self, value: Any, *path: str | int) -> str:
        """A value of this resource as a link: {"@odata.id": ..}, older spellings, or a bare string."""
        for key in _LINK_KEYS:
            if isinstance(value, Mapping) and value.get(key):
                value = value[key]
        local = local_path(value)
        if local is None:
            raise Malformed(
                f"{self.uri}: {json_path(path)} does not lead to a resource of this BMC",
                uri=self.uri,
                path=json_path(path),
            )
        return local

    def members(self) -> tuple[str, ...]:
        """The links of a collection.

        Raises:
            Missing: It has no members property at all: not a collection.
            Malformed: A member is no link.
        """
        for path in (("Members",), ("links", "Member"), ("Links", "Members")):
            listed = self.find(list, *path)
            if listed is not None:
                return tuple(self.as_link(member, *path, place) for place, member in enumerate(listed))
        raise Missing(f"{self.uri} has no Members", uri=self.uri, path="Members")

    def _as(self, kind: type[T], value: Any, path: tuple[str | int, ...]) -> T:
        # Python's bool is an int; JSON's is not.
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        wanted = _NAMES.get(kind, kind.__name__)
        place = json_path(path) or "the answer"
        raise Malformed(
            f"{self.uri}: {place} is not {wanted} but {type(value).__name__}",
            uri=self.uri,
            path=json_path(path),
        )


def local_path(value: Any) -> str | None:
    """The path of a URI on the BMC itself; None for what is no such URI.

    An absolute URL is none: see `own_path` for where one is known to be the BMC's own.
    """
    if not isinstance(value, str):
        return None
    path = value.split("#", 1)[0]
    return path if _is_path(path) else None


def own_path(value: Any) -> str:
    """The path of a URI of a header such as Location, whatever name the BMC calls itself by; "" for none."""
    if not isinstance(value, str):
        return ""
    try:
        parts = urlsplit(value.strip())
    except ValueError:
        return ""
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    return path if _is_path(path) else ""


def _is_path(text: str) -> bool:
    return text.startswith("/") and not text.startswith("//") and text.isprintable() and len(text) <= _LONGEST


def json_path(path: tuple[str | int, ...]) -> str:
    """For messages: Members[0].@odata.id."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f"{'.' if text else ''}{key}"
    return text
