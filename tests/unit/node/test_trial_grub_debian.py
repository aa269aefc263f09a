"""The state machine over a real grub-mkconfig: from stage to commit, back, and killed on the way."""

from __future__ import annotations

import itertools
import sys
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from killing import Killer
from trial_node import Node

from nodeprep.node import trial_end, trial_state
from nodeprep.node.boot_loaders.grub_debian import GrubDebian
from nodeprep.node.kernel_cmdline import Edit

sys.path.insert(0, str(Path(__file__).parent / "boot_loaders"))

import debian_node

pytestmark = pytest.mark.skipif(bool(debian_node.MISSING), reason=f"needs {debian_node.MISSING}")

EDIT = Edit(present=("iommu=pt", "pcie_aspm.policy=performance"), absent=("quiet",))
CLOUD = {"50-cloudimg-settings.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="console=tty1 console=ttyS0"\n'}


class GrubNode(Node):
    """A Debian node that can be rebooted."""

    drop_ins: ClassVar[dict[str, str]] = {}

    def set_up(self) -> None:
        self.debian = debian_node.DebianNode(Path(self.root), drop_ins=self.drop_ins)
        self.loader = GrubDebian(self.root, self.debian.run)  # type: ignore[assignment]

    def next_cmdline(self) -> str:
        chosen = self.debian.boot()
        staged = self.loader.staged()
        if chosen:
            assert staged is not None
            return staged
        return self.permanent


class CloudNode(GrubNode):
    """With the drop-in of a cloud image, which assigns the arguments anew."""

    drop_ins: ClassVar[dict[str, str]] = CLOUD


QUOTED = Edit(present=('dyndbg="file a.c +p"', "console=ttyS1,115200"))


@pytest.mark.parametrize("kind", [GrubNode, CloudNode])
def test_quotes_and_the_last_console_come_out_right(tmp_path: Path, kind: type[GrubNode]) -> None:
    node = kind(tmp_path)
    assert node.apply(QUOTED) == "committed"
    assert node.boot().endswith("console=ttyS1,115200")
    assert node.apply(QUOTED, "trial-2") == "as wanted"


@pytest.mark.parametrize("kind", [GrubNode, CloudNode])
def test_apply_again_and_back(tmp_path: Path, kind: type[GrubNode]) -> None:
    node = kind(tmp_path)
    old = node.permanent
    before = node.debian.read("boot/grub/grub.cfg")
    assert node.apply(EDIT) == "committed"
    assert EDIT.satisfied(node.permanent)
    assert EDIT.satisfied(node.boot())
    assert len(node.boots) == 3
    assert node.apply(EDIT, "trial-2") == "as wanted"
    assert node.clean
    restored = node.restore()
    assert (restored["changed"], restored["needs_reboot"]) == (True, True), restored["msg"]
    assert node.boot() == old
    assert node.restore()["finished"] is True
    assert node.debian.read("boot/grub/grub.cfg") == before


def test_a_simulated_root_is_only_read(tmp_path: Path) -> None:
    node = GrubNode(tmp_path)
    node.loader = GrubDebian(node.root)  # type: ignore[assignment]
    assert node.stage(EDIT, check_mode=True)["changed"] is True
    staged = node.stage(EDIT)
    assert (staged["failed"], staged["changed"]) == (True, False)
    assert staged["msg"] == f"{node.root} is a simulated root: its boot loader is only read"
    assert node.clean
    assert trial_state.restore_point(node.root) is None


def test_a_bad_boot_leaves_grub_as_it_was(tmp_path: Path) -> None:
    node = GrubNode(tmp_path)
    node.effects["maxcpus=1"] = lambda node: node.write("/sys/devices/system/cpu/online", "0\n")
    before = node.debian.read("boot/grub/grub.cfg")
    old = node.permanent
    assert node.apply(Edit(present=("maxcpus=1",))) == "rolled back"
    assert node.boots[-1] == old
    assert node.clean
    assert node.debian.read("boot/grub/grub.cfg") == before


def break_off_early(node: GrubNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power goes when the drop-in of a commit is written and grub.cfg is not generated."""
    assert node.judge()["verdict"] == "good"
    put = node.loader._put  # type: ignore[attr-defined]
    dead: list[bool] = []

    def power_cut() -> None:
        dead.append(True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(node.loader, "_put", lambda files: None if dead else put(files))
        patch.setattr(node.loader, "_generated", power_cut)
        with pytest.raises(KeyboardInterrupt):
            node.commit()
    assert (Path(node.root) / DROP_IN).exists()


DROP_IN = "etc/default/grub.d/zz-nodeprep.cfg"


@pytest.mark.parametrize("step", ["stage", "abandon", "restore"])
def test_half_a_commit_goes_without_taking_untried_words_of_others_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    node = GrubNode(tmp_path)
    old = node.permanent
    node.try_out(EDIT)
    break_off_early(node, monkeypatch)
    node.boot()
    node.debian.write("etc/default/grub", debian_node.PLAIN.replace('"quiet"', '"quiet mem=2G"'))
    before = node.debian.read("boot/grub/grub.cfg")
    done = node.stage(EDIT, "again") if step == "stage" else getattr(node, step)()
    # A new trial is refused for what is pending; ending the old one needs no generation.
    assert done["failed"] is (step == "stage"), done["msg"]
    assert step != "stage" or "+mem=2G" in done["msg"]
    assert node.debian.read("boot/grub/grub.cfg") == before
    assert node.permanent == old
    assert not (tmp_path / DROP_IN).exists()


@pytest.mark.parametrize("step", ["commit", "abandon"])
def test_a_commit_broken_off_late_keeps_what_others_made_permanent_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def power_cut(*_: object) -> None:
        raise KeyboardInterrupt

    node = GrubNode(tmp_path)
    old = node.permanent
    node.try_out(EDIT)
    assert node.judge()["verdict"] == "good"
    with monkeypatch.context() as patch:
        patch.setattr(trial_end, "finish", power_cut)
        with pytest.raises(KeyboardInterrupt):
            node.commit()
    node.debian.write("etc/default/grub.d/10-site.cfg", 'GRUB_CMDLINE_LINUX="audit=0"\n')
    node.debian.update_grub()
    done = getattr(node, step)()
    assert not done["failed"], done["msg"]
    assert node.clean
    kept = EDIT.apply(old) if step == "commit" else old
    assert sorted(node.permanent.split()) == sorted([*kept.split(), "audit=0"])


def test_a_commit_that_is_killed_is_finished_or_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer = Killer(monkeypatch)
    permanents = set()
    for at in itertools.count():
        node = GrubNode(tmp_path / f"at{at}")
        old = node.permanent
        node.loader._run_program = killer.step(node.debian.run)
        node.try_out(EDIT)
        assert node.judge()["verdict"] == "good"
        if killer.survives(partial(node.commit), at):
            break
        assert node.permanent in (old, EDIT.apply(old))
        permanents.add(node.permanent)
        if at % 2:
            node.boot()
        assert node.apply(EDIT, "again") in ("committed", "as wanted")
        assert node.clean
        assert EDIT.satisfied(node.boot())
        assert node.apply(EDIT, "last") == "as wanted"
        point = trial_state.restore_point(node.root)
        assert point is not None
        assert point.permanent == old
    assert at > 8
    assert len(permanents) == 2
