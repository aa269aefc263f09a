"""YAML for people's own files: duplicate keys and bad dates are faults, with their line numbers.

PyYAML silently keeps the last of two equal keys, so a limit written twice would be half ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from nodeprep.errors import PolicyError, Problem

# A policy is a page or two, a few levels deep. More than this is not one, or an alias bomb.
_MAX_NODES = 20_000
_MAX_DEPTH = 40
_TOO_LARGE = Problem("(file)", "too large or too deep, or an alias inside itself", "write the values out")


class _TooLarge(Exception):
    """Walking on would never end."""


class _Loader(yaml.SafeLoader):
    """SafeLoader that leaves an impossible date as the text it is, for the typed check to report."""


def _timestamp(loader: _Loader, node: yaml.ScalarNode) -> Any:
    try:
        return loader.construct_yaml_timestamp(node)
    except ValueError:
        return node.value


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _timestamp)


def read(text: str, *, source: str) -> Any:
    """Plain dicts and lists from one YAML document.

    Args:
        text: The document.
        source: Name of the file, for messages.

    Raises:
        PolicyError: It is not YAML, holds several documents or tags, or gives a key twice.
    """
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            problems = list(_Walk().problems(node, "", 0))
            if problems:
                raise PolicyError(source, problems)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise PolicyError(source, [_syntax_problem(error)]) from error
    except (_TooLarge, RecursionError) as error:
        raise PolicyError(source, [_TOO_LARGE]) from error


class _Walk:
    """Looks for keys given twice, and gives up on what is not a policy."""

    def __init__(self) -> None:
        self._seen = 0

    def problems(self, node: yaml.Node, path: str, depth: int) -> Iterator[Problem]:
        """All repeated keys at and below a node, with their lines."""
        self._seen += 1
        if self._seen > _MAX_NODES or depth > _MAX_DEPTH:
            raise _TooLarge
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                yield from self.problems(item, f"{path}[{index}]", depth + 1)
        elif isinstance(node, yaml.MappingNode):
            lines: dict[str, list[int]] = {}
            for key, value in node.value:
                at = f"{path}.{key.value}" if path else str(key.value)
                lines.setdefault(at, []).append(key.start_mark.line + 1)
                yield from self.problems(value, at, depth + 1)
            yield from _repeated(lines)


def _repeated(lines: dict[str, list[int]]) -> Iterator[Problem]:
    for at, numbers in lines.items():
        if len(numbers) > 1:
            listed = ", ".join(str(number) for number in numbers[:-1])
            message = f"given {len(numbers)} times: lines {listed} and {numbers[-1]}"
            yield Problem(at, message, "keep one of them")


def _syntax_problem(error: yaml.YAMLError) -> Problem:
    if not isinstance(error, yaml.MarkedYAMLError):
        return Problem("(file)", f"not YAML: {error}", "save it as UTF-8 text")
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "(file)"
    what = error.problem or error.context or "not YAML"
    if "single document" in f"{error.context}":
        return Problem(where, "a second document begins here", "remove the line ---")
    if "could not determine a constructor" in what:
        return Problem(where, f"a tag YAML does not know by itself: {what}", "write the plain value")
    return Problem(where, f"not YAML: {what}", "check indentation, colons and quotes near this line")
