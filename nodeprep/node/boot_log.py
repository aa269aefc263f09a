"""What the kernel said when it booted, also after the ring buffer has wrapped.

Grants and refusals are told once, early; a node that is up for weeks may have them in the journal only.
"""

from __future__ import annotations

import subprocess
from typing import List

from .paths import is_real
from .reading import Reading

_DEADLINE_S = 15.0


def boot_lines(root: str, records: Reading) -> List[str]:
    """All lines of this boot from its first one on.

    Args:
        root: Root of the machine.
        records: All kernel log records (kernel_log.Record), oldest first.

    Raises:
        OSError: The log cannot be read, or neither it nor the journal has the beginning.
        TimeoutError: The journal did not answer.
    """
    if records["state"] != "ok":
        raise OSError(f"the kernel log is unreadable: {records['detail']}")
    lines = [record.text for record in records["value"]]
    if not lines:
        raise OSError("the kernel log is empty")
    if records["value"][0].sequence == 0:
        return lines
    if not is_real(root):
        raise OSError("the early kernel log is overwritten")
    kept = journal_lines()
    if not any(line.startswith("Linux version ") for line in kept):
        raise OSError("the early kernel log is overwritten, and the journal does not have it")
    return [*kept, *lines]


def journal_lines() -> List[str]:
    """The kernel's lines of this boot as the journal kept them.

    Raises:
        OSError: There is no journal, or it cannot be read.
        TimeoutError: It did not answer.
    """
    try:
        answer = subprocess.run(
            ["journalctl", "--dmesg", "--boot", "--output=cat", "--no-pager"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"journalctl did not answer within {_DEADLINE_S:.0f} s") from None
    if answer.returncode != 0:
        raise OSError(f"journalctl failed: {answer.stderr.strip() or answer.returncode}")
    return answer.stdout.splitlines()
