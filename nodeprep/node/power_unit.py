"""The systemd unit that sets the power limit again after every boot and restart of nvidia-persistenced.

NVML keeps a limit only as long as the driver stays loaded, and nvidia-persistenced has no option for it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import durable
from .paths import exists, is_real, list_folder, under
from .reading import NotSupported

NODE_PYZ = "/usr/local/lib/nodeprep/node.pyz"
CONFIG = "/etc/nodeprep/gpu_power.json"
UNIT = "nodeprep-gpu-power.service"
UNIT_FILE = "/etc/systemd/system/" + UNIT
ENABLED_LINK = "/etc/systemd/system/multi-user.target.wants/" + UNIT
PERSISTENCED = "nvidia-persistenced.service"
DROP_IN = f"/etc/systemd/system/{PERSISTENCED}.d/90-nodeprep.conf"
TRAP = "--no-persistence-mode"

# Seconds the unit may take: after a cold boot, GPUs of a large baseboard answer late.
START_TIMEOUT_S = 300
SYSTEMCTL_TIMEOUT_S = 60

# In systemd's order of precedence.
UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)

_UNIT_TEXT = """\
[Unit]
Description=GPU power limit and persistence, set by nodeprep
Wants={persistenced}
After={persistenced}
# The daemon's restart can let go of the GPUs and of their limits with them.
PartOf={persistenced}

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={python} {pyz} gpu-power --apply
TimeoutStartSec={timeout}

[Install]
WantedBy=multi-user.target
"""

_DROP_IN_TEXT = """\
# nodeprep: the packaged unit starts the daemon with {trap}; it then runs and does nothing.
[Service]
ExecStart=
ExecStart={command}
"""


# Path to content now and content wanted; None for no file.
FileChanges = Dict[str, Tuple[Optional[str], Optional[str]]]


class UnitError(Exception):
    """systemd refused; the message holds its words."""


@dataclass(frozen=True)
class Persistence:
    """What makes the settings last.

    Attributes:
        files: Path to wanted content, None for a file that must not be there.
        obstacle: Why nothing can be set up on this node, "" when it can.
    """

    files: Dict[str, Optional[str]]
    obstacle: str

    def changes(self, root: str) -> FileChanges:
        """Files that differ from what they should be."""
        now = {path: durable.content(root, path) for path in self.files}
        return {path: (now[path], text) for path, text in self.files.items() if now[path] != text}


@dataclass(frozen=True)
class State:
    """How the unit stands.

    Attributes:
        enabled: It starts with the machine.
        active: It has run without error; in a simulated root, where nothing runs it, as enabled.
    """

    enabled: bool
    active: bool


def plan(root: str, config: Mapping[str, object], node_pyz: Optional[str]) -> Persistence:
    """What files should be there for these settings.

    Args:
        root: "/" or a simulated root.
        config: Content of CONFIG: limit and persistence as asked for, None for what is left alone.
        node_pyz: The program on the node that the unit runs.
    """
    # A unit that is there is told to set nothing; where there is none, none is needed for that.
    nothing = all(value is None for value in config.values()) and durable.content(root, CONFIG) is None
    obstacle = "nothing was asked for" if nothing else _obstacle(root, node_pyz)
    if obstacle:
        return Persistence({}, obstacle)
    unit = _UNIT_TEXT.format(
        persistenced=PERSISTENCED, python=_python(root), pyz=node_pyz, timeout=START_TIMEOUT_S
    )
    files: Dict[str, Optional[str]] = {
        CONFIG: json.dumps(dict(config), indent=2, sort_keys=True) + "\n",
        UNIT_FILE: unit,
        DROP_IN: _drop_in(root) if config.get("persistence") else None,
    }
    return Persistence(files, "")


def state(root: str) -> State:
    """How the unit stands now."""
    enabled = os.path.islink(under(root, ENABLED_LINK))
    if not is_real(root):
        return State(enabled, active=enabled)
    return State(enabled, active=_systemd_runs(root) and says(root, "is-active"))


def in_force(root: str) -> bool:
    """True when the unit starts with the machine and, where systemd can say, has run without error."""
    now = state(root)
    return now.enabled and now.active


def observe(root: str) -> Dict[str, Any]:
    """What the unit will do at the next boot: enabled, limit ("" for none), persistence.

    Raises:
        NotSupported: systemd does not run here.
        OSError: The configuration may not be read.
        ValueError: It is damaged.
    """
    if not _systemd_runs(root):
        raise NotSupported("systemd does not run here, so nothing sets GPU power at boot")
    try:
        config = configured(root)
    except ValueError:
        # The unit would fail on it at boot; the file is nodeprep's own, and apply writes it anew.
        return {"enabled": False, "limit": "", "persistence": None}
    return {
        "enabled": in_force(root),
        "limit": config["limit"] or "",
        "persistence": config["persistence"],
    }


def put_files(root: str, files: Dict[str, Optional[str]]) -> None:
    """Writes files of a plan, and makes a changed drop-in of the daemon take effect.

    The daemon is restarted before limits are set, because its restart can drop them.

    Raises:
        OSError: A file cannot be written.
        UnitError: systemd refused.
    """
    for path, text in files.items():
        durable.put(root, path, text)
    if files:
        systemctl(root, "daemon-reload")
    if DROP_IN in files:
        systemctl(root, "try-restart", PERSISTENCED)


def enable(root: str) -> None:
    """Makes the unit start with the machine, and starts it now: that proves that it works.

    Raises:
        OSError: The link cannot be made (simulated root).
        UnitError: systemd refused, or the unit failed.
    """
    if is_real(root):
        systemctl(root, "enable", UNIT)
        systemctl(root, "restart", UNIT, timeout_s=START_TIMEOUT_S)
        return
    link = under(root, ENABLED_LINK)
    os.makedirs(os.path.dirname(link), exist_ok=True)
    if not os.path.islink(link):
        os.symlink("../" + UNIT, link)


def remove(root: str) -> List[str]:
    """Takes unit, configuration and drop-in away; returns the paths that were there.

    Raises:
        OSError: A file cannot be removed.
        UnitError: systemd refused.
    """
    there = [path for path in (UNIT_FILE, DROP_IN, CONFIG) if durable.content(root, path) is not None]
    if os.path.islink(under(root, ENABLED_LINK)):
        systemctl(root, "disable", UNIT)
        durable.put(root, ENABLED_LINK, None)
    if UNIT_FILE in there:
        systemctl(root, "stop", UNIT)
    put_files(root, dict.fromkeys(there))
    return there


def systemctl(root: str, *arguments: str, timeout_s: float = SYSTEMCTL_TIMEOUT_S) -> None:
    """Runs systemctl; does nothing in a simulated root, or where systemd does not run.

    Raises:
        UnitError: It failed or took too long.
    """
    if not is_real(root) or not _systemd_runs(root):
        return
    command = ["systemctl", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnitError(f"{shlex.join(command)}: {error}") from error
    if done.returncode:
        words = done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}"
        raise UnitError(f"{shlex.join(command)}: {words}")


def says(root: str, question: str) -> bool:
    """What systemctl answers to "is-active" or "is-failed" about the unit."""
    try:
        systemctl(root, question, "--quiet", UNIT)
    except UnitError:
        return False
    return True


def daemon_command(root: str) -> str:
    """How nvidia-persistenced is started without nodeprep's drop-in, "" when there is no such unit."""
    unit = next((f"{folder}/{PERSISTENCED}" for folder in UNIT_FOLDERS if _is_unit(root, folder)), "")
    if not unit:
        return ""
    commands: List[str] = []
    for path in [unit, *_drop_ins(root)]:
        for value in _exec_starts(durable.content(root, path) or ""):
            # An empty assignment takes back all earlier ones.
            commands = [*commands, value] if value else []
    return commands[0] if commands else ""


