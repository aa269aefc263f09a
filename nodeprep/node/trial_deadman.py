"""The dead-man's switch of a trial boot: a unit on the node that reboots it unless somebody confirms.

It runs only on a boot with the trial's marker, in emergency and rescue mode too, and needs neither
network nor D-Bus nor the journal. The reboot goes through the kernel's own door: where init or a disk
hangs, `systemctl reboot` and even its --force --force (which syncs first) would hang with it.
Source: systemd.unit(5), systemctl(1), Documentation/admin-guide/sysrq.rst (writing to
/proc/sysrq-trigger is not subject to kernel.sysrq).
"""

from __future__ import annotations

import os

from . import durable, trial_folders
from .paths import is_real, under
from .power_unit import UnitError, systemctl
from .trial_words import MARKER

UNIT = "nodeprep-trial.service"
UNIT_FILE = "/etc/systemd/system/" + UNIT
# emergency.target does not pull in sysinit.target, so each has to want the unit.
WANTED_BY = ("sysinit.target", "emergency.target", "rescue.target")
LINKS = tuple(f"/etc/systemd/system/{target}.wants/{UNIT}" for target in WANTED_BY)

# Less than that, and a slow node reboots while it is being judged; more, and nobody waits for it.
MIN_CONFIRM_S, MAX_CONFIRM_S = 120, 7200

# What `systemctl is-active` says of a unit that does nothing, also of one that is not loaded.
_STOPPED = ("inactive", "failed", "unknown")

# The syncs run beside the countdown to the reset, because on a dead disk they never end.
_UNIT_TEXT = """\
# nodeprep: goes away when the trial of kernel arguments ends. `systemctl stop {unit}` keeps this boot.
[Unit]
Description=Reboot to the old kernel arguments unless nodeprep confirms this trial boot
ConditionKernelCommandLine={marker}
DefaultDependencies=no
IgnoreOnIsolate=yes

[Service]
Type=simple
Environment=PATH=/usr/sbin:/usr/bin:/sbin:/bin
StandardInput=null
StandardOutput=null
StandardError=null
OOMScoreAdjust=-1000
Restart=on-failure
RestartSec=1
ExecStart=/bin/sh -c 'sleep {seconds} || exit 1; \\
  echo "<0>nodeprep: nobody confirmed this trial boot within {seconds} s: back to the old kernel arguments" \\
    > /dev/kmsg; \\
  journalctl --sync & sync & sleep 5; \\
  echo s > /proc/sysrq-trigger; echo u > /proc/sysrq-trigger; sleep 2; echo b > /proc/sysrq-trigger; \\
  systemctl reboot --force --force; exit 1'

[Install]
WantedBy={wanted_by}
"""


def obstacle(root: str) -> str:
    """Why no dead-man's switch can be set up here, "" when it can."""
    if os.path.isdir(under(root, "/run/systemd/system")):
        return ""
    return "systemd does not run here, so nothing on the node reboots a trial boot that nobody confirms"


def install(root: str, confirm_s: int) -> None:
    """Puts the unit where the trial boot finds it; it does not start in this boot.

    Raises:
        OSError: A file cannot be written.
    """
    durable.put(root, UNIT_FILE, _text(confirm_s))
    for link in LINKS:
        _link(root, link)


def in_place(root: str, confirm_s: int) -> bool:
    """Whether the unit is there as it should be.

    Raises:
        OSError: It cannot be read.
    """
    linked = all(os.path.islink(under(root, link)) for link in LINKS)
    return linked and durable.content(root, UNIT_FILE) == _text(confirm_s)


def left(root: str) -> bool:
    """Whether anything of it is on the node."""
    return any(os.path.lexists(under(root, path)) for path in (UNIT_FILE, *LINKS))


def stop(root: str) -> None:
    """Ends the countdown, if one runs: what systemd has loaded counts on without its file, too.

    Raises:
        UnitError: It still runs, or nobody can tell.
    """
    refused = None
    try:
        systemctl(root, "stop", UNIT)
    except UnitError as problem:
        refused = problem
    state = _state(root)
    if state in _STOPPED:
        # A unit that is not loaded cannot be stopped, and need not be.
        return
    if refused is not None:
        raise refused
    if state:
        raise UnitError(f"{UNIT} was stopped, and is {state}: it would reboot this node")


def remove(root: str) -> None:
    """Ends the countdown and takes the unit away.

    Raises:
        OSError: A file cannot be removed.
        UnitError: systemd refused.
    """
    stop(root)
    there = left(root)
    # The unit last: without links it starts on no boot, whenever this is broken off.
    for path in (*LINKS, UNIT_FILE):
        durable.put(root, path, None)
    if there:
        for link in LINKS:
            trial_folders.remove_if_empty(root, os.path.dirname(link))
    if there:
        systemctl(root, "daemon-reload")


def _state(root: str) -> str:
    """What systemd says of the unit; "" where no systemd can be asked."""
    if not is_real(root) or obstacle(root):
        return ""
    try:
        systemctl(root, "is-active", UNIT)
    except UnitError as answer:
        # It fails for every state but "active", and prints the state.
        return str(answer).rpartition(": ")[2]
    return "active"


def _text(confirm_s: int) -> str:
    return _UNIT_TEXT.format(unit=UNIT, marker=MARKER, seconds=confirm_s, wanted_by=" ".join(WANTED_BY))


def _link(root: str, path: str) -> None:
    place = under(root, path)
    if os.path.lexists(place):
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    os.symlink("../" + UNIT, place)
    folder = os.open(os.path.dirname(place), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
