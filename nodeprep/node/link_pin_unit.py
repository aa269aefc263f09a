"""The systemd unit that pins GPU links again at every boot, before the GPUs' driver loads.

A port's target speed is lost at power-off and firmware writes its own; no kernel argument sets it.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import durable
from .paths import exists, is_real, under
from .power_unit import UnitError, systemctl
from .reading import NotSupported

CONFIG = "/etc/nodeprep/pcie_link.json"
SCHEMA = "nodeprep.pcie_link/1"
UNIT = "nodeprep-pcie-link.service"
UNIT_FILE = "/etc/systemd/system/" + UNIT
ENABLED_LINK = "/etc/systemd/system/sysinit.target.wants/" + UNIT

# Each port: a second to finish training of its own, one to train anew, one for the GPU to answer.
START_TIMEOUT_S = 90

# The NVIDIA module is loaded by udev (its module alias) or by systemd-modules-load. Nothing is asked
# to be mounted before: a mount that waits for its disk waits for udev, and udev waits for this unit.
_UNIT_TEXT = """\
[Unit]
Description=PCIe generation of the GPUs' links, pinned by nodeprep
DefaultDependencies=no
Before=systemd-udev-trigger.service systemd-modules-load.service nvidia-persistenced.service sysinit.target
Conflicts=shutdown.target
Before=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={python} {pyz} link-pin --apply
TimeoutStartSec={timeout}