def configured(root: str) -> Dict[str, Any]:
    """Limit and persistence from CONFIG; None for what it does not set, or without CONFIG.

    Raises:
        OSError: It may not be read.
        ValueError: It is damaged.
    """
    text = durable.content(root, CONFIG)
    if text is None:
        return {"limit": None, "persistence": None}
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{CONFIG} is damaged: {error}") from error
    if not isinstance(config, dict) or set(config) != {"limit", "persistence"}:
        raise ValueError(f"{CONFIG} is damaged: it should hold limit and persistence")
    return config


def _obstacle(root: str, node_pyz: Optional[str]) -> str:
    if not _systemd_runs(root):
        return "systemd does not run here"
    if node_pyz is None:
        return "no program was named for the unit to run"
    if not exists(root, node_pyz):
        return f"there is no {node_pyz} on this node for the unit to run"
    return ""


def _systemd_runs(root: str) -> bool:
    return os.path.isdir(under(root, "/run/systemd/system"))


def _python(root: str) -> str:
    # The system's own Python outlives the virtual environment that may be running this.
    return "/usr/bin/python3" if exists(root, "/usr/bin/python3") else sys.executable


def _drop_in(root: str) -> Optional[str]:
    words = shlex.split(daemon_command(root))
    if TRAP not in words:
        return None
    command = shlex.join([word for word in words if word != TRAP])
    return _DROP_IN_TEXT.format(trap=TRAP, command=command)


def _is_unit(root: str, folder: str) -> bool:
    return os.path.isfile(under(root, f"{folder}/{PERSISTENCED}"))


def _drop_ins(root: str) -> List[str]:
    """Drop-ins other than nodeprep's, in the order systemd reads them: by name over all folders."""
    found: Dict[str, str] = {}
    for folder in reversed(UNIT_FOLDERS):
        place = f"{folder}/{PERSISTENCED}.d"
        names = list_folder(root, place) if exists(root, place) else []
        found.update({name: f"{place}/{name}" for name in names if name.endswith(".conf")})
    return [found[name] for name in sorted(found) if found[name] != DROP_IN]


def _exec_starts(text: str) -> List[str]:
    section = ""
    values = []
    for line in text.replace("\\\n", " ").splitlines():
        stripped = line.strip()
        if stripped.startswith("["):
            section = stripped
        elif section == "[Service]" and stripped.partition("=")[0].strip() == "ExecStart":
            values.append(stripped.partition("=")[2].strip())
    return values
