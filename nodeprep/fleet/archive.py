"""The programs that run on nodes, as one file each: the same bytes wherever they are built.

A certificate names the SHA-256 of the probe that ran. That is only worth something when two
controllers with the same nodeprep build the same file, so nothing of the build machine may enter
it: no times, no modes, no order of a directory listing, and no compression, whose bytes differ
between zlib versions.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from nodeprep.errors import NodeprepError, UsageError

SHEBANG = b"#!/usr/bin/env python3\n"
# The first moment a zip file can express.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE_0644 = 0o100644 << 16
_UNIX = 3


@dataclass(frozen=True, slots=True)
class Program:
    """One program: the packages under nodeprep/ it is made of, and the module whose main() it runs."""

    name: str
    packages: tuple[str, ...]
    main: str


PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program("node", ("node",), "nodeprep.node.__main__"),
        Program("probe", ("node", "probe"), "nodeprep.probe.__main__"),
    )
}


@dataclass(frozen=True, slots=True)
class Archive:
    """A built program.

    Attributes:
        sha256: Lower-case hex digest of `data`.
    """

    name: str
    data: bytes
    sha256: str


@cache
def build(name: str) -> Archive:
    """Builds one of PROGRAMS.

    Raises:
        UsageError: There is no such program.
        NodeprepError: The installation lacks a part of it.
    """
    try:
        program = PROGRAMS[name]
    except KeyError:
        raise UsageError(f"no program {name!r}", hint=f"programs: {', '.join(PROGRAMS)}") from None
    root = resources.files("nodeprep")
    files = {"nodeprep/__init__.py": (root / "__init__.py").read_bytes(), "__main__.py": _main(program)}
    for package in program.packages:
        files.update(_files(root / package, f"nodeprep/{package}"))
    _require(program, files)
    data = pack(files)
    return Archive(name, data, hashlib.sha256(data).hexdigest())


def pack(files: Mapping[str, bytes]) -> bytes:
    """A zip application of the given files: sorted, stored, with one fixed time and mode."""
    buffer = io.BytesIO()
    buffer.write(SHEBANG)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(files):
            entry = zipfile.ZipInfo(path, date_time=_EPOCH)
            entry.create_system = _UNIX
            entry.external_attr = _REGULAR_FILE_0644
            archive.writestr(entry, files[path])
    return buffer.getvalue()


def _main(program: Program) -> bytes:
    return f"import sys\n\nfrom {program.main} import main\n\nsys.exit(main())\n".encode()


def _files(folder: Traversable, path: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name != "__pycache__":
                found.update(_files(entry, f"{path}/{entry.name}"))
        elif not entry.name.endswith((".pyc", ".pyo")):
            found[f"{path}/{entry.name}"] = entry.read_bytes()
    return found


def _require(program: Program, files: Mapping[str, bytes]) -> None:
    main = program.main.replace(".", "/") + ".py"
    for needed in (main, "nodeprep/node/vendor/pynvml.py"):
        if needed not in files:
            raise NodeprepError(
                f"the program {program.name} cannot be built: {needed} is missing from this installation",
                hint="reinstall nodeprep: `pip install --force-reinstall nodeprep`, "
                "or `pip install -e .` in a checkout",
            )
