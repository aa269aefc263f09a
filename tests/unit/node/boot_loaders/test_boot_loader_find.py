"""The order in which boot loaders are looked for, versions, and how programs are run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nodeprep.node.boot_loaders import BACK_ENDS, Refusal, ToolError, _bls, _tools, find

CASES = Path(__file__).parents[3] / "cases" / "boot_loaders"


def both(root: Path, *layouts: str) -> str:
    for layout in layouts:
        shutil.copytree(CASES / layout, root, ignore=shutil.ignore_patterns("dev"), dirs_exist_ok=True)
    return find(str(root)).id


@pytest.mark.parametrize(
    ("layouts", "winner"),
    [
        (("debian12", "bootc"), "bootc"),
        (("debian12", "fedora_coreos"), "rpm_ostree"),
        (("debian12", "netboot_maas"), "netboot"),
        (("debian12", "uki"), "uki"),
        (("debian12", "systemd_boot"), "systemd_boot"),
        (("debian12", "rhel9_4"), "grubby"),
        (("sles15", "debian12"), "grub_debian"),
    ],
)
def test_the_loader_in_charge_wins(tmp_path: Path, layouts: tuple[str, ...], winner: str) -> None:
    assert both(tmp_path, *layouts) == winner


def test_the_order_is_that_of_the_list() -> None:
    assert [back_end.id for back_end in BACK_ENDS] == [
        "bootc", "rpm_ostree", "netboot", "uki", "systemd_boot", "grubby", "grub_debian", "suse",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "cmdline",
    [
        "root=/dev/nfs nfsroot=10.0.0.1:/x",
        "root=live:http://x/y.img",
        "BOOTIF=01-02",
        "root=wwclient",
        "root=nfs:a:/b",
    ],
)
def test_network_boot_is_seen(tmp_path: Path, cmdline: str) -> None:
    shutil.copytree(CASES / "debian12", tmp_path, symlinks=True, dirs_exist_ok=True)
    (tmp_path / "proc/cmdline").write_text(cmdline)
    assert find(str(tmp_path)).id == "netboot"


@pytest.mark.parametrize(
    "cmdline", ["root=UUID=1 ro", "root=/dev/sda1 ip=dhcp", "root=live:CDLABEL=x", "x -- BOOTIF=1"]
)
def test_a_boot_from_disk_is_not_taken_for_network_boot(tmp_path: Path, cmdline: str) -> None:
    shutil.copytree(CASES / "debian12", tmp_path, symlinks=True, dirs_exist_ok=True)
    (tmp_path / "proc/cmdline").write_text(cmdline)
    assert find(str(tmp_path)).id == "grub_debian"


def test_a_root_on_the_network_is_network_boot(tmp_path: Path) -> None:
    shutil.copytree(CASES / "debian12", tmp_path, symlinks=True, dirs_exist_ok=True)
    (tmp_path / "proc/self/mountinfo").write_text("27 1 0:40 / / rw - nfs4 10.0.0.1:/r rw\n")
    assert find(str(tmp_path)).id == "netboot"


def test_an_empty_root_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="no boot loader was recognised") as caught:
        find(str(tmp_path))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("5.14.0-427.9.1.el9", "5.14.0-427.13.1.el9"),
        ("1~rc1", "1"),
        ("~x", "a"),
        ("abc", "0"),
        ("1.0", "1.0.1"),
        ("1.a", "1.b"),
        ("", "1"),
    ],
)
def test_versions(older: str, newer: str) -> None:
    assert _bls.compare_versions(older, newer) < 0 < _bls.compare_versions(newer, older)
    assert _bls.compare_versions(newer, newer) == 0


def entry(name: str, *lines: str) -> _bls.BlsEntry:
    return _bls.BlsEntry(f"/boot/loader/entries/{name}.conf", lines)


def test_systemd_boot_sorts_as_the_specification_says() -> None:
    new = entry("b", "sort-key x", "machine-id m", "version 2")
    old = entry("a", "sort-key x", "machine-id m", "version 1")
    other = entry("c", "sort-key y", "version 9")
    without = entry("z", "version 99")
    used_up = entry("b+0-3", "sort-key a", "version 99")
    order = [new, old, other, without, used_up]
    assert _bls.systemd_order(order[::-1]) == order
    assert used_up.id == "b"


def test_options_lines_become_one() -> None:
    text = entry("a", "title T", "options a b", "options c", "linux /x").with_options("d e", "New")
    assert text == "title New\nlinux /x\noptions d e\n"
    assert entry("a", "options a b", "options\tc").options == "a b c"


def test_a_program_is_run() -> None:
    assert _tools.run(["printf", "x y"]) == "x y"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["sh", "-c", "echo it is broken >&2; exit 3"], "it is broken"),
        (["sh", "-c", "echo said on the wrong side; exit 3"], "said on the wrong side"),
        (["sh", "-c", "exit 3"], "exit status 3"),
        (["no-such-program-anywhere"], "there is no such program"),
    ],
)
def test_what_a_program_says_is_kept(command: list[str], words: str) -> None:
    with pytest.raises(ToolError, match=words):
        _tools.run(command)


def test_a_program_that_hangs_is_given_up() -> None:
    with pytest.raises(ToolError, match="no end after 0 s"):
        _tools.run(["sleep", "10"], 0.2)


def test_programs_of_root_are_found_without_roots_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert _tools.run(["sh", "-c", "echo $PATH"]).strip().startswith("/nowhere:/usr/local/sbin:/usr/sbin")
