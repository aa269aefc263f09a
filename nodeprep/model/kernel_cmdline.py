"""The kernel command line as the kernel reads it; pure.

Source: lib/cmdline.c (next_arg) and kernel/params.c (parse_args, parameq) of Linux: arguments are
split at white space outside double quotes, "-" and "_" are the same in a name, and everything
after "--" goes to init.
"""

from __future__ import annotations

from dataclasses import dataclass

# Arguments whose value is a comma-separated list of options, each parsed on its own.
# Source: pci_setup(), iommu_setup(), intel_iommu_setup(), parse_amd_iommu_options() of Linux.
_LISTS = frozenset({"pci", "iommu", "intel_iommu", "amd_iommu"})

# Arguments of which only one value can be in effect; the last one wins, whatever else is there.
_SINGLE = frozenset({"pcie_aspm", "pcie_aspm.policy", "pcie_ports"})


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, or one option of a list argument.

    Attributes:
        key: Name with "-" read as "_", as the kernel compares it.
        value: None for a bare word such as "quiet".
    """

    key: str
    value: str | None

    def __str__(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"

    def matches(self, pattern: Argument) -> bool:
        """Whether this is what a pattern names; a pattern without a value names every value."""
        return self.key == pattern.key and pattern.value in (None, self.value)

    def contradicts(self, other: Argument) -> bool:
        """Whether both cannot be in effect at once, such as iommu=off and iommu=pt."""
        if self.key != other.key or self.value == other.value:
            return False
        return self.key in _SINGLE or (self.key in _LISTS and "off" in (self.value, other.value))


def words(cmdline: str) -> tuple[str, ...]:
    """The words the kernel takes for itself, quotes kept."""
    found: list[str] = []
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
    return tuple(found[: found.index("--")] if "--" in found else found)


def parse_word(word: str) -> tuple[Argument, ...]:
    """One word as arguments: several for a list such as "pci=noaer,realloc"."""
    name, equals, value = word.replace('"', "").partition("=")
    key = name.replace("-", "_")
    if not equals:
        return (Argument(key, None),)
    if key in _LISTS:
        return tuple(Argument(key, option) for option in value.split(",") if option)
    return (Argument(key, value),)


def parse(cmdline: str) -> tuple[Argument, ...]:
    """All arguments of a command line, in order, repeats included."""
    return tuple(argument for word in words(cmdline) for argument in parse_word(word))
