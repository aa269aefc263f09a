"""The base documents of the cases, and how a case changes them.

Documents are kept short: where a field is a reading, a plain value stands for one that was read,
and the texts "error: WHY" and "not supported: WHY" for the other two states. A change is a pointer
and a new value; pointers name list items by address, index or "*":

    /nvml/gpus/0000:63:00.0/power/enforced_w: 560
    /pci/devices/*/link/aspm_enabled: [L1]
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from nodeprep.checks import Context
from nodeprep.model.facts import NodeFacts
from nodeprep.model.probe import ProbeResult
from nodeprep.model.reading import Reading
from nodeprep.model.sighting import Sighting, SiteRecords, build_of
from nodeprep.model.spec import NodeSpec

T = TypeVar("T")
Changes = Mapping[str, Any]

BASE = Path(__file__).parent
REMOVE = "(remove)"
_NAMES = ("address", "pci_address", "gpu", "bus", "index", "name")
_STATES = {"error: ": "error", "not supported: ": "not_supported"}


def context(
    *,
    spec: Changes | None = None,
    facts: Changes | None = None,
    before: Changes | None = None,
    after: Changes | None = None,
    probe: Changes | None = None,
    site: Mapping[str, Any] | None = None,
    absent: typing.Collection[str] = (),
) -> Context:
    """The healthy node with changes.

    Args:
        spec: Changes to what the node should be.
        facts: Changes to the facts from before and after the load alike.
        before: Changes to the facts from before only.
        after: Changes to the facts from after only.
        probe: Changes to the probe's result.
        site: What the site remembers; see `_site`.
        absent: Documents that are not there at all: "after", "probe".
    """
    old = changed(base("facts"), {**(facts or {}), **(before or {})})
    new = changed(base("facts"), {**_later(), **(facts or {}), **(after or {})})
    loaded = document(ProbeResult, changed(base("probe"), probe or {}))
    return Context(
        spec=document(NodeSpec, changed(base("spec"), spec or {})),
        before=document(NodeFacts, old),
        after=None if "after" in absent else document(NodeFacts, new),
        probe=None if "probe" in absent else loaded,
        site=_site(loaded, **(site or {})),
    )


def _site(
    probe: ProbeResult, *, seen: list[dict[str, Any]] | None = None, damaged: int = 0, trouble: str = ""
) -> SiteRecords:
    """Sightings in short form: like the first GPU of the probe's result, but for what they name.

    `digests` may be a list (of the workload's batch) or a mapping from batch to list.
    """
    like = probe.gpus[0] if probe.gpus else None
    sightings = []
    for number, given in enumerate(seen or []):
        plain = dict(given)
        digests = plain.pop("digests", None)
        if digests is None and like is not None and like.digests.value is not None:
            digests = list(like.digests.value.reference)
        if isinstance(digests, list):
            digests = {str(probe.workload.batch): digests}
        standard = {
            "kind": "seen",
            "time": f"2026-11-2{number % 10}T10:00:00Z",
            "model": like.name if like else "",
            "build": build_of(probe),
            "workload": probe.workload.name,
            "workload_digest": probe.workload.digest,
            "node": f"node{number}",
            "gpu": f"GPU-{number}",
            "depth": probe.workload.depth,
            "achieved_tflops": like.achieved_tflops.value if like else None,
            "enforced_limit_w": like.telemetry.enforced_limit_w.value if like else None,
        }
        sightings.append(msgspec.convert({**standard, "digests": digests or {}, **plain}, type=Sighting))
    return SiteRecords(node="this-node", sightings=tuple(sightings), damaged=damaged, trouble=trouble)


def _later() -> dict[str, Any]:
    """How the facts after the load differ on a node to which nothing happened."""
    cursor = base("facts")["log_cursor"]
    return {
        "/collected_at": "2026-11-30T10:03:00Z",
        "/boot/uptime_s": 3780.0,
        "/log_cursor": {**cursor, "sequence": 2412, "monotonic_us": 3780000000},
        "/kernel_log/since": cursor,
    }


def base(name: str) -> dict[str, Any]:
    """One base document in its short form; a fresh copy."""
    copy: dict[str, Any] = json.loads(_base_text(name))
    return copy


@functools.cache
def _base_text(name: str) -> str:
    plain = yaml.safe_load((BASE / f"{name}.yaml").read_text(encoding="utf-8"))
    return json.dumps({key: value for key, value in plain.items() if not key.startswith("x-")})


def changed(plain: dict[str, Any], changes: Changes) -> dict[str, Any]:
    """A short document with changes applied in order.

    Raises:
        KeyError: A pointer leads nowhere; a misspelt change must not be a passing case.
    """
    for pointer, value in changes.items():
        *parents, last = pointer.removeprefix("/").split("/")
        targets: list[Any] = [plain]
        for part in parents:
            targets = [target[key] for target in targets for key in _keys(target, part)]
        for target in targets:
            for key in list(_keys(target, last)):
                if value == REMOVE:
                    del target[key]
                else:
                    target[key] = value
    return plain


def _keys(target: Any, part: str) -> Iterator[Any]:
    if isinstance(target, dict):
        target[part]
        yield part
        return
    if not isinstance(target, list):
        raise KeyError(f"{part!r} in {target!r}")
    found = [
        position
        for position, item in enumerate(target)
        if part in ("*", str(position)) or (isinstance(item, dict) and part in _names(item))
    ]
    if not found:
        raise KeyError(part)
    yield from found


def _names(item: dict[str, Any]) -> set[str]:
    return {item[name] for name in _NAMES if isinstance(item.get(name), str)}


def document(kind: type[T], plain: dict[str, Any]) -> T:
    """A short document as the typed one."""
    typed: T = _typed(kind, json.dumps(plain, sort_keys=True))
    return typed


@functools.lru_cache(maxsize=256)
def _typed(kind: Any, text: str) -> Any:
    return msgspec.convert(_expanded(kind, json.loads(text)), type=kind)


def _expanded(kind: Any, plain: Any) -> Any:
    if plain is None:
        return None
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        kinds = [argument for argument in arguments if argument is not type(None)]
        # Several are plain values of a BIOS attribute or a policy.
        return _expanded(kinds[0], plain) if len(kinds) == 1 else plain
    if origin is Reading:
        return _reading(arguments[0], plain)
    if origin is tuple:
        return [_expanded(arguments[0], item) for item in plain]
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return {key: _expanded(hints[key], value) for key, value in plain.items()}
    return plain


def _reading(kind: Any, plain: Any) -> dict[str, Any]:
    for prefix, state in _STATES.items():
        if isinstance(plain, str) and plain.startswith(prefix):
            return {"state": state, "detail": plain.removeprefix(prefix)}
    return {"state": "ok", "value": _expanded(kind, plain)}


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
