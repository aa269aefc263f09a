"""Boot entries in files of their own (Boot Loader Specification, type 1), as GRUB and systemd-boot read them.

Source: The Boot Loader Specification and Version Format Specification of the UAPI group;
grub-core/commands/blscfg.c of Fedora's GRUB (split_cmp, vercmp).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Callable, List, Sequence, Tuple

from ..paths import exists, list_folder, read_bytes

# A name that sorts below all others everywhere, so that the one-shot entry is never anybody's default
# and shifts no entry that is chosen by its number. "nodeprep-trial" would come before a machine id.
TRIAL_NAME = "~nodeprep-trial"

_PARTS = re.compile(r"~|[0-9]+|[A-Za-z]+")


@dataclass(frozen=True)
class BlsEntry:
    """One entry.

    Attributes:
        path: Its file.
        lines: The file's lines.
    """

    path: str
    lines: Tuple[str, ...]

    @property
    def id(self) -> str:
        """Name of the file without .conf and without systemd-boot's count of tries."""
        name = self.path.rpartition("/")[2][: -len(".conf")]
        return re.sub(r"\+\d+(-\d+)?$", "", name)

    @property
    def options(self) -> str:
        """Arguments of all options lines, as written."""
        return " ".join(self.values("options"))

    def values(self, key: str) -> List[str]:
        """What stands after a key, once for each of its lines."""
        found = [line.strip().split(None, 1) for line in self.lines]
        return [parts[1].strip() for parts in found if len(parts) == 2 and parts[0] == key]

    def value(self, key: str) -> str:
        """What stands after a key, "" when it is not there."""
        return next(iter(self.values(key)), "")

    def with_options(self, options: str, title: str = "") -> str:
        """The file's text with one options line in place of all, and another title if one is given."""
        kept = [line for line in self.lines if line.split(None, 1)[:1] != ["options"]]
        if title:
            kept = [f"title {title}" if line.split(None, 1)[:1] == ["title"] else line for line in kept]
        return "\n".join([*kept, f"options {options}"]) + "\n"


def read(root: str, folder: str) -> List[BlsEntry]:
    """All entries of a folder but the one-shot one, in the order of their names.

    Raises:
        OSError: The folder or a file cannot be read.
    """
    names = (
        [name for name in list_folder(root, folder) if name.endswith(".conf")] if exists(root, folder) else []
    )
    found = [read_entry(root, f"{folder}/{name}") for name in names]
    return [entry for entry in found if entry.id != TRIAL_NAME]


def read_entry(root: str, path: str) -> BlsEntry:
    """One entry.

    Raises:
        OSError: It cannot be read.
    """
    text = read_bytes(root, path).decode("utf-8", "surrogateescape")
    return BlsEntry(path, tuple(line for line in text.splitlines() if line.strip()))


def grub_order(entries: Sequence[BlsEntry]) -> List[BlsEntry]:
    """As GRUB's menu shows them: by name, version and release in the file's name, newest first."""
    return _sorted(entries, lambda one, other: -_compare_lists(_package(one.id), _package(other.id)))


def systemd_order(entries: Sequence[BlsEntry]) -> List[BlsEntry]:
    """As systemd-boot's menu shows them."""
    return _sorted(entries, _systemd_compare)


def compare_versions(one: str, other: str) -> int:
    """Below zero when the first is older, above when it is newer, zero when they are the same."""
    left, right = _PARTS.findall(one), _PARTS.findall(other)
    for first, second in zip(left, right):  # noqa: B905
        difference = _compare_parts(first, second)
        if difference:
            return difference
    longer, sign = (left, 1) if len(left) > len(right) else (right, -1)
    if len(left) == len(right):
        return 0
    # "1~rc1" is older than "1".
    return -sign if longer[min(len(left), len(right))] == "~" else sign


def _compare_parts(one: str, other: str) -> int:
    if one == other:
        return 0
    if "~" in (one, other):
        return -1 if one == "~" else 1
    if one.isdigit() != other.isdigit():
        return 1 if one.isdigit() else -1
    if one.isdigit():
        return int(one) - int(other)
    return 1 if one > other else -1


def _package(name: str) -> List[str]:
    """Name, version and release: the last two begin after a "-"."""
    parts = name.rsplit("-", 2)
    return parts + [""] * (3 - len(parts))


def _compare_lists(one: List[str], other: List[str]) -> int:
    differences = (compare_versions(a, b) for a, b in zip(one, other))  # noqa: B905
    return next((difference for difference in differences if difference), 0)


def _systemd_compare(one: BlsEntry, other: BlsEntry) -> int:
    # Entries whose tries are used up come last.
    for rank in (
        _used_up(one) - _used_up(other),
        (not one.value("sort-key")) - (not other.value("sort-key")),
    ):
        if rank:
            return rank
    if one.value("sort-key"):
        for key in ("sort-key", "machine-id"):
            if one.value(key) != other.value(key):
                return 1 if one.value(key) > other.value(key) else -1
        newer = compare_versions(other.value("version"), one.value("version"))
        if newer:
            return newer
    return compare_versions(other.id, one.id)


def _used_up(entry: BlsEntry) -> bool:
    return bool(re.search(r"\+0(-\d+)?\.conf$", entry.path))


def _sorted(entries: Sequence[BlsEntry], compare: Callable[[BlsEntry, BlsEntry], int]) -> List[BlsEntry]:
    return sorted(entries, key=functools.cmp_to_key(compare))
