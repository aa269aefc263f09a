"""Build hook: puts the one file of nvidia-ml-py beside the node code.

A node has the NVIDIA driver but seldom the Python bindings, and may reach no index. The bindings
are one pure-Python file, so they travel with the node code instead of being installed there.
"""

import importlib.util
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class VendorNvml(BuildHookInterface):  # type: ignore[type-arg]
    """Copies pynvml.py from the build environment into nodeprep/node/vendor/."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Runs before the files of a wheel, an editable install or an sdist are chosen."""
        spec = importlib.util.find_spec("pynvml")
        if spec is None or spec.origin is None:
            raise RuntimeError("nvidia-ml-py is missing from the build environment")
        target = Path(self.root) / "nodeprep" / "node" / "vendor"
        target.mkdir(parents=True, exist_ok=True)
        (target / "__init__.py").write_text('"""Third-party code that travels to nodes."""\n')
        shutil.copyfile(spec.origin, target / "pynvml.py")
