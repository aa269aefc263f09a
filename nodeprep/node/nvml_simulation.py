"""The simulated driver library that a root may hold. Apart from nvidia-ml-py, which takes long to import."""

from __future__ import annotations

import os
import types

from .paths import is_real

SIMULATED_LIBRARY = "usr/lib/nodeprep/simulated_nvml.py"

_simulations: dict[str, types.ModuleType] = {}


def simulation(root: str) -> types.ModuleType | None:
    """The simulated driver library of a root as a module, None where there is none.

    The module also has `begin_load(root, address)`, `end_load(root, address)`, `flips(root)` and
    `peer_faults(root)`.
    """
    if is_real(root):
        return None
    path = os.path.join(os.path.realpath(root), SIMULATED_LIBRARY)
    if path not in _simulations:
        try:
            with open(path, "rb") as file:
                source = file.read()
        except FileNotFoundError:
            return None
        # Not importlib: that would leave a __pycache__ behind in the root.
        module = types.ModuleType("nodeprep_simulated_nvml")
        module.__file__ = path
        exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102 - the root's own library
        _simulations[path] = module
    return _simulations[path]
