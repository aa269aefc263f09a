"""Which NVML library the real nvidia-ml-py talks to: the driver's, or a simulated one in a root.

One process talks to one library at a time: nvidia-ml-py keeps it in module globals.
"""

from __future__ import annotations

import os
from typing import Any

from .nvml_simulation import SIMULATED_LIBRARY, simulation
from .paths import is_real
from .vendor import pynvml

__all__ = ["SIMULATED_LIBRARY", "bind", "is_real", "load", "pynvml", "simulation"]


def bind(root: str = "/") -> Any:
    """Points nvidia-ml-py at the library of a root, without initialising it.

    Raises:
        pynvml.NVMLError: LIBRARY_NOT_FOUND, as on a node without the driver.
    """
    # nvidia-ml-py remembers entry points by name, also those of a library bound before.
    pynvml._nvmlGetFunctionPointer_cache.clear()
    pynvml.nvmlLib = None
    if is_real(root):
        pynvml._LoadNvmlLibrary()
        return pynvml
    module = simulation(root)
    if module is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    pynvml.nvmlLib = module.Library(os.path.realpath(root))
    return pynvml


def load(root: str = "/") -> Any:
    """nvidia-ml-py, bound to the library of a root and initialised.

    Raises:
        pynvml.NVMLError: No library, or it would not start. May also hang, as NVML does on a GPU
            whose firmware no longer answers: see nvml_child for a way to survive that.
    """
    bind(root).nvmlInit()
    return pynvml
