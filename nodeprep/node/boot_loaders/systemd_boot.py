"""systemd-boot: entries in files on the EFI partition, one-shot choice in an EFI variable.

kernel-install makes an entry for each kernel from /etc/kernel/cmdline; a change there reaches only
kernels installed later, so the entries that are there are edited too. Pop!_OS has kernelstub for both.

Not run against a real systemd-boot in nodeprep's tests: bootctl is a program of the tests.
Source: systemd-boot(7), bootctl(1), kernel-install(8), The Boot Loader Interface of systemd.
"""

from __future__ import annotations

import fnmatch
import json
import re
from typing import Any, Dict, List, Optional, Sequence

from .. import durable
from ..kernel_cmdline import Edit, words
from ..paths import exists, read_text
from . import _bls, _efi_variables
from ._bls import BlsEntry
from ._bls_loader import BlsLoader, undone
from ._boot_loader import TRIAL_TITLE, Entry, Refusal, kernel_release, program
from ._grub_next_entry import must_be_possible

# In the order of bootctl; the extended boot partition is mounted at /boot.
_PARTITIONS = ("/efi", "/boot", "/boot/efi")
_KERNELSTUB = "/etc/kernelstub/configuration"
_TRIAL = f"{_bls.TRIAL_NAME}.conf"
_ONE_SHOT = "LoaderEntryOneShot"
_CAN_ONE_SHOT = 1 << 3


