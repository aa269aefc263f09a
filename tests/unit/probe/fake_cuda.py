"""CUDA's streams and events on the CPU: every copy is done when it is queued.

Good for the order and the bookkeeping of the torch backend, where there is no GPU. It times nothing.
"""

from __future__ import annotations

import contextlib
import time
from types import SimpleNamespace
from typing import Any


class Event:
    """Recorded work is done at once."""

    def __init__(self, **_: Any) -> None:
        self._at = 0.0

    def record(self, *_: Any) -> None:
        self._at = time.perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return

    def elapsed_time(self, later: Event) -> float:
        return max(1e-6, (later._at - self._at) * 1e3)


class Stream:
    """Work on it is done before anybody could wait for it."""

    def __init__(self, **_: Any) -> None:
        return

    def wait_event(self, _: Event) -> None:
        return

    def wait_stream(self, _: Stream) -> None:
        return


def install(monkeypatch: Any, torch: Any, **properties: Any) -> None:
    """Lets the torch backend run on the CPU for the length of a test."""
    for name in ("empty", "zeros"):
        monkeypatch.setattr(torch, name, _without_pinning(getattr(torch, name)))
    for name, value in {
        "Stream": Stream,
        "current_stream": Stream,
        "Event": Event,
        "stream": lambda _: contextlib.nullcontext(),
        "synchronize": lambda: None,
        "init": lambda: None,
        "empty_cache": lambda: None,
        "device_count": lambda: 1,
        "mem_get_info": lambda _: (4 << 20, 8 << 20),
        "memory_reserved": lambda _: 3 << 20,
        "memory_allocated": lambda _: 2 << 20,
        "get_device_properties": lambda _: SimpleNamespace(**properties),
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch.version, "cuda", "13.0")


def _without_pinning(make: Any) -> Any:
    def unpinned(*args: Any, pin_memory: bool = False, **kwargs: Any) -> Any:
        return make(*args, **kwargs)

    return unpinned
