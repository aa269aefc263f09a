"""The command line as the kernel reads it."""

from __future__ import annotations

import pytest

from nodeprep.model.kernel_cmdline import Argument, parse, parse_word, words


@pytest.mark.parametrize(
    ("cmdline", "expected"),
    [
        ("", ()),
        ("  ro   quiet\n", ("ro", "quiet")),
        ('a="b c" d', ('a="b c"', "d")),
        ("ro -- init=1 quiet", ("ro",)),
        ('ro "--" quiet', ("ro", '"--"', "quiet")),
    ],
)
def test_words(cmdline: str, expected: tuple[str, ...]) -> None:
    assert words(cmdline) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("quiet", (Argument("quiet", None),)),
        ("iommu=", ()),
        ("console=ttyS0,115200", (Argument("console", "ttyS0,115200"),)),
        ("pci=noaer,realloc", (Argument("pci", "noaer"), Argument("pci", "realloc"))),
        ("pcie-aspm=off", (Argument("pcie_aspm", "off"),)),
        ('a="b c"', (Argument("a", "b c"),)),
        ("root=UUID=1-2", (Argument("root", "UUID=1-2"),)),
    ],
)
def test_arguments(word: str, expected: tuple[Argument, ...]) -> None:
    assert parse_word(word) == expected


def test_repeats_are_kept() -> None:
    assert parse("iommu=off iommu=off") == (Argument("iommu", "off"), Argument("iommu", "off"))


def test_a_pattern_without_a_value_names_every_value() -> None:
    assert Argument("iommu", "off").matches(Argument("iommu", None))
    assert Argument("iommu", "off").matches(Argument("iommu", "off"))
    assert not Argument("iommu", "off").matches(Argument("iommu", "pt"))
    assert not Argument("iommu", None).matches(Argument("iommu", "off"))


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        (("iommu", "off"), ("iommu", "pt"), True),
        (("iommu", "pt"), ("iommu", "off"), True),
        (("iommu", "off"), ("iommu", "off"), False),
        (("iommu", "pt"), ("iommu", "nobypass"), False),
        (("pcie_aspm", "off"), ("pcie_aspm", "force"), True),
        (("pcie_aspm", "off"), ("pcie_aspm.policy", "performance"), False),
        (("pci", "noaer"), ("pci", "realloc"), False),
        (("console", "tty0"), ("console", "ttyS0"), False),
    ],
)
def test_contradictions(one: tuple[str, str], other: tuple[str, str], clash: bool) -> None:
    assert Argument(*one).contradicts(Argument(*other)) is clash


def test_it_prints_as_it_is_written() -> None:
    assert [str(argument) for argument in parse("quiet iommu=off")] == ["quiet", "iommu=off"]
