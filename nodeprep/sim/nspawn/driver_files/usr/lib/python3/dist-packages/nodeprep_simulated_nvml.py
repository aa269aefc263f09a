"""The NVIDIA driver library of a simulated GPU host, for every Python program on it.

A program that opens libnvidia-ml.so.1, as nvidia-ml-py does, gets the simulated library of
/usr/lib/nodeprep instead. The .pth file beside this one has Python import it at start.
"""

import ctypes
import importlib.util
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_SOURCE = "/usr/lib/nodeprep/simulated_nvml.py"
_Real = ctypes.CDLL


def _library() -> Any:
    spec = importlib.util.spec_from_file_location("simulated_nvml", _SOURCE)
    if spec is None or spec.loader is None:
        raise OSError(f"{_SOURCE} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Library("/")


class _Opener(_Real):
    """dlopen, for all names but one."""

    def __new__(cls, name: Any = None, *arguments: Any, **more: Any) -> Any:  # noqa: ARG004
        return _library() if name == _LIBRARY else super().__new__(cls)


ctypes.CDLL = _Opener  # type: ignore[misc]
