"""grubby's back end on the layouts of the RHEL family, with GRUB's own grub-editenv."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bls_node import BlsNode

from nodeprep.node.boot_loaders import BootLoader, Refusal, ToolError, find
from nodeprep.node.kernel_cmdline import Edit

pytestmark = pytest.mark.skipif(not shutil.which("grub-editenv"), reason="grub-editenv is not installed")

LAYOUTS = ["rhel8", "rhel9_2", "rhel9_4"]
EDIT = Edit(present=("iommu=pt", "console=tty0"), absent=("crashkernel",))
KERNEL_CMDLINE = "etc/kernel/cmdline"


def loader(node: BlsNode) -> BootLoader:
    return find(str(node.root), node.run)


@pytest.fixture(params=LAYOUTS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> BlsNode:
    return BlsNode(tmp_path, request.param)


def test_a_commit_reaches_every_entry(node: BlsNode) -> None:
    before = loader(node).default_entry().cmdline
    loader(node).commit(EDIT)
    after = loader(node).default_entry().cmdline
    assert EDIT.satisfied(after)
    assert sorted(after.split()) == sorted(EDIT.apply(before).split())
    for options in node.entries().values():
        assert "$kernelopts" in options or EDIT.satisfied(options)


def test_grub2_mkconfig_is_never_run(node: BlsNode) -> None:
    written = (node.root / "boot/grub2/grub.cfg").read_text()
    loader(node).commit(EDIT)
    assert {argv[0] for argv in node.called} <= {"grubby", "grub2-editenv"}
    assert (node.root / "boot/grub2/grub.cfg").read_text() == written


def test_a_second_value_of_a_key_does_not_cost_the_first(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel9_2")
    loader(node).commit(EDIT)
    grubby = next(argv for argv in node.called if argv[0] == "grubby")
    assert grubby[1:] == [
        "--update-kernel=ALL",
        "--remove-args=crashkernel",
        "--args=console=ttyS0 iommu=pt console=tty0",
    ]


def test_kernels_installed_later_take_the_arguments(tmp_path: Path) -> None:
    for layout in ("rhel9_2", "rhel9_4"):
        node = BlsNode(tmp_path / layout, layout)
        loader(node).commit(EDIT)
        text = (node.root / KERNEL_CMDLINE).read_text()
        assert EDIT.satisfied(text)
        assert text.startswith("root=UUID=")
        assert "$" not in text
    # RHEL 8 takes kernelopts; a file of this name would be new there.
    node = BlsNode(tmp_path / "rhel8", "rhel8")
    loader(node).commit(EDIT)
    assert not (node.root / KERNEL_CMDLINE).exists()
    assert EDIT.satisfied(node.environment()["kernelopts"])


def test_what_grubby_does_not_do_is_taken_back(node: BlsNode) -> None:
    before = (node.entries(), node.environment())
    node.careless = True
    with pytest.raises(Refusal, match=r"other arguments than asked for .*iommu=pt"):
        loader(node).commit(EDIT)
    assert (node.entries(), node.environment()) == before


def test_an_argument_that_tuned_adds_is_told(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel9_4")
    cfg = node.root / "boot/grub2/grub.cfg"
    cfg.write_text(cfg.read_text().replace('tuned_params=""', 'tuned_params="iommu=off skew_tick=1"'))
    before = node.entries()
    assert loader(node).default_entry().cmdline.endswith("iommu=off skew_tick=1")
    with pytest.raises(Refusal, match="other arguments") as caught:
        loader(node).commit(EDIT)
    assert "tuned" in caught.value.hint
    assert node.entries() == before


@pytest.mark.parametrize("word", ['dyndbg="file a +p"', "memmap=4G$8G", "a=*"])
def test_what_grubby_cannot_take_is_refused(tmp_path: Path, word: str) -> None:
    node = BlsNode(tmp_path, "rhel9_4")
    with pytest.raises(Refusal, match="grubby cannot take"):
        loader(node).commit(Edit(present=(word,)))
    assert node.called == []
    assert not (node.root / KERNEL_CMDLINE).exists()


def test_a_failing_grubby_leaves_everything_as_it_was(node: BlsNode) -> None:
    before = node.entries()
    node.broken.add("grubby")
    with pytest.raises(ToolError):
        loader(node).commit(EDIT)
    assert node.entries() == before


def test_restore(node: BlsNode) -> None:
    before = (node.entries(), node.environment(), loader(node).default_entry())
    files = {path: (node.root / path).exists() for path in (KERNEL_CMDLINE, "etc/default/grub")}
    snapshot = loader(node).snapshot()
    second = Edit(absent=("iommu",), present=("nosmt",))
    loader(node).commit(EDIT)
    loader(node).commit(second)
    loader(node).restore(snapshot, [EDIT, second])
    assert (node.entries(), node.environment(), loader(node).default_entry()) == before
    assert {path: (node.root / path).exists() for path in files} == files


def test_restore_leaves_what_others_have_done_since(node: BlsNode) -> None:
    before = loader(node).default_entry().cmdline
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    node.run(["grubby", "--update-kernel=ALL", "--args=audit=1", "--remove-args=rhgb"], 10)
    loader(node).restore(snapshot, [EDIT])
    after = loader(node).default_entry().cmdline.split()
    # Theirs stays, what nodeprep added is gone, and what it took away is back.
    wanted = [word for word in before.split() if word != "rhgb"]
    assert sorted(after) == sorted([*wanted, "audit=1"]), after
    assert (
        "iommu=pt" not in (node.root / KERNEL_CMDLINE).read_text()
        if (node.root / KERNEL_CMDLINE).exists()
        else True
    )


def test_restore_leaves_others_words_for_later_kernels(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel9_4")
    path, defaults = node.root / KERNEL_CMDLINE, node.root / "etc/default/grub"
    path.unlink(missing_ok=True)
    text = 'GRUB_TIMEOUT={}\nGRUB_CMDLINE_LINUX="{}"\nGRUB_DISABLE_RECOVERY="true"\n'
    defaults.write_text(text.format(5, "crashkernel=1G rhgb"))
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    # As the real grubby leaves the line: all values of a key that it adds one of.
    made = "rhgb console=ttyS0 iommu=pt console=tty0"
    defaults.write_text(text.format(9, made))
    loader(node).restore(snapshot, [EDIT])
    assert defaults.read_text() == text.format(9, "crashkernel=1G rhgb")
    assert not path.exists()
    loader(node).commit(EDIT)
    defaults.write_text(text.format(9, f"{made} audit=1"))
    path.write_text(path.read_text().strip() + " audit=1\n")
    loader(node).restore(snapshot, [EDIT])
    assert "iommu" not in path.read_text() + defaults.read_text()
    assert path.read_text().count("audit=1") == defaults.read_text().count("audit=1") == 1


def test_restore_reaches_a_kernel_installed_since(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel9_4")
    before = loader(node).default_entry().cmdline
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    old = next((node.root / "boot/loader/entries").glob("*427.13*"))
    new = old.with_name(old.name.replace("427.13.1", "427.20.1"))
    new.write_text(old.read_text().replace("427.13.1", "427.20.1"))
    assert loader(node).default_entry().kernel_release == "5.14.0-427.20.1.el9_4.x86_64"
    loader(node).restore(snapshot, [EDIT])
    assert sorted(loader(node).default_entry().cmdline.split()) == sorted(before.split())


def test_a_trial_is_staged_armed_and_taken_back(node: BlsNode) -> None:
    trial = loader(node)
    before = trial.default_entry()
    cmdline = f'{before.cmdline} iommu=off dyndbg="file a +p" nodeprep.trial=3'
    trial.stage_trial(cmdline)
    assert trial.staged() == cmdline.replace('dyndbg="file a +p"', '"dyndbg=file a +p"')
    assert trial.default_entry() == before
    trial.arm()
    assert trial.armed()
    assert node.environment()["next_entry"] == "~nodeprep-trial"
    trial.disarm()
    assert not trial.armed()
    trial.arm()
    trial.unstage()
    trial.unstage()
    assert (trial.staged(), trial.armed()) == (None, False)


def test_the_trial_is_below_every_entry_and_shifts_none(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel9_4")
    for machine in ("a" * 32, "0" * 32):
        (node.root / "etc/machine-id").write_text(machine + "\n")
        for path in (node.root / "boot/loader/entries").glob("[0-9a-f]*.conf"):
            path.rename(path.with_name(machine + path.name[32:]))
        trial = loader(node)
        trial.stage_trial("root=/dev/sda1")
        assert "~nodeprep-trial" in node.entries()
        assert trial.default_entry().kernel_release == "5.14.0-427.13.1.el9_4.x86_64"
        node.run(["grub2-editenv", str(node.root / "boot/grub2/grubenv"), "set", "saved_entry=1"], 10)
        assert trial.default_entry().kernel_release == "5.14.0-427.9.1.el9_4.x86_64"
        node.run(["grub2-editenv", str(node.root / "boot/grub2/grubenv"), "unset", "saved_entry"], 10)


def test_a_dollar_cannot_be_staged(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel9_4")
    with pytest.raises(Refusal, match=r"with \$"):
        loader(node).stage_trial("memmap=4G$8G")
    assert loader(node).staged() is None


def test_entries_of_another_machine_that_win_are_told(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "fedora_stale_machine_id")
    for action in (lambda: loader(node).stage_trial("quiet"), lambda: loader(node).commit(EDIT)):
        with pytest.raises(Refusal, match="of another machine") as caught:
            action()
        assert "rm /boot/loader/entries/ffffffff" in caught.value.hint


def test_rhel_8_with_uefi_reads_the_efi_partition(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel8")
    folder = node.root / "boot/efi/EFI/redhat"
    folder.mkdir(parents=True)
    for name in ("grub.cfg", "grubenv"):
        (node.root / "boot/grub2" / name).rename(folder / name)
    (node.root / "boot/grub2/grubenv").symlink_to("../efi/EFI/redhat/grubenv")
    mounts = node.root / "proc/self/mountinfo"
    mounts.write_text(mounts.read_text() + "31 30 8:1 / /boot/efi rw - vfat /dev/sda1 rw\n")
    (node.root / "sys/dev/block/8:1").symlink_to("../../devices/pci0000:00/block/sda/sda1")
    trial = loader(node)
    assert trial.default_entry().kernel_release == "4.18.0-553.el8_10.x86_64"
    assert trial.one_shot_obstacle() == ""
    mounts.write_text(mounts.read_text().replace("vfat", "btrfs"))
    assert "/boot/efi/EFI/redhat/grubenv: it lies on btrfs" in trial.one_shot_obstacle()


def test_a_menu_without_blscfg_cannot_be_told(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel9_4")
    cfg = node.root / "boot/grub2/grub.cfg"
    cfg.write_text(cfg.read_text().replace("blscfg\n", "\n"))
    with pytest.raises(ValueError, match="no blscfg"):
        loader(node).default_entry()


def test_a_count_of_failed_boots_is_an_obstacle(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel9_4")
    assert loader(node).one_shot_obstacle() == ""
    node.run(["grub2-editenv", str(node.root / "boot/grub2/grubenv"), "set", "boot_counter=2"], 10)
    assert "counts failed boots" in loader(node).one_shot_obstacle()
    # After enough of them GRUB would take the second entry.
    with pytest.raises(ValueError, match="under a condition"):
        loader(node).default_entry()


def test_a_password_before_the_default_entry_is_an_obstacle(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel9_4")
    (path,) = (node.root / "boot/loader/entries").glob("*427.13*")
    path.write_text(path.read_text().replace("grub_arg --unrestricted\n", ""))
    assert loader(node).one_shot_obstacle() == ""
    (node.root / "boot/grub2/user.cfg").write_text("GRUB2_PASSWORD=grub.pbkdf2.sha512.x\n")
    assert "asks for a password" in loader(node).one_shot_obstacle()


def test_a_custom_cfg_that_sets_the_default_is_an_obstacle(tmp_path: Path) -> None:
    node = BlsNode(tmp_path, "rhel9_4")
    assert loader(node).one_shot_obstacle() == ""
    (node.root / "boot/grub2/custom.cfg").write_text("set default=0\n")
    assert "/boot/grub2/custom.cfg sets the default boot entry" in loader(node).one_shot_obstacle()
