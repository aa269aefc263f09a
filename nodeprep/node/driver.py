"""Kernel drivers of the GPUs and the persistence daemon."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Any, Dict, List, Optional

from . import link_pin_unit, power_unit
from .boot import kernel_release
from .paths import exists, is_real, list_folder, read_bytes, read_text, under
from .reading import NotSupported, attempt

FIELDS = (
    "nvidia_version",
    "nvidia_open",
    "nvidia_disk_version",
    "nouveau_loaded",
    "persistenced_running",
    "persistenced_no_persistence_mode",
    "gpu_power_unit",
    "pcie_link_unit",
)

_PROC_VERSION = "/proc/driver/nvidia/version"
_MODULE = "/sys/module/nvidia"
_DAEMON = "nvidia-persistenced"
_MODINFO_DEADLINE_S = 10.0
_VERSION = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)")
_MODINFO_VERSION = re.compile(rb"(?:^|\0)version=([0-9.]+)\0")


def collect(root: str) -> Dict[str, Any]:
    """The "driver" part of the facts."""
    daemons = attempt(persistence_daemons, root)
    return {
        "nvidia_version": attempt(nvidia_version, root),
        "nvidia_open": attempt(nvidia_open, root),
        "nvidia_disk_version": attempt(nvidia_disk_version, root),
        "nouveau_loaded": attempt(nouveau_loaded, root),
        "persistenced_running": attempt(lambda: bool(_required(daemons))),
        "persistenced_no_persistence_mode": attempt(lambda: _no_persistence_mode(_required(daemons))),
        "gpu_power_unit": attempt(power_unit.observe, root),
        "pcie_link_unit": attempt(link_pin_unit.observe, root),
    }


def nvidia_version(root: str) -> str:
    """Version of the loaded kernel module.

    Raises:
        NotSupported: None is loaded.
        OSError: It cannot be read.
    """
    _require_module(root)
    match = _VERSION.search(read_text(root, _PROC_VERSION)) if exists(root, _PROC_VERSION) else None
    return match.group(1) if match else read_text(root, f"{_MODULE}/version")


def nvidia_open(root: str) -> bool:
    """True for the open kernel module, false for the closed one.

    Raises:
        NotSupported: None is loaded.
        OSError: The module does not say.
    """
    _require_module(root)
    return "Open Kernel Module" in read_text(root, _PROC_VERSION)


def nvidia_disk_version(root: str) -> str:
    """Version of the module file that the next load would take.

    Raises:
        NotSupported: No module file is installed for the running kernel.
        OSError: It cannot be read, or modinfo did not answer in time.
    """
    modinfo = _modinfo(root)
    if modinfo is None:
        return _version_in_module_file(root)
    try:
        answer = subprocess.run(
            [modinfo, "-F", "version", "nvidia"],
            capture_output=True,
            text=True,
            timeout=_MODINFO_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"modinfo did not answer within {_MODINFO_DEADLINE_S:.0f} s") from None
    if answer.returncode == 0 and answer.stdout.strip():
        return answer.stdout.strip()
    if "not found" in answer.stderr:
        raise NotSupported("no nvidia module file is installed for the running kernel")
    raise OSError(f"modinfo failed: {answer.stderr.strip() or 'no version in its answer'}")


def nouveau_loaded(root: str) -> bool:
    """True when nouveau is in the kernel, where it would keep the NVIDIA driver from the GPUs.

    Raises:
        OSError: The list of modules cannot be read.
    """
    return "nouveau" in list_folder(root, "/sys/module")


def persistence_daemons(root: str) -> List[List[str]]:
    """Argument lists of all running nvidia-persistenced processes.

    Raises:
        OSError: /proc cannot be read.
        PermissionError: /proc hides other users' processes.
    """
    pids = [name for name in list_folder(root, "/proc") if name.isdigit()]
    if is_real(root) and "1" not in pids:
        raise PermissionError("/proc hides other users' processes")
    commands = (_command(root, pid) for pid in pids)
    return [command for command in commands if command and os.path.basename(command[0]) == _DAEMON]


def _no_persistence_mode(daemons: List[List[str]]) -> bool:
    if not daemons:
        raise NotSupported("nvidia-persistenced is not running")
    return any("--no-persistence-mode" in command for command in daemons)


def _require_module(root: str) -> None:
    if exists(root, "/sys/module") and not exists(root, _MODULE) and not exists(root, _PROC_VERSION):
        raise NotSupported("no NVIDIA kernel module is loaded")


def _required(reading: Dict[str, Any]) -> List[List[str]]:
    if reading["state"] != "ok":
        raise OSError(reading["detail"])
    return reading["value"]  # type: ignore[no-any-return]


def _command(root: str, pid: str) -> List[str]:
    try:
        content = read_bytes(root, f"/proc/{pid}/cmdline")
    except (FileNotFoundError, ProcessLookupError):
        return []  # it ended while we looked
    return [argument.decode("utf-8", "replace") for argument in content.split(b"\0") if argument]


def _modinfo(root: str) -> Optional[str]:
    if not is_real(root):
        return None
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/bin", "/bin"])
    return shutil.which("modinfo", path=search)


def _version_in_module_file(root: str) -> str:
    """Reads the .modinfo strings of an uncompressed module file, as modinfo would."""
    top = under(root, f"/lib/modules/{kernel_release(root)}")
    for folder, _, names in os.walk(top):
        for name in names:
            if name == "nvidia.ko":
                with open(os.path.join(folder, name), "rb") as file:
                    match = _MODINFO_VERSION.search(file.read())
                if match is None:
                    raise ValueError(f"{name} carries no version")
                return match.group(1).decode()
            if name.startswith("nvidia.ko."):
                raise OSError(f"{name} is compressed and there is no modinfo to read it")
    raise NotSupported("no nvidia module file is installed for the running kernel")
