"""The kernel command line as the kernel reads it, and edits of it; pure.

Node code like the rest of this folder, and the controller's parser too: what a plan compares and what
a boot loader is given must be read the same way.
Source: lib/cmdline.c (next_arg) and kernel/params.c (parse_args, parameq) of Linux: arguments are
split at white space outside double quotes, "-" and "_" are the same in a name, and everything
after "--" goes to init.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

# Arguments whose value is a comma-separated list of options, each parsed on its own.
# Source: pci_setup(), iommu_setup(), intel_iommu_setup(), parse_amd_iommu_options() of Linux.
_LISTS = frozenset({"pci", "iommu", "intel_iommu", "amd_iommu"})

# Arguments of which only one value can be in effect; the last one wins, whatever else is there.
_SINGLE = frozenset({"pcie_aspm", "pcie_aspm.policy", "pcie_ports"})

# Arguments that are legally given several times, each value in effect beside the others.
# Source: Documentation/admin-guide/kernel-parameters.txt, dracut.cmdline(7), kernel-command-line(7).
_REPEATED = frozenset(
    {
        "console", "earlycon", "hugepages", "hugepagesz", "ip", "memmap", "modprobe.blacklist",
        "module_blacklist", "nameserver", "rd.driver.blacklist", "rd.luks.uuid", "rd.lvm.lv",
        "rd.md.uuid", "systemd.mask", "systemd.setenv", "systemd.wants",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """One argument, or one option of a list argument.

    Attributes:
        key: Name with "-" read as "_", as the kernel compares it.
        value: None for a bare word such as "quiet".
    """

    key: str
    value: Optional[str]

    def __str__(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"

    @property
    def word(self) -> str:
        """As one would type it: a value with blanks needs its quotes."""
        blanks = any(character.isspace() for character in self.value or "")
        return f'{self.key}="{self.value}"' if blanks else str(self)

    def matches(self, pattern: Argument) -> bool:
        """Whether this is what a pattern names; a pattern without a value names every value."""
        return self.key == pattern.key and pattern.value in (None, self.value)

    def contradicts(self, other: Argument) -> bool:
        """Whether both cannot be in effect at once, such as iommu=off and iommu=pt."""
        if self.key != other.key or self.value == other.value:
            return False
        return self.key in _SINGLE or (self.key in _LISTS and "off" in (self.value, other.value))

    def overrides(self, other: Argument) -> bool:
        """Whether this, coming later, takes the other's effect away: same key, another value."""
        repeated = self.key in _LISTS or self.key in _REPEATED
        return self.key == other.key and self.value != other.value and not repeated


def split(cmdline: str) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """The kernel's words, quotes kept, and what goes to init: "--" and all after it."""
    found: List[str] = []
    word, quoted = "", False
    for character in cmdline:
        if character == '"':
            quoted = not quoted
        if character.isspace() and not quoted:
            found.append(word)
            word = ""
        else:
            word += character
    found.append(word)
    found = [word for word in found if word]
    end = found.index("--") if "--" in found else len(found)
    return tuple(found[:end]), tuple(found[end:])


def words(cmdline: str) -> Tuple[str, ...]:
    """The words the kernel takes for itself, quotes kept."""
    return split(cmdline)[0]


def parse_word(word: str) -> Tuple[Argument, ...]:
    """One word as arguments: several for a list such as "pci=noaer,realloc"."""
    name, equals, value = word.replace('"', "").partition("=")
    key = name.replace("-", "_")
    if not equals:
        return (Argument(key, None),)
    if key in _LISTS:
        return tuple(Argument(key, option) for option in value.split(",") if option)
    return (Argument(key, value),)


def parse(cmdline: str) -> Tuple[Argument, ...]:
    """All arguments of a command line, in order, repeats included."""
    return tuple(argument for word in words(cmdline) for argument in parse_word(word))


@dataclass(frozen=True)
class Edit:
    """What a command line should have and not have.

    Attributes:
        present: Words that are there exactly once and in effect. Other values of a key that may be
            repeated, such as console=, stay; what contradicts a word goes.
        absent: Words that are not there, nor as options of a list; without a value, any value of the key.
        replace: Words that are the only value of their key.
    """

    present: Tuple[str, ...] = ()
    absent: Tuple[str, ...] = ()
    replace: Tuple[str, ...] = ()

    def satisfied(self, cmdline: str) -> bool:
        """Whether nothing is left to change."""
        given = parse(cmdline)
        wanted = self._wanted()
        return (
            all(_in_effect(argument, given) for argument in wanted)
            and not any(self._drops(argument) for argument in given)
        )  # fmt: skip

    def apply(self, cmdline: str) -> str:
        """The command line with the edit made: what must go is gone, what is missing comes last.

        Words that are as wanted stay where they are, so an edit applied twice changes nothing more.
        """
        kernel, init = split(cmdline)
        given = parse(cmdline)
        missing = [argument for argument in self._wanted() if not _in_effect(argument, given)]
        kept = [new for new in (self._kept(word, missing) for word in kernel) if new]
        return " ".join([*kept, *self._appended(missing), *init])

    def removed_words(self, cmdline: str) -> Dict[str, str]:
        """Words of a command line that must go, each with what stays of it: "" or a shorter list."""
        return {
            word: new for word in words(cmdline) for new in [self._kept(word, self._wanted())] if new != word
        }

    def to_dict(self) -> Dict[str, List[str]]:
        """For JSON."""
        return {"present": list(self.present), "absent": list(self.absent), "replace": list(self.replace)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Edit:
        """From `to_dict`.

        Raises:
            KeyError: A part is missing.
        """
        return cls(*(tuple(data[name]) for name in ("present", "absent", "replace")))

    def _wanted(self) -> Tuple[Argument, ...]:
        return tuple(dict.fromkeys(_arguments([*self.present, *self.replace])))

    def _drops(self, argument: Argument) -> bool:
        """Whether an argument must go, whatever else is there."""
        wanted = self._wanted()
        if any(argument.matches(banned) for banned in _arguments(self.absent)):
            return argument not in wanted
        if any(argument.contradicts(each) for each in wanted):
            return True
        only = _arguments(self.replace)
        return any(argument.key == each.key for each in only) and argument not in only

    def _kept(self, word: str, moved: Iterable[Argument]) -> str:
        """What stays of a word; "" for nothing. Arguments that are moved to the end go from here."""
        arguments = parse_word(word)
        stays = [each for each in arguments if each not in moved and not self._drops(each)]
        if len(stays) == len(arguments):
            return word
        if not stays:
            return ""
        return f"{word.partition('=')[0]}={','.join(str(each.value) for each in stays)}"

    def _appended(self, missing: List[Argument]) -> List[str]:
        """Words to append: as they were asked for, or only those options of a list that are missing."""
        appended: Dict[str, None] = {}
        for word in [*self.present, *self.replace]:
            arguments = parse_word(word)
            wanted = [each for each in arguments if each in missing]
            if len(wanted) == len(arguments) and wanted:
                appended.setdefault(word)
            else:
                appended.update(dict.fromkeys(str(each) for each in wanted))
        return list(appended)


def _arguments(asked: Iterable[str]) -> List[Argument]:
    return [argument for word in asked for argument in parse_word(word)]


def _in_effect(wanted: Argument, given: Tuple[Argument, ...]) -> bool:
    """Exactly once, and nothing after it takes its effect away."""
    if given.count(wanted) != 1:
        return False
    return not any(later.overrides(wanted) for later in given[given.index(wanted) + 1 :])
