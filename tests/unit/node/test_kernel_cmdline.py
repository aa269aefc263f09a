"""The command line as the kernel reads it."""

from __future__ import annotations

import pytest

from nodeprep.node.kernel_cmdline import Argument, Edit, parse, parse_word, words


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


EDIT = Edit(present=("pcie_aspm=off", "iommu=off"), absent=("pci=noaer",))


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        (EDIT, "ro quiet", "ro quiet pcie_aspm=off iommu=off"),
        (EDIT, "ro iommu=pt pcie_aspm=off", "ro pcie_aspm=off iommu=off"),
        (EDIT, "iommu=off iommu=off pcie-aspm=off", "pcie-aspm=off iommu=off"),
        (EDIT, "ro pci=noaer,realloc", "ro pci=realloc pcie_aspm=off iommu=off"),
        (EDIT, "ro pci=noaer -- single", "ro pcie_aspm=off iommu=off -- single"),
        (EDIT, 'dyndbg="file a.c +p" iommu=off', 'dyndbg="file a.c +p" iommu=off pcie_aspm=off'),
        (Edit(present=("console=ttyS0,115200",)), "console=tty0", "console=tty0 console=ttyS0,115200"),
        (Edit(replace=("console=ttyS0",)), "console=tty0 ro console=ttyS0", "ro console=ttyS0"),
        (Edit(absent=("console",)), "console=tty0 ro console=ttyS0", "ro"),
        (Edit(present=("panic=10",)), "panic=10 panic=0", "panic=0 panic=10"),
        (Edit(present=("pci=realloc,noacpi",)), "pci=realloc", "pci=realloc pci=noacpi"),
        (Edit(replace=("pci=realloc",)), "pci=noaer,realloc pci=nommconf", "pci=realloc"),
        (Edit(present=('a="b c"',)), "", 'a="b c"'),
    ],
)
def test_an_edit_and_that_it_ends_there(edit: Edit, before: str, after: str) -> None:
    assert edit.apply(before) == after
    assert edit.satisfied(after)
    assert edit.apply(after) == after


@pytest.mark.parametrize(
    "cmdline",
    [
        "",
        "pcie_aspm=off",
        "pcie_aspm=off iommu=off iommu=off",
        "pcie_aspm=off iommu=off iommu=pt",
        "pcie_aspm=off iommu=off pci=realloc,noaer",
        "pcie_aspm=off -- iommu=off",
    ],
)
def test_what_does_not_satisfy(cmdline: str) -> None:
    assert not EDIT.satisfied(cmdline)


def test_what_a_boot_loader_must_take_out() -> None:
    assert EDIT.removed_words("ro pci=noaer,realloc iommu=pt pcie_aspm=off x") == {
        "pci=noaer,realloc": "pci=realloc",
        "iommu=pt": "",
        "pcie_aspm=off": "",
    }


def test_an_edit_survives_json() -> None:
    edit = Edit(present=("a=b",), absent=("c",), replace=("d=e",))
    assert Edit.from_dict(edit.to_dict()) == edit
