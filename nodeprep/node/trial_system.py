"""What systemd, its journal and the kernel's crash store say, for the judgement of a trial boot."""

from __future__ import annotations

import os
import subprocess
from typing import Any, Dict, List, Sequence

from .paths import exists, is_real, list_folder, under
from .reading import NotSupported
from .trial_words import marked

_DEADLINE_S = 20.0

# A trial boot that failed may lie a few boots back: people press reset more than once.
_BOOTS_BACK = 3
_TAIL_LINES = 60

# systemd-pstore moves what the firmware kept to the second folder.
_CRASH_STORES = ("/sys/fs/pstore", "/var/lib/systemd/pstore")
_JOURNAL = "/var/log/journal"


def state(root: str) -> str:
    """How systemd says the system is: "running", "degraded", "starting", "maintenance" ...

    Raises:
        NotSupported: systemd does not run here, or the machine is simulated.
        OSError: It does not answer.
    """
    _require_systemd(root)
    # It exits with 1 for everything but "running", and says the state all the same.
    answer = _run(["systemctl", "is-system-running"]).stdout.strip()
    if not answer:
        raise OSError("systemctl is-system-running said nothing")
    return answer


def failed_units(root: str) -> List[str]:
    """Units that failed.

    Raises:
        NotSupported: systemd does not run here, or the machine is simulated.
        OSError: It does not answer.
    """
    _require_systemd(root)
    lines = _words(["systemctl", "list-units", "--failed", "--all", "--plain", "--no-legend", "--no-pager"])
    return sorted(line.split()[0] for line in lines if line.split())


def kernel_lines(root: str, boot: int = 0) -> List[str]:
    """The kernel's lines in the journal, oldest first.

    Args:
        root: "/" or a simulated root, which has no journal.
        boot: 0 for this boot, -1 for the one before it.

    Raises:
        NotSupported: The machine is simulated.
        OSError: The journal does not have that boot, or cannot be read.
    """
    if not is_real(root):
        raise NotSupported("a simulated machine has no journal")
    return _words(["journalctl", "--dmesg", f"--boot={boot}", "--output=cat", "--no-pager"])


def evidence(root: str, trial_id: str) -> Dict[str, Any]:
    """What is left on the node of a trial boot that did not come through.

    Returns:
        kernel_log: Last lines of that boot's kernel log, empty when they are not there.
        kernel_log_note: Why they are not.
        crash_files: What the firmware or systemd kept of a crash, by path.
    """
    lines, note = _lines_of(root, trial_id)
    return {
        "kernel_log": lines[-_TAIL_LINES:],
        "kernel_log_note": note,
        "crash_files": [
            f"{folder}/{name}"
            for folder in _CRASH_STORES
            if os.path.isdir(under(root, folder))
            for name in list_folder(root, folder)
        ],
    }


def _lines_of(root: str, trial_id: str) -> "tuple[List[str], str]":
    if not exists(root, _JOURNAL):
        return [], f"the journal does not outlive a boot: there is no {_JOURNAL}"
    for boot in range(-1, -1 - _BOOTS_BACK, -1):
        try:
            lines = kernel_lines(root, boot)
        except (OSError, NotSupported) as problem:
            return [], f"the journal has no kernel log of the trial boot: {problem}"
        if any(marked(line) == trial_id for line in lines if "ommand line: " in line):
            return lines, ""
    return [], "the trial boot ended before it could write to the journal"


def _require_systemd(root: str) -> None:
    if not is_real(root) or not os.path.isdir(under(root, "/run/systemd/system")):
        raise NotSupported("systemd does not run here")


def _words(command: Sequence[str]) -> List[str]:
    done = _run(command)
    if done.returncode:
        raise OSError(f"{command[0]} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout.splitlines()


def _run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            list(command), capture_output=True, text=True, errors="replace", timeout=_DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{command[0]} did not answer within {_DEADLINE_S:.0f} s") from None
