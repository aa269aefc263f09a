"""The BMC's password: from the environment, Ansible's vault or a file, and from nowhere else."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from nodeprep.errors import UsageError

ENVIRONMENT = "NODEPREP_BMC_PASSWORD"
FILE_VARIABLE = "nodeprep_bmc_password_file"
VAULT_VARIABLE = "nodeprep_bmc_password"
_LONGEST_FILE = 1024
_FOR_OTHERS = stat.S_IROTH | stat.S_IWOTH


def read_password(
    path: Path | None, environment: Mapping[str, str], vaulted: str | None = None, *, option: str = ""
) -> str:
    """The password for one BMC. The environment, set for this one run, comes before the others.

    Args:
        path: The file named in the inventory, if any; a newline at its end is not part of the password.
        vaulted: What the inventory itself holds, opened; None for nothing.
        option: Of the command line, where that and no inventory names the file.

    Raises:
        UsageError: There is none, or the file cannot be used. The text never holds what was read.
    """
    given = environment.get(ENVIRONMENT, "")
    if given:
        return _usable(given, ENVIRONMENT)
    if vaulted is not None:
        return _usable(vaulted, VAULT_VARIABLE)
    if path is None:
        places = (
            f"{ENVIRONMENT}, or {option} FILE"
            if option
            else f"{ENVIRONMENT}, a file named by {FILE_VARIABLE}, or {VAULT_VARIABLE} in Ansible's vault"
        )
        raise UsageError("the BMC's password is not given", hint=places)
    return _usable(_text(_bytes(path, option or FILE_VARIABLE), path), str(path))


def _bytes(path: Path, named_by: str) -> bytes:
    try:
        # Without O_NONBLOCK the name of a pipe would wait for a writer that never comes.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", hint=f"{named_by} must name a file you can read"
        ) from error
    try:
        # Asked of the open file, so that what is judged is what is read.
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise UsageError(f"{path} is not a file", hint="put the password alone into a file of mode 0600")
        if about.st_mode & _FOR_OTHERS:
            raise UsageError(
                f"{path} is open to every user of this machine (mode {stat.S_IMODE(about.st_mode):04o})",
                hint=f"chmod 600 {path}, and change the password: others may have read it",
            )
        data = os.read(descriptor, _LONGEST_FILE + 1)
    finally:
        os.close(descriptor)
    if len(data) > _LONGEST_FILE:
        raise UsageError(f"{path} is too long for a password", hint="the file must hold the password alone")
    return data


def _text(data: bytes, path: Path) -> str:
    text = data.decode("utf-8", "replace")
    # Compared, not caught: the exception of a strict decoder carries the bytes.
    if text.encode() != data:
        raise UsageError(f"{path} is not text in UTF-8", hint="the file must hold the password alone")
    return text.removesuffix("\n").removesuffix("\r")


def _usable(password: str, source: str) -> str:
    if not password:
        raise UsageError(f"{source} is empty", hint="write the BMC's password into it")
    if any(ord(character) < 32 or ord(character) == 127 for character in password):
        raise UsageError(
            f"the password in {source} has a line break or another control character",
            hint="the password must stand alone, on one line",
        )
    return password