[Install]
WantedBy=sysinit.target
"""

# Path to content now and content wanted; None for no file.
FileChanges = Dict[str, Tuple[Optional[str], Optional[str]]]


@dataclass(frozen=True)
class Pin:
    """One port as the unit is to find it again.

    Attributes:
        port: PCI address of the port.
        gpu: PCI address of the GPU below it.
        port_id: "vendor:device" of the port.
        path: Where the port is, without bus numbers that change with other hardware:
            "0000:15:01.0/00.0/02.0", the root port with device and function of each port below it.
    """

    port: str
    gpu: str
    port_id: str
    path: str


@dataclass(frozen=True)
class Config:
    """Content of CONFIG."""

    gen: int
    pins: Tuple[Pin, ...]

    def text(self) -> str:
        """As it is written."""
        document = {"schema": SCHEMA, "gen": self.gen, "links": [vars(pin) for pin in self.pins]}
        return json.dumps(document, indent=2, sort_keys=True) + "\n"


def configured(root: str) -> Optional[Config]:
    """What the unit is to pin; None when nodeprep has told it nothing.

    Raises:
        OSError: CONFIG may not be read.
        ValueError: It is damaged.
    """
    text = durable.content(root, CONFIG)
    if text is None:
        return None
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA or isinstance(document["gen"], bool):
            raise ValueError(f"it is no {SCHEMA} document")
        pins = tuple(_pin(entry) for entry in document["links"])
        return Config(int(document["gen"]), pins)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{CONFIG} is damaged: {error!r}") from error


def files(root: str, config: Config, node_pyz: str) -> FileChanges:
    """Files that differ from what they should be for these pins.

    Raises:
        OSError: One may not be read.
    """
    unit = _UNIT_TEXT.format(python=_python(root), pyz=node_pyz, timeout=START_TIMEOUT_S)
    wanted = {CONFIG: config.text(), UNIT_FILE: unit}
    now = {path: durable.content(root, path) for path in wanted}
    return {path: (now[path], text) for path, text in wanted.items() if now[path] != text}


def obstacle(root: str, node_pyz: Optional[str], *, program_to_come: bool = False) -> str:
    """Why the unit cannot work on this node, "" when it can.

    Args:
        root: "/" or a simulated root.
        node_pyz: The program on the node that the unit runs.
        program_to_come: It need not be there yet: in check mode nobody has put it there.

    Raises:
        OSError: The program's file system cannot be known.
    """
    if not _systemd_runs(root):
        return "systemd does not run here"
    if node_pyz is None:
        return "no program was named for the unit to run"
    if not exists(root, node_pyz):
        if program_to_come:
            return ""
        return f"there is no {node_pyz} on this node for the unit to run"
    if is_real(root) and not _there_at_early_boot(node_pyz):
        return f"{node_pyz} is on a file system that is mounted after the driver loads"
    return ""


def put_files(root: str, changes: Mapping[str, Optional[str]]) -> None:
    """Writes files and tells systemd.

    Raises:
        OSError: A file cannot be written.
        UnitError: systemd refused.
    """
    for path, text in changes.items():
        durable.put(root, path, text)
    if changes:
        systemctl(root, "daemon-reload")


def enable(root: str) -> None:
    """Makes the unit start with the machine; in a simulated root by the link that systemd would make.

    Raises:
        OSError: The link cannot be made.
        UnitError: systemd refused.
    """
    if is_real(root):
        systemctl(root, "enable", UNIT)
        return
    link = under(root, ENABLED_LINK)
    os.makedirs(os.path.dirname(link), exist_ok=True)
    if not os.path.islink(link):
        os.symlink("../" + UNIT, link)


def start(root: str) -> None:
    """Runs it now, which proves that it works; with all links pinned it changes nothing.

    Raises:
        UnitError: It failed.
    """
    systemctl(root, "restart", UNIT, timeout_s=START_TIMEOUT_S)


def remove(root: str) -> List[str]:
    """Takes unit and configuration away; returns the paths that were there.

    Raises:
        OSError: A file cannot be removed.
        UnitError: systemd refused.
    """
    there = [path for path in (UNIT_FILE, CONFIG) if durable.content(root, path) is not None]
    if enabled(root):
        systemctl(root, "disable", UNIT)
        durable.put(root, ENABLED_LINK, None)
    if UNIT_FILE in there:
        systemctl(root, "stop", UNIT)
        if is_failed(root):
            systemctl(root, "reset-failed", UNIT)
    put_files(root, dict.fromkeys(there))
    return there


def enabled(root: str) -> bool:
    """It starts with the machine."""
    return os.path.islink(under(root, ENABLED_LINK))


def is_active(root: str) -> bool:
    """It has run in this boot without error; in a simulated root, where nothing runs it, as enabled."""
    return _says(root, "is-active") if is_real(root) else enabled(root)


def is_failed(root: str) -> bool:
    """It has run in this boot and failed; never in a simulated root, where nothing runs it."""
    return is_real(root) and _says(root, "is-failed")


def observe(root: str) -> Dict[str, Any]:
    """What the unit will do at the next boot: enabled, gen (None for nothing), ports.

    Raises:
        NotSupported: systemd does not run here.
        OSError: The configuration may not be read.
    """
    if not _systemd_runs(root):
        raise NotSupported("systemd does not run here, so nothing pins links at boot")
    try:
        config = configured(root)
    except ValueError:
        # The unit fails on it at boot; the file is nodeprep's own, and apply writes it anew.
        config = None
    return {
        "enabled": config is not None and enabled(root) and not is_failed(root),
        "gen": config.gen if config else None,
        "ports": [pin.port for pin in config.pins] if config else [],
    }


def _pin(entry: Mapping[str, str]) -> Pin:
    pin = Pin(**entry)
    if not all(isinstance(value, str) and value for value in vars(pin).values()):
        raise ValueError(f"no port: {entry}")
    return pin


def _says(root: str, question: str) -> bool:
    if not _systemd_runs(root):
        return False
    try:
        systemctl(root, question, "--quiet", UNIT)
    except UnitError:
        return False
    return True


def _there_at_early_boot(path: str) -> bool:
    """On the file system of / or of /usr, which the kernel or the initramfs mounts."""
    early = {os.stat(place)[stat.ST_DEV] for place in ("/", "/usr") if os.path.isdir(place)}
    return os.stat(path)[stat.ST_DEV] in early


def _systemd_runs(root: str) -> bool:
    return os.path.isdir(under(root, "/run/systemd/system"))


def _python(root: str) -> str:
    # The system's own Python outlives the virtual environment that may be running this.
    return "/usr/bin/python3" if exists(root, "/usr/bin/python3") else sys.executable
