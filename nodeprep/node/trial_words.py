"""The command line of a trial boot: the edited one, a marker, and what resets a boot that dies early."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, Tuple

from .kernel_cmdline import Edit, split, words
from .paths import exists

# The kernel ignores a dotted word whose module it does not have, and does not complain about it.
# Source: unknown_bootoption() in init/main.c of Linux.
MARKER = "nodeprep.trial"

# A panic resets the machine; the shell of Debian's initramfs then waits that long and reboots too.
# Source: kernel-parameters.txt; initramfs-tools(7).
PANIC = "panic=30"

# dracut would otherwise ask for the root password on the console, for ever.
# Source: dracut.cmdline(7), rd.emergency: "rd.shell=0 is also needed".
DRACUT = ("rd.shell=0", "rd.emergency=reboot")
_DRACUT_FOLDER = "/usr/lib/dracut"

# x86 and arm64 cut a longer command line off without a word; 148 are left for what GRUB puts before it.
# Source: COMMAND_LINE_SIZE in arch/*/include/asm/setup.h of Linux (2048 there).
MAX_LENGTH = 1900

# Put before the arguments by the boot loader, and no arguments of anybody.
_FROM_LOADER = frozenset({"BOOT_IMAGE", "initrd"})

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{3,63}")


def valid_id(trial_id: str) -> bool:
    """Whether this can be the id of a trial: it becomes a word of the command line."""
    return _ID.fullmatch(trial_id) is not None


def added(root: str, cmdline: str, trial_id: str) -> Tuple[str, ...]:
    """What a trial boot gets besides the arguments that are on trial; a key that is there stays as it is."""
    keys = {_key(word) for word in words(cmdline)}
    safety = (PANIC, *(DRACUT if exists(root, _DRACUT_FOLDER) else ()))
    return (*(word for word in safety if _key(word) not in keys), f"{MARKER}={trial_id}")


def with_words(cmdline: str, more: Tuple[str, ...]) -> str:
    """The command line with words added."""
    return Edit(present=more).apply(without(cmdline, [MARKER]))


def without(cmdline: str, names: Iterable[str]) -> str:
    """The command line without some words; a name without "=" is every word of that key."""
    gone = set(names)
    kernel, init = split(cmdline)
    kept = [word for word in kernel if word not in gone and word.partition("=")[0] not in gone]
    return " ".join([*kept, *init])


def bare(cmdline: str) -> str:
    """The command line of a trial boot without all that any trial adds."""
    return without(cmdline, (MARKER, PANIC, *DRACUT))


def marked(cmdline: str) -> str:
    """Id of the trial that this command line belongs to; "" when it belongs to none."""
    found = [word.partition("=")[2] for word in words(cmdline) if word.partition("=")[0] == MARKER]
    return found[-1] if found else ""


def same(one: str, other: str) -> bool:
    """Whether two command lines say the same: the same words, and those of one key in the same order."""
    return _by_key(one) == _by_key(other)


def lacking(wanted: str, given: str) -> List[str]:
    """Words of one command line that the other does not have as often."""
    there = _by_key(given)
    return [
        word
        for key, asked in _by_key(wanted).items()
        for word in dict.fromkeys(asked)
        if there.get(key, []).count(word) < asked.count(word)
    ]


def unmet(edit: Edit, cmdline: str) -> List[str]:
    """What is left to be wished for on a command line, in words."""
    problems = [
        f"{word} is not there exactly once and in effect"
        for word in [*edit.present, *edit.replace]
        if not Edit(present=(word,)).satisfied(cmdline)
    ]
    problems.extend(f"{word} should not be there" for word in lacking(cmdline, edit.apply(cmdline)))
    if not problems and not edit.satisfied(cmdline):
        problems.append("the arguments are not as wanted")
    return problems


def lines(cmdline: str) -> str:
    """One word a line, for a diff that a reader can follow."""
    kernel, init = split(cmdline)
    return "".join(f"{word}\n" for word in (*kernel, *init))


def _key(word: str) -> str:
    return _unquoted(word).partition("=")[0].replace("-", "_")


def _unquoted(word: str) -> str:
    """GRUB writes a="b c" as "a=b c"; the kernel reads both the same."""
    return word.replace('"', "")


def _by_key(cmdline: str) -> Dict[str, List[str]]:
    kernel, init = split(cmdline)
    found: Dict[str, List[str]] = {}
    for word in kernel:
        if _key(word) not in _FROM_LOADER:
            found.setdefault(_key(word), []).append(_unquoted(word))
    if init:
        found["--"] = list(init)
    return found
