"""Writing results so that neither a kill nor a full disk leaves half a file."""

from __future__ import annotations

import errno
import json
import os
import sys
from typing import Any, Dict, Iterable

RESULT = "result.json"
PROGRESS = "progress.jsonl"
LOG = "probe.log"
RESERVE = ".reserve"
# More than the result of eight GPUs with a hundred mismatches each.
RESERVE_BYTES = 512 << 10


def explain(error: OSError, path: str) -> str:
    """An error of the file system in the user's words."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full: cannot write %s" % path
    return "cannot write %s: %s" % (path, error.strerror or error)


def telemetry_name(address: str) -> str:
    """The telemetry file of a GPU."""
    return "telemetry-%s.json" % address.replace(":", "-").replace(".", "-")


class Folder:
    """The result folder. Space for the result is set aside first, so that a full disk can be reported.

    Args:
        path: The folder; made if need be.
        keep_progress: Progress is added to what is there, as a soak does in its later lives.

    Raises:
        OSError: The folder cannot be made or written.
    """

    def __init__(self, path: str, *, keep_progress: bool = False) -> None:
        self.path = path
        os.makedirs(path, exist_ok=True)
        self._forget_earlier()
        self._set_aside()
        self._progress = open(self.file(PROGRESS), "a" if keep_progress else "w", encoding="utf-8")  # noqa: SIM115 - lives with the run

    def file(self, name: str) -> str:
        """Path of a file in the folder."""
        return os.path.join(self.path, name)

    def progress(self, line: Dict[str, Any]) -> None:
        """Appends a progress line; readers see whole lines only once they end in a newline.

        Raises:
            OSError: It cannot be written.
        """
        self._progress.write(json.dumps(line) + "\n")
        self._progress.flush()

    def close(self) -> None:
        """No more progress is told; a last line that does not fit on the disk is given up."""
        try:
            self._progress.close()
        except OSError as error:
            print(explain(error, PROGRESS), file=sys.stderr)

    def write_telemetry(self, address: str, document: Dict[str, Any]) -> None:
        """Writes one GPU's samples.

        Raises:
            OSError: They cannot be written.
        """
        write_json(self.file(telemetry_name(address)), document)

    def write_result(self, document: Dict[str, Any]) -> None:
        """Writes the result, into the space set aside for it if need be.

        Raises:
            OSError: It cannot be written; then there is no result file.
        """
        _unlink([self.file(RESERVE)])
        write_json(self.file(RESULT), document)

    def _forget_earlier(self) -> None:
        """An earlier run's result must not pass for this one's."""
        names = os.listdir(self.path)
        old = [name for name in names if name.startswith("telemetry-") and name.endswith(".json")]
        _unlink(self.file(name) for name in [RESULT, *old])

    def _set_aside(self) -> None:
        try:
            with open(self.file(RESERVE), "wb") as file:
                file.write(b"\0" * RESERVE_BYTES)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            _unlink([self.file(RESERVE)])
            raise


def write_json(path: str, document: Dict[str, Any]) -> None:
    """Replaces a file in one step.

    Raises:
        OSError: It cannot be written; an existing file is untouched.
    """
    temporary = "%s.%d.new" % (path, os.getpid())
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(document, file, allow_nan=False, sort_keys=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, ValueError):
        _unlink([temporary])
        raise


def _unlink(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
