"""The restore point of the GPU power settings: how every GPU stood before nodeprep first touched it."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Sequence

from . import durable
from .gpu_power_nvml import Change, GpuPower

PATH = "/var/lib/nodeprep/restore/gpu_power.json"
SCHEMA = "nodeprep.restore.gpu_power/1"

Entry = Dict[str, Any]


def load(root: str) -> Dict[str, Entry]:
    """Entries by GPU UUID; empty when nodeprep has changed nothing.

    Raises:
        OSError: The file may not be read.
        ValueError: It is damaged.
    """
    text = durable.content(root, PATH)
    if text is None:
        return {}
    document = json.loads(text)
    if document.get("schema") != SCHEMA:
        raise ValueError(f"{PATH} is not a {SCHEMA} document")
    entries: Dict[str, Entry] = document["gpus"]
    return entries


def entries_of(gpus: Sequence[GpuPower]) -> Dict[str, Entry]:
    """How GPUs stand, as entries by UUID."""
    return {
        gpu.uuid: {
            "address": gpu.address,
            "limit_mw": gpu.limit.get("value"),
            "persistence": gpu.persistence.get("value"),
        }
        for gpu in gpus
    }


def remember(root: str, gpus: Sequence[GpuPower]) -> None:
    """Adds GPUs that are not in it yet; what is in it stays, however often settings change.

    Raises:
        OSError: It cannot be written.
        ValueError: The file there is damaged.
    """
    entries = load(root)
    new = entries_of([gpu for gpu in gpus if gpu.uuid not in entries])
    if new:
        document = {"schema": SCHEMA, "gpus": {**entries, **new}}
        durable.put(root, PATH, json.dumps(document, indent=2, sort_keys=True) + "\n", mode=0o600)


def changes_back(entries: Dict[str, Entry], gpus: Sequence[GpuPower]) -> List[Change]:
    """What to set so that the GPUs stand as before.

    Limits need persistence: it is turned on before them, and off after them.
    """
    on: List[Change] = []
    limits: List[Change] = []
    off: List[Change] = []
    for gpu in gpus:
        entry = entries.get(gpu.uuid, {})
        old_limit, limit = entry.get("limit_mw"), gpu.limit.get("value")
        if old_limit is not None and limit is not None and old_limit != limit:
            limits.append(Change(gpu.address, gpu.uuid, "limit", limit, old_limit))
        old_mode, mode = entry.get("persistence"), gpu.persistence.get("value")
        if old_mode is not None and mode is not None and old_mode != mode:
            change = Change(gpu.address, gpu.uuid, "persistence", int(mode), int(old_mode))
            (on if old_mode else off).append(change)
    return [*on, *limits, *off]


def forget(root: str) -> None:
    """Removes the restore point."""
    durable.put(root, PATH, None)
