"""QEMU 10 or later: the system's, or Debian's backport unpacked beside it.

QEMU 7.2 does not carry AER messages to the root port, and has no GPU stand-in with AER of its own.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodeprep.sim.vm import cache
from nodeprep.sim.vm.archive import archive
from nodeprep.sim.vm.programs import VmError, run
from nodeprep.sim.vm.recipe import SUITE

_OLDEST = (10, 0)
_SUITE = f"{SUITE}-backports"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_PACKAGES = ("qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios")
_ENTRY = f"qemu-{_SUITE}-1"
_DOWNLOAD_S = 600.0


@dataclass(frozen=True, slots=True)
class Qemu:
    """One QEMU.

    Attributes:
        words: The program and where it finds its firmware.
        environment: What it needs in its environment.
    """

    words: tuple[str, ...]
    environment: dict[str, str]


def qemu(say: Callable[[str], None]) -> Qemu:
    """A QEMU new enough for the rack.

    Raises:
        VmError: It cannot be had, or does not run.
    """
    system = shutil.which("qemu-system-x86_64")
    if system is not None and _version(Qemu((system,), {})) >= _OLDEST:
        return Qemu((system,), {})
    root = cache.entry(_ENTRY, lambda work: _unpack(work, say)) / "root"
    share = root / "usr/share"
    binary = root / "usr/bin/qemu-system-x86_64"
    words = (str(binary), "-L", str(share / "qemu"), "-L", str(share / "seabios"))
    found = Qemu(words, {"QEMU_MODULE_DIR": str(root / "usr/lib/x86_64-linux-gnu/qemu")})
    if _version(found) < _OLDEST:
        raise VmError(f"{_SUITE} has no QEMU {_OLDEST[0]} or later")
    return found


def _version(found: Qemu) -> tuple[int, int]:
    said = run([*found.words, "--version"])
    match = re.search(r"version (\d+)\.(\d+)", said)
    if match is None:
        raise VmError(f"{found.words[0]} tells no version: {said[:100]}")
    return int(match[1]), int(match[2])


def _unpack(work: Path, say: Callable[[str], None]) -> None:
    """The system's own package lists and QEMU stay as they are."""
    say(f"fetching QEMU from {_SUITE}")
    packages = work / "packages"
    for made in (packages, work / "apt/lists/partial", work / "apt/cache/archives/partial"):
        made.mkdir(parents=True)
    sources = work / "apt/sources.list"
    sources.write_text(f"deb [signed-by={_KEYRING}] {archive(SUITE)} {_SUITE} main\n")
    options = [
        *("-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-"),
        *("-o", f"Dir::State::lists={work / 'apt/lists'}", "-o", f"Dir::Cache={work / 'apt/cache'}"),
        *("-o", "APT::Sandbox::User=root"),
    ]
    run(["apt-get", *options, "-qq", "update"], timeout_s=_DOWNLOAD_S)
    run(["apt-get", *options, "-qq", "download", *_PACKAGES], timeout_s=_DOWNLOAD_S, cwd=packages)
    for package in sorted(packages.glob("*.deb")):
        run(["dpkg", "-x", package, work / "root"], timeout_s=_DOWNLOAD_S)
    shutil.rmtree(packages)
    shutil.rmtree(work / "apt")