class SystemdBoot(BlsLoader):
    """systemd-boot with type 1 entries."""

    id = "systemd_boot"
    look = "bootctl list"

    @classmethod
    def recognise(cls, root: str) -> str:
        """What the loader said of itself; GRUB sets the same variable with a name of its own."""
        loader = _efi_variables.text(root, "LoaderInfo") or ""
        return loader if loader.startswith("systemd-boot") and program(root, "bootctl") else ""

    def default_entry(self) -> Entry:
        """What the loader's own setting, loader.conf and the order of entries choose."""
        entry = self._default()
        release = kernel_release(self.root, entry.value("linux")) or entry.value("version")
        return Entry(entry.value("title"), release, entry.options, entry.path)

    def one_shot_obstacle(self) -> str:
        """Why the loader would not take an entry for one boot only."""
        try:
            features = _efi_variables.number(self.root, "LoaderFeatures") or 0
            if not features & _CAN_ONE_SHOT:
                return "this version of systemd-boot does not say that it takes an entry for one boot only"
            if self._setting("timeout") == "menu-force":
                return "systemd-boot waits at its menu without end (timeout menu-force)"
            if program(self.root, "sdbootutil"):
                return "sdbootutil makes the boot entries here, and may have sealed the disk's key to them"
        except (OSError, ValueError) as problem:
            return f"it cannot be told whether systemd-boot would take an entry for one boot only: {problem}"
        return ""

    def stage_trial(self, cmdline: str) -> None:
        """Writes a copy of the default entry, with a name that is below all others."""
        self._must_be_writable()
        must_be_possible(self.one_shot_obstacle())
        entry = self._default()
        path = _trial_beside(entry)
        durable.put(self.root, path, entry.with_options(cmdline, TRIAL_TITLE))
        if _bls.read_entry(self.root, path).options != cmdline:
            durable.put(self.root, path, None)
            raise Refusal("the one-shot entry does not hold the arguments after it was written")

    def staged(self) -> Optional[str]:
        """From the entry's file."""
        path = self._trial_file()
        return _bls.read_entry(self.root, path).options if path else None

    def arm(self) -> None:
        """Sets the EFI variable LoaderEntryOneShot, with bootctl."""
        self._must_be_writable()
        if not self._trial_file():
            raise Refusal("there is no one-shot boot entry to arm", "stage it first")
        must_be_possible(self.one_shot_obstacle())
        chosen = _efi_variables.text(self.root, _ONE_SHOT)
        if chosen not in (None, "", _TRIAL):
            raise Refusal(
                f"the next boot is already promised to the entry {chosen!r}",
                "boot it first, or take it back: bootctl set-oneshot ''",
            )
        self._run(["bootctl", "set-oneshot", _TRIAL])
        if not self.armed():
            raise Refusal("the firmware does not hold the one-shot entry after it was written")

    def armed(self) -> bool:
        """From the EFI variable."""
        return _efi_variables.text(self.root, _ONE_SHOT) == _TRIAL

    def disarm(self) -> None:
        """Takes the EFI variable away when it names nodeprep's entry."""
        self._must_be_writable()
        if not self.armed():
            return
        self._run(["bootctl", "set-oneshot", ""])
        if self.armed():
            raise Refusal("the firmware still holds the one-shot entry after it was taken back")

    def unstage(self) -> None:
        """Removes the entry's file."""
        self.disarm()
        path = self._trial_file()
        if path:
            durable.put(self.root, path, None)

    def _must_be_editable(self) -> None:
        must_be_possible(self.one_shot_obstacle())

    def _default(self) -> BlsEntry:
        entries = _bls.systemd_order(self._entries())
        pattern = _efi_variables.text(self.root, "LoaderEntryDefault") or self._setting("default")
        if pattern.startswith("@"):
            # systemd-boot stores the name of a saved entry beside it.
            pattern = _efi_variables.text(self.root, "LoaderEntryLastBooted") or ""
        if pattern.endswith(".efi"):
            raise ValueError(f"the default boot entry {pattern} is a kernel image with its arguments inside")
        if not entries:
            raise ValueError(f"there is no boot entry in {' or '.join(_PARTITIONS)}/loader/entries")
        matches = (entry for entry in entries if pattern and _matches(entry, pattern))
        return next(matches, entries[0])

    def _entries(self) -> List[BlsEntry]:
        folders = [f"{partition}/loader/entries" for partition in _PARTITIONS]
        return [entry for folder in folders for entry in _bls.read(self.root, folder)]

    def _setting(self, name: str) -> str:
        """From loader.conf of the EFI partition, "" when it is not set."""
        for partition in _PARTITIONS:
            path = f"{partition}/loader/loader.conf"
            if exists(self.root, path):
                lines = [line.split(None, 1) for line in read_text(self.root, path).splitlines()]
                return next((parts[1].strip() for parts in lines if len(parts) == 2 and parts[0] == name), "")
        return ""

    def _trial_file(self) -> str:
        places = (f"{partition}/loader/entries/{_TRIAL}" for partition in _PARTITIONS)
        return next((path for path in places if exists(self.root, path)), "")

    def _edit_all(self, edit: Edit) -> None:
        """Edits every entry and /etc/kernel/cmdline, or has kernelstub do it."""
        cmdline = self.default_entry().cmdline
        if program(self.root, "kernelstub"):
            self._edit_with_kernelstub(edit, cmdline)
            return
        for entry in self._entries():
            new = edit.apply(entry.options)
            if new != entry.options:
                durable.put(self.root, entry.path, entry.with_options(new))
        # Without this file a new kernel takes /proc/cmdline, where a trial's marker may stand.
        base = durable.content(self.root, self.kernel_cmdline)
        text = edit.apply((cmdline if base is None else base).strip())
        durable.put(self.root, self.kernel_cmdline, text + "\n")

    def _edit_with_kernelstub(self, edit: Edit, cmdline: str) -> None:
        old, new = words(cmdline), words(edit.apply(cmdline))
        for option, changed in (
            ("--delete-options", [word for word in old if word not in new]),
            ("--add-options", [word for word in new if word not in old]),
        ):
            if changed:
                self._run(["kernelstub", option, " ".join(changed)])

    def _state(self) -> Dict[str, Any]:
        return {**super()._state(), "kernelstub": durable.content(self.root, _KERNELSTUB)}

    def _put_back(self, state: Dict[str, Any]) -> None:
        super()._put_back(state)
        self._put(_KERNELSTUB, state["kernelstub"])

    def _without_edits(
        self, then: Dict[str, Any], now: Dict[str, Any], edits: Sequence[Edit]
    ) -> Dict[str, Any]:
        kernelstub = _kernelstub_without(then["kernelstub"], now["kernelstub"], edits)
        return {**super()._without_edits(then, now, edits), "kernelstub": kernelstub}


def _kernelstub_without(then: Optional[str], now: Optional[str], edits: Sequence[Edit]) -> Optional[str]:
    """The file of kernelstub as it is now, without what the edits have made of its user options.

    Raises:
        ValueError: It is not what kernelstub writes.
    """
    if then is None or now is None:
        return now
    before, after = json.loads(then), json.loads(now)
    try:
        options = [" ".join(each["user"]["kernel_options"]) for each in (before, after)]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{_KERNELSTUB} has no list of user.kernel_options") from error
    after["user"]["kernel_options"] = undone(options[0], options[1], edits).split()
    return then if after == before else json.dumps(after, indent=2) + "\n"


def _trial_beside(entry: BlsEntry) -> str:
    return f"{entry.path.rpartition('/')[0]}/{_TRIAL}"


def _matches(entry: BlsEntry, pattern: str) -> bool:
    name = re.sub(r"\.conf$", "", pattern)
    return fnmatch.fnmatchcase(entry.id, name)
