"""systemd-boot's back end on the layouts of Debian and Pop!_OS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bls_node import BlsNode

from nodeprep.node.boot_loaders import BootLoader, Refusal, ToolError, find
from nodeprep.node.kernel_cmdline import Edit

EDIT = Edit(present=("iommu=pt",), absent=("quiet",))
VARIABLES = "sys/firmware/efi/efivars"
VENDOR = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


def loader(node: BlsNode) -> BootLoader:
    return find(str(node.root), node.run)


def set_variable(node: BlsNode, name: str, text: str) -> None:
    path = node.root / VARIABLES / f"{name}-{VENDOR}"
    path.write_bytes(b"\x07\0\0\0" + (text + "\0").encode("utf-16-le"))


@pytest.fixture(params=["systemd_boot", "pop_os"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> BlsNode:
    return BlsNode(tmp_path, request.param)


def test_a_commit_and_its_way_back(node: BlsNode) -> None:
    before = (node.entries(), loader(node).default_entry())
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    after = loader(node).default_entry().cmdline
    assert EDIT.satisfied(after)
    assert sorted(after.split()) == sorted(EDIT.apply(before[1].cmdline).split())
    loader(node).restore(snapshot, [EDIT])
    assert (node.entries(), loader(node).default_entry()) == before


def test_restore_leaves_what_others_have_done_since(node: BlsNode) -> None:
    before = loader(node).default_entry().cmdline
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    for path in node.root.glob("**/loader/entries/*.conf"):
        path.write_text(path.read_text().rstrip() + " audit=1\n")
    loader(node).restore(snapshot, [EDIT])
    assert sorted(loader(node).default_entry().cmdline.split()) == sorted([*before.split(), "audit=1"])


def test_kernelstubs_own_list_loses_what_nodeprep_added(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "pop_os")
    path = node.root / "etc/kernelstub/configuration"
    path.parent.mkdir(parents=True, exist_ok=True)

    def write(*options: str) -> None:
        path.write_text(json.dumps({"user": {"kernel_options": list(options), "esp_path": "/boot/efi"}}))

    write("quiet", "splash")
    first = path.read_text()
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    write("splash", "iommu=pt")
    loader(node).restore(snapshot, [EDIT])
    assert path.read_text() == first
    loader(node).commit(EDIT)
    write("splash", "iommu=pt", "audit=1")
    loader(node).restore(snapshot, [EDIT])
    assert json.loads(path.read_text())["user"] == {
        "kernel_options": ["splash", "audit=1", "quiet"],
        "esp_path": "/boot/efi",
    }


def test_every_entry_and_later_kernels_are_reached(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "systemd_boot")
    loader(node).commit(EDIT)
    assert all(EDIT.satisfied(options) for options in node.entries().values())
    assert EDIT.satisfied((node.root / "etc/kernel/cmdline").read_text())
    assert node.called == []


def test_later_kernels_do_not_take_the_running_arguments(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "systemd_boot")
    (node.root / "etc/kernel/cmdline").unlink()
    (node.root / "proc/cmdline").write_text("root=x nodeprep.trial=9\n")
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    text = (node.root / "etc/kernel/cmdline").read_text()
    assert EDIT.satisfied(text)
    assert "nodeprep.trial" not in text
    loader(node).restore(snapshot, [EDIT])
    assert not (node.root / "etc/kernel/cmdline").exists()


def test_a_failing_kernelstub_leaves_everything_as_it_was(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "pop_os")
    before = node.entries()
    node.broken.add("kernelstub")
    with pytest.raises(ToolError):
        loader(node).commit(EDIT)
    assert node.entries() == before


def test_a_trial_is_staged_armed_and_taken_back(node: BlsNode) -> None:
    trial = loader(node)
    before = trial.default_entry()
    cmdline = f'{before.cmdline} iommu=off dyndbg="file a +p" nodeprep.trial=3'
    trial.stage_trial(cmdline)
    assert trial.staged() == cmdline
    assert trial.default_entry() == before
    trial.arm()
    assert trial.armed()
    assert node.called == [["bootctl", "set-oneshot", "~nodeprep-trial.conf"]]
    trial.unstage()
    trial.unstage()
    assert (trial.staged(), trial.armed()) == (None, False)
    with pytest.raises(Refusal, match="no one-shot boot entry"):
        trial.arm()


def test_a_choice_of_others_is_left_alone(node: BlsNode) -> None:
    set_variable(node, "LoaderEntryOneShot", "memtest.conf")
    trial = loader(node)
    trial.stage_trial("quiet")
    with pytest.raises(Refusal, match="already promised"):
        trial.arm()
    trial.unstage()
    assert node.called == []


def test_a_choice_that_the_firmware_does_not_keep_is_noticed(node: BlsNode) -> None:
    trial = find(str(node.root), lambda argv, timeout_s: "")
    trial.stage_trial("quiet")
    with pytest.raises(Refusal, match="the firmware does not hold"):
        trial.arm()


def test_the_firmware_variable_outranks_loader_conf(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "systemd_boot")
    (node.root / "boot/efi/loader/loader.conf").write_text("default *-6.1.0-9-*\n")
    assert loader(node).default_entry().kernel_release == "6.1.0-9-amd64"
    set_variable(node, "LoaderEntryDefault", "*-6.1.0-18-amd64.conf")
    assert loader(node).default_entry().kernel_release == "6.1.0-18-amd64"
    set_variable(node, "LoaderEntryDefault", "linux.efi")
    with pytest.raises(ValueError, match="with its arguments inside"):
        loader(node).default_entry()


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("boot/efi/loader/loader.conf", b"timeout menu-force\n", "waits at its menu"),
        (f"{VARIABLES}/LoaderFeatures-{VENDOR}", b"\x06\0\0\0" + bytes(8), "does not say"),
        ("usr/bin/sdbootutil", b"", "sealed the disk's key"),
    ],
)
def test_obstacles(tmp_path: Path, path: str, content: bytes, words: str) -> None:
    node = BlsNode(tmp_path, "systemd_boot")
    (node.root / path).write_bytes(content)
    assert words in loader(node).one_shot_obstacle()
    with pytest.raises(Refusal, match=words):
        loader(node).stage_trial("quiet")


def test_grub_with_its_own_loader_info_is_not_systemd_boot(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "systemd_boot")
    set_variable(node, "LoaderInfo", "GRUB 2.12")
    with pytest.raises(Refusal, match="no boot loader was recognised"):
        loader(node)
