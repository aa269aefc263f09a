"""A stand-in for nvidia-persistenced: persistence on while it runs, and off when it ends."""

import ctypes
import signal
import sys


def set_persistence(mode: int) -> None:
    """Sets it on every GPU."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    nvml.nvmlInitWithFlags(0)
    count = ctypes.c_uint()
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    for index in range(count.value):
        handle = ctypes.c_void_p()
        nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
        nvml.nvmlDeviceSetPersistenceMode(handle, mode)


if "--no-persistence-mode" not in sys.argv:
    set_persistence(1)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
# Also where it did not turn it on: the real daemon lets go of the GPUs when it ends.
set_persistence(0)
