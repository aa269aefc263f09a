"""Build hook: puts the one file of nvidia-ml-py beside the node code, and files where links are.

A node has the NVIDIA driver but seldom the Python bindings, and may reach no index. The bindings
are one pure-Python file, so they travel with the node code instead of being installed there.
"""

import importlib.util
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RACK = "nodeprep/ansible_collections/nodeprep/rack"
# The links of the collection. hatchling follows links but walks every folder once, so it would find
# nodeprep/node under the link's name only. Named here, each link is left out of that walk and its
# files are put in place separately. (With `packages = [...]` in pyproject.toml the walk would not
# look at this list.)
LINKS = (f"{RACK}/playbooks", f"{RACK}/plugins/module_utils/node", f"{RACK}/roles")


class PackageContent(BuildHookInterface):  # type: ignore[type-arg]
    """Copies pynvml.py into nodeprep/node/vendor/; puts files where the checkout has links."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before the files of a wheel, an editable install or an sdist are chosen."""
        self._vendor_nvml()
        # An editable install uses the links themselves.
        if version != "editable":
            build_data["force_include"].update({str(Path(self.root) / link): link for link in LINKS})

    def _vendor_nvml(self) -> None:
        spec = importlib.util.find_spec("pynvml")
        if spec is None or spec.origin is None:
            raise RuntimeError("nvidia-ml-py is missing from the build environment")
        vendor = Path(self.root) / "nodeprep" / "node" / "vendor"
        vendor.mkdir(parents=True, exist_ok=True)
        _put(vendor / "__init__.py", b'"""Third-party code that travels to nodes."""\n')
        _put(vendor / "pynvml.py", Path(spec.origin).read_bytes())


def _put(path: Path, content: bytes) -> None:
    """In one step, and only when it differs: an editable install may be in use while this runs."""
    if path.is_file() and path.read_bytes() == content:
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)
