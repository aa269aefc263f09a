"""Xids as NVML's event set tells them: at once, and without the kernel log.

Only events after the registration come, and not every Xid is a critical one, so the kernel log is read
as well. Nothing historic, nothing from GPUs that could not be registered: that is said, not passed over.
"""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any, Callable, Dict, List, Sequence

from . import nvml_library, reading
from .nvml_calls import Calls, describe, error_code
from .reading import Reading

WAIT_MS = 500
# Double-bit ECC, critical Xid, row remap done or failed, poison, GPU gone, recovery action asked for.
# Source: nvml.h, nvmlEventType*.
WANTED = 0x2 | 0x8 | 0x400 | 0x800 | 0x1000 | 0x2000 | 0x4000 | 0x8000
XID_EVENT = 0x8
# Seen where an event had no Xid (NVIDIA/k8s-device-plugin#259).
NO_XID = 999

Tell = Callable[[str, float, int, int], None]


class Events(threading.Thread):
    """Waits for events of a set of GPUs, in a thread: the wait blocks, and may hang with the driver.

    Args:
        library: Gives the bound and initialised nvidia-ml-py.
        addresses: PCI addresses of the GPUs.
        tell: Called with address, time.monotonic(), event type and event data of each.
    """

    def __init__(self, library: Callable[[], Any], addresses: Sequence[str], tell: Tell) -> None:
        super().__init__(name="nvml events", daemon=True)
        self._library = library
        self._addresses = tuple(addresses)
        self._tell = tell
        self._halt = threading.Event()
        self._lock = threading.Lock()
        pending = reading.error("NVML did not get as far as listening to events")
        self._listening: Dict[str, Reading] = dict.fromkeys(addresses, pending)

    def mark(self, call: str, subject: str = "") -> None:
        """Calls are not announced: this thread may wait for ever without harm."""

    def listening(self) -> Dict[str, Reading]:
        """For each GPU whether its events are being told: a reading of true, or why not."""
        with self._lock:
            return dict(self._listening)

    def stop(self) -> None:
        """Ends the thread after its present wait."""
        self._halt.set()

    def run(self) -> None:
        """The thread."""
        step = "nvmlEventSetCreate"
        try:
            pynvml = self._library()
            calls = Calls(pynvml, self)
            events = calls.call(step)
        except Exception as error:  # becomes the reading of every GPU
            self._note(self._addresses, _refusal(error, step))
            return
        handles: Dict[int, str] = {}
        for address in self._addresses:
            self._note([address], self._register(calls, events, address, handles))
        if handles:
            self._wait(calls, events, handles)

    def _register(self, calls: Calls, events: Any, address: str, handles: Dict[int, str]) -> Reading:
        step = "nvmlDeviceGetHandleByPciBusId"
        try:
            handle = calls.call(step, address)
            step = "nvmlDeviceGetSupportedEventTypes"
            types = WANTED & int(calls.call(step, handle))
            if not types & XID_EVENT:
                return reading.not_supported("this GPU tells of no critical Xid")
            step = "nvmlDeviceRegisterEvents"
            calls.call(step, handle, types, events)
        except Exception as error:  # becomes the reading of this GPU
            return _refusal(error, step)
        handles[_number(handle)] = address
        return reading.ok(True)

    def _wait(self, calls: Calls, events: Any, handles: Dict[int, str]) -> None:
        step = "nvmlEventSetWait_v2"
        while not self._halt.is_set():
            try:
                data = calls.call(step, events, WAIT_MS)
            except Exception as error:
                if calls.is_code(error, "TIMEOUT"):
                    continue
                # A lost GPU fails the wait for all of them: whatever comes now nobody hears.
                self._note(list(handles.values()), _refusal(error, step))
                return
            address = handles.get(_number(data.device), "")
            self._tell(address, time.monotonic(), int(data.eventType), int(data.eventData))

    def _note(self, addresses: Sequence[str], found: Reading) -> None:
        with self._lock:
            self._listening.update(dict.fromkeys(addresses, found))


def _refusal(error: Exception, step: str) -> Reading:
    pynvml = nvml_library.pynvml
    words = describe(pynvml, step, error)
    lacking: List[int] = [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND]
    return reading.not_supported(words) if error_code(pynvml, error) in lacking else reading.error(words)


def _number(handle: Any) -> int:
    return int(ctypes.cast(handle, ctypes.c_void_p).value or 0)
