"""Restore points of BIOS settings, on the controller: how a BIOS was before nodeprep changed it.

One file a run, and for each BMC a pointer to the last one. The file is written before the first change and
says until the end that the run is unfinished: the next run then keeps the older values.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from nodeprep.bmc.redfish.service import Service
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import DocumentError, UsageError
from nodeprep.fleet.disk import explained, write_durably
from nodeprep.model.bios import BiosMachine, BiosValue
from nodeprep.model.bios_restore import RestorePoint
from nodeprep.model.codec import decode, encode_pretty
from nodeprep.workflows.home import Home

FILE = "bios_restore.json"
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class _Pointer:
    restore_point: str
    schema: Literal["nodeprep.bios_restore_pointer/1"] = "nodeprep.bios_restore_pointer/1"


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The last restore point that was taken back.

    Attributes:
        at: When, in ISO 8601.
    """

    restore_point: str
    at: str
    schema: Literal["nodeprep.bios_taken_back/1"] = "nodeprep.bios_taken_back/1"


class RestoreStore:
    """The restore points of one BMC.

    Args:
        serial: Of the system; "" when the BMC tells none.
    """

    def __init__(self, home: Home, target: BmcTarget, serial: str) -> None:
        self._folder = home.path / "bios"
        self.address = f"{target.address}:{target.port}"
        self.serial = serial
        # Blades of one BMC that tell no serial number must not share a restore point.
        which = f"{self.address}|{serial}" + (f"|{target.system}" if target.system else "")
        name = hashlib.sha256(which.encode()).hexdigest()[:24]
        self._pointer = self._folder / f"{name}.json"
        self._lock = self._folder / f"{name}.lock"
        # Not *.json: that says of a machine that there is something to take back.
        self._taken_back = self._folder / f"{name}.taken_back"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other runs of this controller away from the BMC.

        Raises:
            UsageError: One is at work.
            DiskError: The controller's own folder cannot be written.
        """
        with explained(self._lock):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"another nodeprep works on the BIOS of {self.address}", hint="wait for its end"
                ) from error
            yield
        finally:
            os.close(descriptor)

    def last(self) -> tuple[Path, RestorePoint] | None:
        """The last restore point of this BMC; None when there is none.

        Raises:
            DocumentError: It is damaged.
        """
        try:
            pointer = decode(self._pointer.read_bytes(), _Pointer, source=str(self._pointer))
        except FileNotFoundError:
            return None
        path = Path(pointer.restore_point)
        try:
            return path, read_restore_point(path)
        except FileNotFoundError:
            # Somebody tidied up the run folders.
            return None

    def write(self, path: Path, point: RestorePoint) -> None:
        """Writes a restore point, for its owner only, and points to it.

        Raises:
            DiskError: It cannot be written; then nothing must be changed.
        """
        write_durably(path, encode_pretty(point), mode=_PRIVATE)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_durably(self._pointer, encode_pretty(_Pointer(str(path))), mode=_PRIVATE)

    def withdraw(self, path: Path, point: RestorePoint, earlier: Path | None) -> None:
        """Ends the restore point of a run that changed nothing; the one before it counts again.

        Raises:
            DiskError: It cannot be written.
        """
        if earlier is None:
            self.forget()
        else:
            write_durably(self._pointer, encode_pretty(_Pointer(str(earlier))), mode=_PRIVATE)
        write_durably(path, encode_pretty(point), mode=_PRIVATE)

    def end(self, source: Path, at: str) -> None:
        """The settings are as before, since a roll-back: there is nothing to restore any more.

        Raises:
            DiskError: It cannot be written.
        """
        write_durably(self._taken_back, encode_pretty(TakenBack(str(source), at)), mode=_PRIVATE)
        self.forget()

    def taken_back(self) -> TakenBack | None:
        """What was taken back last; None when nothing was, or the word of it cannot be read."""
        try:
            return decode(self._taken_back.read_bytes(), TakenBack, source=str(self._taken_back))
        except (OSError, DocumentError):
            return None

    def forget(self) -> None:
        """There is nothing to restore any more."""
        self._pointer.unlink(missing_ok=True)

    def check(self, point: RestorePoint, machine: BiosMachine, source: Path) -> None:
        """Refuses a restore point of another machine.

        Raises:
            UsageError: It is one.
        """
        if point.serial and self.serial and point.serial != self.serial:
            raise UsageError(
                f"{source} is of the machine with serial number {point.serial}, and this is {self.serial}",
                hint="name the BMC it was taken from",
            )
        if (point.bmc.vendor, point.bmc.model) != (machine.vendor, machine.model):
            raise UsageError(
                f"{source} is of a {point.bmc.vendor} {point.bmc.model}, and this is a "
                f"{machine.vendor} {machine.model}",
                hint="name the BMC it was taken from",
            )


def has_restore_points(home: Home) -> bool:
    """Whether this controller has changed the BIOS of any machine and not taken it back."""
    return any((home.path / "bios").glob("*.json"))


def read_restore_point(path: Path) -> RestorePoint:
    """A restore point from its file.

    Raises:
        DocumentError: It is none.
        FileNotFoundError: There is no such file.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror}") from error
    return decode(data, RestorePoint, source=str(path))


def serial_of(service: Service) -> str:
    """Serial number of a system, or its UUID; "" when the BMC tells neither."""
    for name in ("SerialNumber", "UUID"):
        value = service.system.body.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def continued(point: RestorePoint, earlier: RestorePoint | None) -> RestorePoint:
    """A new restore point that keeps what an unfinished run saw before its changes."""
    if earlier is None or earlier.finished:
        return point
    older: Mapping[str, BiosValue] = earlier.values
    return replace(
        point,
        values={**point.values, **{name: older[name] for name in point.values if name in older}},
        planned={**earlier.planned, **point.planned},
        jobs=tuple(dict.fromkeys((*earlier.jobs, *point.jobs))),
        reset_at=earlier.reset_at,
        taken_at=earlier.taken_at,
    )
