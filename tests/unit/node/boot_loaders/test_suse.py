"""SUSE's back end: GRUB's own programs under their names there, and settings in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from debian_node import MISSING, DebianNode

from nodeprep.node.boot_loaders import BootLoader, Refusal, find
from nodeprep.node.kernel_cmdline import Edit

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

SETTINGS = """\
GRUB_DISTRIBUTOR=SLES
GRUB_DEFAULT=saved
GRUB_TIMEOUT=8
GRUB_CMDLINE_LINUX_DEFAULT="splash=silent quiet crashkernel=322M,high"
GRUB_CMDLINE_LINUX="net.ifnames=0"
# the end
"""
EDIT = Edit(present=("iommu=pt", "console=tty0", "console=ttyS0"), absent=("quiet",))


class SuseNode(DebianNode):
    """A SLES node: /boot/grub2, programs that begin with grub2, no drop-ins."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, SETTINGS)
        (root / "boot/grub").rename(root / "boot/grub2")
        (root / "usr/sbin/update-grub").rename(root / "usr/sbin/update-bootloader")
        for script in root.glob("etc/grub.d/*"):
            script.write_text(script.read_text().replace("/boot/grub", "/boot/grub2"))

    def run(self, argv: Sequence[str], timeout_s: float) -> str:
        return super().run([argv[0].replace("grub2-", "grub-"), *argv[1:]], timeout_s)


def loader(node: SuseNode) -> BootLoader:
    return find(str(node.root), node.run)


@pytest.fixture
def node(tmp_path: Path) -> SuseNode:
    return SuseNode(tmp_path)


def test_a_commit_edits_the_line_and_keeps_the_rest(node: SuseNode) -> None:
    assert loader(node).id == "suse"
    loader(node).commit(EDIT)
    line = (
        'GRUB_CMDLINE_LINUX_DEFAULT="splash=silent crashkernel=322M,high iommu=pt console=tty0 console=ttyS0"'
    )
    assert node.read("etc/default/grub") == SETTINGS.replace(
        'GRUB_CMDLINE_LINUX_DEFAULT="splash=silent quiet crashkernel=322M,high"', line
    )
    assert EDIT.satisfied(loader(node).default_entry().cmdline)
    node.called.clear()
    loader(node).commit(EDIT)
    assert "grub-mkconfig" not in node.called


def test_restore_puts_the_lines_back_and_keeps_other_settings(node: SuseNode) -> None:
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    loader(node).commit(Edit(absent=("net.ifnames",)))
    node.write("etc/default/grub", node.read("etc/default/grub").replace("TIMEOUT=8", "TIMEOUT=3"))
    loader(node).restore(snapshot)
    assert node.read("etc/default/grub") == SETTINGS.replace("TIMEOUT=8", "TIMEOUT=3")
    assert loader(node).default_entry().cmdline == snapshot["cmdline"]


def test_restore_does_not_make_a_pending_kernel_permanent(node: SuseNode) -> None:
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    node.add_kernel("6.1.0-21-amd64")
    before = (node.read("boot/grub2/grub.cfg"), node.read("etc/default/grub"))
    with pytest.raises(Refusal, match=r"kernel 6\.1\.0-21-amd64 instead of"):
        loader(node).restore(snapshot)
    assert (node.read("boot/grub2/grub.cfg"), node.read("etc/default/grub")) == before


def test_a_line_that_is_missing_is_added_and_taken_away_again(node: SuseNode) -> None:
    node.write("etc/default/grub", "GRUB_TIMEOUT=8\n")
    node.run(["grub2-mkconfig", "-o", str(node.root / "boot/grub2/grub.cfg")], 60)
    snapshot = loader(node).snapshot()
    loader(node).commit(Edit(present=("iommu=pt",)))
    assert node.read("etc/default/grub") == 'GRUB_TIMEOUT=8\nGRUB_CMDLINE_LINUX_DEFAULT="iommu=pt"\n'
    loader(node).restore(snapshot)
    assert node.read("etc/default/grub") == "GRUB_TIMEOUT=8\n"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('GRUB_CMDLINE_LINUX_DEFAULT="a"\n', "in more than one line"),
        ('for x in 1; do GRUB_CMDLINE_LINUX_DEFAULT="late"; done\n', "more than one plain line"),
    ],
)
def test_settings_that_are_more_than_lines_are_refused(node: SuseNode, more: str, words: str) -> None:
    node.write("etc/default/grub", SETTINGS + more)
    node.run(["grub2-mkconfig", "-o", str(node.root / "boot/grub2/grub.cfg")], 60)
    with pytest.raises(Refusal, match=words):
        loader(node).commit(EDIT)
    assert node.read("etc/default/grub") == SETTINGS + more


def test_values_with_quotes_survive(node: SuseNode) -> None:
    edit = Edit(present=('dyndbg="file a +p"', "memmap=4G$8G"))
    loader(node).commit(edit)
    loader(node).commit(EDIT)
    assert edit.satisfied(loader(node).default_entry().cmdline)


def test_a_trial(node: SuseNode) -> None:
    trial = loader(node)
    trial.stage_trial("root=/dev/vda1 iommu=pt")
    trial.arm()
    assert trial.armed()
    assert (node.root / "boot/grub2/custom.cfg").exists()
    trial.unstage()
    assert (trial.staged(), trial.armed()) == (None, False)


def test_variables_in_the_header_of_btrfs_are_asked_of_grub(node: SuseNode) -> None:
    env = str(node.root / "boot/grub2/grubenv")
    node.run(["grub2-editenv", env, "set", "env_block=512+1"], 10)
    cfg = node.root / "boot/grub2/grub.cfg"
    cfg.write_text(cfg.read_text().replace('set default="0"', 'set default="${saved_entry}"'))
    node.called.clear()
    assert loader(node).default_entry().kernel_release
    assert node.called == ["grub-editenv"]
    with pytest.raises(Refusal, match="simulated root"):
        find(str(node.root)).default_entry()
