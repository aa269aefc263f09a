"""The command line of a trial boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprep.node import trial_words
from nodeprep.node.kernel_cmdline import Edit

OLD = 'root=/dev/vda1 ro console=tty0 console=ttyS0 dyndbg="file a.c +p" -- single'


def test_a_trial_gets_a_marker_and_a_way_back_before_what_is_for_init(tmp_path: Path) -> None:
    extra = trial_words.added(str(tmp_path), OLD, "t-1")
    assert extra == ("panic=30", "nodeprep.trial=t-1")
    trial = trial_words.with_words(OLD, extra)
    assert trial == OLD.replace(" --", " panic=30 nodeprep.trial=t-1 --")
    assert trial_words.marked(trial) == "t-1"
    assert trial_words.bare(trial) == OLD
    assert trial_words.without(trial, extra) == OLD


def test_a_panic_of_its_own_stays(tmp_path: Path) -> None:
    assert trial_words.added(str(tmp_path), "panic=5", "t-1") == ("nodeprep.trial=t-1",)


def test_dracut_is_told_to_reboot_rather_than_to_ask(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/dracut").mkdir(parents=True)
    extra = trial_words.added(str(tmp_path), "rd.shell=1", "t-1")
    assert extra == ("panic=30", "rd.emergency=reboot", "nodeprep.trial=t-1")


def test_an_old_marker_goes() -> None:
    assert trial_words.with_words("ro nodeprep.trial=old", ("nodeprep.trial=new",)) == "ro nodeprep.trial=new"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a b=1", "b=1 a", True),
        ("BOOT_IMAGE=/vmlinuz a", "a initrd=/initrd.img", True),
        ("console=tty0 console=ttyS0", "console=ttyS0 console=tty0", False),
        ("a", "a a", False),
        ("a b", "a", False),
        ("a -- x", "a", False),
        ("a-b=1 a_b=2", "a-b=1 a_b=2", True),
        ('a="b c" d', '"a=b c" d', True),
    ],
)
def test_the_same_arguments(one: str, other: str, same: bool) -> None:
    assert trial_words.same(one, other) is same
    assert trial_words.same(other, one) is same


def test_what_is_lacking_counts_repeats() -> None:
    assert trial_words.lacking("a a b", "a c") == ["a", "b"]
    assert trial_words.lacking("a", "a b") == []


def test_what_is_unmet_is_named() -> None:
    edit = Edit(present=("iommu=pt",), absent=("quiet",), replace=("panic=10",))
    assert trial_words.unmet(edit, edit.apply("quiet iommu=off panic=1 ro")) == []
    assert trial_words.unmet(edit, "quiet iommu=off panic=1 ro") == [
        "iommu=pt is not there exactly once and in effect",
        "panic=10 is not there exactly once and in effect",
        "quiet should not be there",
        "iommu=off should not be there",
        "panic=1 should not be there",
    ]
    assert trial_words.unmet(edit, "iommu=pt iommu=pt panic=10")[0].startswith(
        "iommu=pt is not there exactly"
    )


@pytest.mark.parametrize("name", ["t-1x", "a" * 64, "2026-10-02T10_00_00"])
def test_ids(name: str) -> None:
    assert trial_words.valid_id(name)


@pytest.mark.parametrize("name", ["", "abc", "a" * 65, "a b c d", 'a"bcd', "-abcd", "a=bcd"])
def test_no_ids(name: str) -> None:
    assert not trial_words.valid_id(name)
