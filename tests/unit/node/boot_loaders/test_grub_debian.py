"""Debian's GRUB on a node in a folder, with the machine's own grub-mkconfig, grub-editenv and shell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from debian_node import MISSING, PLAIN, RELEASE, DebianNode

from nodeprep.node.boot_loaders import BootLoader, Refusal, ToolError, find
from nodeprep.node.kernel_cmdline import Edit

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

CLOUD = {"50-cloudimg-settings.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="console=tty1 console=ttyS0"\n'}
ROOT = "root=/dev/vda1 ro"
EDIT = Edit(present=("iommu=pt", "pcie_aspm=off"), absent=("quiet", "pci=noaer"))
DROP_IN = "etc/default/grub.d/zz-nodeprep.cfg"


def loader(node: DebianNode) -> BootLoader:
    return find(str(node.root), node.run)


def kernel_lines(node: DebianNode) -> list[str]:
    return [
        line.split(None, 2)[2]
        for line in node.read("boot/grub/grub.cfg").splitlines()
        if line.split()[:1] == ["linux"]
    ]


@pytest.fixture
def node(tmp_path: Path) -> DebianNode:
    return DebianNode(tmp_path)


@pytest.mark.parametrize(
    ("settings", "drop_ins", "result"),
    [
        (PLAIN, {}, "iommu=pt pcie_aspm=off"),
        (PLAIN, CLOUD, "console=tty1 console=ttyS0 iommu=pt pcie_aspm=off"),
        (
            PLAIN,
            {"hetzner.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="consoleblank=0 iommu=off"\n'},
            "consoleblank=0 iommu=pt pcie_aspm=off",
        ),
        (
            PLAIN.replace('LINUX=""', 'LINUX="net.ifnames=0 quiet"'),
            {},
            "net.ifnames=0 iommu=pt pcie_aspm=off",
        ),
        (
            PLAIN.replace('"quiet"', '"pci=noaer,realloc iommu=pt iommu=pt"'),
            {},
            "pci=realloc iommu=pt pcie_aspm=off",
        ),
        (PLAIN.replace('"quiet"', '"quiet -- single"'), {}, "iommu=pt pcie_aspm=off -- single"),
    ],
)
def test_a_commit_edits_what_others_have_set(
    tmp_path: Path, settings: str, drop_ins: dict[str, str], result: str
) -> None:
    node = DebianNode(tmp_path, settings, drop_ins)
    before = kernel_lines(node)
    loader(node).commit(EDIT)
    assert loader(node).default_entry().cmdline == f"{ROOT} {result}"
    simple, advanced, recovery = kernel_lines(node)
    assert simple.split() == advanced.split()
    # Recovery entries get nothing new.
    assert recovery.split() == Edit(absent=EDIT.absent).apply(before[2]).split()
    # Others' files are as they were.
    assert node.read("etc/default/grub") == settings
    assert all(node.read(f"etc/default/grub.d/{name}") == text for name, text in drop_ins.items())


def test_a_second_commit_of_the_same_does_nothing(node: DebianNode) -> None:
    loader(node).commit(EDIT)
    written = node.read("boot/grub/grub.cfg")
    node.called.clear()
    loader(node).commit(EDIT)
    assert node.called == []
    assert node.read("boot/grub/grub.cfg") == written


def test_commits_add_up(node: DebianNode) -> None:
    loader(node).commit(Edit(present=("iommu=pt", "panic=30"), absent=("quiet",), replace=("loglevel=3",)))
    loader(node).commit(Edit(present=("iommu=off", "quiet"), absent=("panic",), replace=("loglevel=4",)))
    assert loader(node).default_entry().cmdline == f"{ROOT} iommu=off quiet loglevel=4"
    assert [path.name for path in (node.root / "etc/default/grub.d").iterdir()] == ["zz-nodeprep.cfg"]


def test_a_kernel_installed_later_has_the_arguments(node: DebianNode) -> None:
    loader(node).commit(EDIT)
    node.add_kernel("6.1.0-21-amd64")
    node.update_grub()
    entry = loader(node).default_entry()
    assert entry.kernel_release == "6.1.0-21-amd64"
    assert EDIT.satisfied(entry.cmdline)


def test_a_later_drop_in_of_others_does_not_win(tmp_path: Path) -> None:
    node = DebianNode(tmp_path, drop_ins={"zz-provider.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="splash"\n'})
    loader(node).commit(EDIT)
    assert (node.root / "etc/default/grub.d/zzz-nodeprep.cfg").exists()
    assert loader(node).default_entry().cmdline == f"{ROOT} splash iommu=pt pcie_aspm=off"
    # One that is added later and comes after everything: the old file goes when the next is written.
    node.write("etc/default/grub.d/zzzz.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="splash iommu=off"\n')
    node.update_grub()
    assert not EDIT.satisfied(loader(node).default_entry().cmdline)
    loader(node).commit(EDIT)
    assert EDIT.satisfied(loader(node).default_entry().cmdline)
    assert not (node.root / "etc/default/grub.d/zzz-nodeprep.cfg").exists()


def test_a_name_that_no_name_follows_is_refused(tmp_path: Path) -> None:
    node = DebianNode(tmp_path, drop_ins={"~last.cfg": ""})
    with pytest.raises(Refusal, match=r"~last\.cfg comes after") as caught:
        loader(node).commit(EDIT)
    assert caught.value.hint.startswith("rename it")


def test_a_commit_that_has_no_effect_is_taken_back(node: DebianNode) -> None:
    before = node.read("boot/grub/grub.cfg")
    with pytest.raises(Refusal, match="would not take the arguments") as caught:
        loader(node).commit(Edit(present=("iommu=pt",), absent=("ro",)))
    assert "/etc/grub.d" in caught.value.hint
    assert node.read("boot/grub/grub.cfg") == before
    assert not (node.root / DROP_IN).exists()


@pytest.mark.parametrize("after", [False, True])
def test_a_failing_grub_mkconfig_leaves_everything_as_it_was(node: DebianNode, after: bool) -> None:
    if after:
        loader(node).commit(EDIT)
    before = (node.read("boot/grub/grub.cfg"), sorted(node.root.glob("etc/default/grub.d/*")))
    node.broken.add("grub-mkconfig")
    with pytest.raises(ToolError, match="broken for the test"):
        loader(node).commit(Edit(present=("nosmt",)))
    assert (node.read("boot/grub/grub.cfg"), sorted(node.root.glob("etc/default/grub.d/*"))) == before
    assert not list(node.root.glob("boot/grub/nodeprep*"))


def test_pending_changes_of_others_are_refused(node: DebianNode) -> None:
    node.write("etc/default/grub", PLAIN.replace('"quiet"', '"quiet mem=2G"'))
    for action in (lambda: loader(node).stage_trial(f"{ROOT} iommu=pt"), lambda: loader(node).commit(EDIT)):
        with pytest.raises(Refusal, match=r"\+mem=2G") as caught:
            action()
        assert "grub-mkconfig -o /boot/grub/grub.cfg" in caught.value.hint
    assert "mem=2G" not in node.read("boot/grub/grub.cfg")
    assert loader(node).staged() is None


def test_a_pending_kernel_is_refused(node: DebianNode) -> None:
    node.add_kernel("6.1.0-21-amd64")
    with pytest.raises(Refusal, match=f"kernel 6.1.0-21-amd64 instead of {RELEASE}"):
        loader(node).stage_trial(f"{ROOT} iommu=pt")


def test_restore_takes_back_the_first_commit_and_keeps_others(node: DebianNode) -> None:
    original = node.read("boot/grub/grub.cfg")
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    loader(node).commit(Edit(present=("nosmt",)))
    node.write("etc/default/grub.d/10-site.cfg", 'GRUB_CMDLINE_LINUX="site=1"\n')
    node.update_grub()
    loader(node).restore(snapshot)
    assert loader(node).default_entry().cmdline == f"{ROOT} site=1 quiet"
    (node.root / "etc/default/grub.d/10-site.cfg").unlink()
    node.update_grub()
    assert node.read("boot/grub/grub.cfg") == original
    node.called.clear()
    loader(node).restore(snapshot)
    assert node.called == []


def pending_words(node: DebianNode) -> str:
    node.write("etc/default/grub", PLAIN.replace('"quiet"', '"quiet mem=2G"'))
    return r"\+mem=2G"


def pending_kernel(node: DebianNode) -> str:
    node.add_kernel("6.1.0-21-amd64")
    return f"kernel 6.1.0-21-amd64 instead of {RELEASE}"


def pending_removal(node: DebianNode) -> str:
    """Words that others added after the restore point, booted, and take back without update-grub."""
    node.write("etc/default/grub.d/10-site.cfg", 'GRUB_CMDLINE_LINUX="site=1"\n')
    node.update_grub()
    node.write("etc/default/grub.d/10-site.cfg", "")
    return "-site=1"


@pytest.mark.parametrize("change", [pending_words, pending_kernel, pending_removal])
def test_restore_does_not_make_pending_changes_of_others_permanent(
    node: DebianNode, change: Callable[[DebianNode], str]
) -> None:
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    words = change(node)
    before = (node.read("boot/grub/grub.cfg"), node.read(DROP_IN))
    with pytest.raises(Refusal, match=words) as caught:
        loader(node).restore(snapshot)
    assert "grub-mkconfig -o /boot/grub/grub.cfg" in caught.value.hint
    assert (node.read("boot/grub/grub.cfg"), node.read(DROP_IN)) == before
    assert not list(node.root.glob("boot/grub/nodeprep*"))
    # What was made permanent by its owner, and booted, is kept.
    node.update_grub()
    loader(node).restore(snapshot)
    assert not Edit(present=("iommu=pt",)).satisfied(loader(node).default_entry().cmdline)


def test_restore_does_not_bring_what_only_the_commit_kept_away(node: DebianNode) -> None:
    """mem=2G was written by others beside the commit, whose edit drops it: nothing ever booted with it."""
    snapshot = loader(node).snapshot()
    loader(node).commit(Edit(present=("iommu=pt",), absent=("mem",)))
    pending_words(node)
    node.update_grub()
    before = (node.read("boot/grub/grub.cfg"), node.read(DROP_IN))
    with pytest.raises(Refusal, match=r"\+mem=2G"):
        loader(node).restore(snapshot)
    assert (node.read("boot/grub/grub.cfg"), node.read(DROP_IN)) == before


def test_a_restore_that_died_half_way_does_not_take_pending_changes_along(node: DebianNode) -> None:
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    (node.root / DROP_IN).unlink()
    pending_words(node)
    before = node.read("boot/grub/grub.cfg")
    with pytest.raises(Refusal, match=r"\+mem=2G"):
        loader(node).restore(snapshot)
    assert node.read("boot/grub/grub.cfg") == before
    node.write("etc/default/grub", PLAIN)
    loader(node).restore(snapshot)
    assert loader(node).default_entry().cmdline == snapshot["cmdline"]


def test_half_a_commit_is_taken_back_without_generating_anything(node: DebianNode) -> None:
    """The power went after the drop-in was written; then somebody edited /etc/default/grub."""
    snapshot = loader(node).snapshot()
    loader(node).commit(EDIT)
    drop_in = node.read(DROP_IN)
    loader(node).restore(snapshot)
    node.write(DROP_IN, drop_in)
    pending_words(node)
    before = node.read("boot/grub/grub.cfg")
    node.called.clear()
    loader(node).restore(snapshot)
    assert node.called == []
    assert node.read("boot/grub/grub.cfg") == before
    assert not (node.root / DROP_IN).exists()


def test_restore_brings_back_the_order_that_decides(tmp_path: Path) -> None:
    node = DebianNode(tmp_path, PLAIN.replace('"quiet"', '"loglevel=3 loglevel=7"'))
    snapshot = loader(node).snapshot()
    loader(node).commit(Edit(present=("loglevel=3",)))
    assert loader(node).default_entry().cmdline.endswith("loglevel=7 loglevel=3")
    loader(node).restore(snapshot)
    assert loader(node).default_entry().cmdline == snapshot["cmdline"]


def test_restore_to_an_earlier_commit(node: DebianNode) -> None:
    loader(node).commit(Edit(present=("iommu=pt",)))
    snapshot = loader(node).snapshot()
    loader(node).commit(Edit(present=("nosmt",), absent=("iommu=pt",)))
    loader(node).restore(snapshot)
    assert loader(node).default_entry().cmdline == f"{ROOT} quiet iommu=pt"


def test_a_trial_is_staged_armed_and_taken_once(node: DebianNode) -> None:
    cmdline = f'{ROOT} iommu=pt dyndbg="file a +p" memmap=4G$8G nodeprep.trial=7 panic=30'
    trial = loader(node)
    before = node.read("boot/grub/grub.cfg")
    trial.stage_trial(cmdline)
    assert trial.staged() == cmdline.replace('dyndbg="file a +p"', '"dyndbg=file a +p"')
    assert not trial.armed()
    trial.arm()
    assert trial.armed()
    assert trial.default_entry().cmdline == f"{ROOT} quiet"
    assert node.boot() == "nodeprep-trial"
    assert not trial.armed()
    assert node.boot() == ""
    trial.unstage()
    trial.unstage()
    assert trial.staged() is None
    assert not (node.root / "boot/grub/custom.cfg").exists()
    assert node.read("boot/grub/grub.cfg") == before


def test_the_trial_boots_as_the_default_entry_does(node: DebianNode) -> None:
    node.write("etc/default/grub", PLAIN + "GRUB_SAVEDEFAULT=true\n")
    node.update_grub()
    loader(node).stage_trial(f"{ROOT} iommu=pt")
    lines = [line.strip() for line in node.read("boot/grub/custom.cfg").splitlines()]
    assert f"linux\t/boot/vmlinuz-{RELEASE} root=/dev/vda1 ro iommu=pt" in lines
    assert f"initrd\t/boot/initrd.img-{RELEASE}" in lines
    assert "search --no-floppy --fs-uuid --set=root" in node.read("boot/grub/custom.cfg")
    # A trial that is saved as the default would come back at every boot.
    assert "savedefault" not in lines
    assert "savedefault" in node.read("boot/grub/grub.cfg")


def test_foreign_entries_in_custom_cfg_stay(node: DebianNode) -> None:
    foreign = "menuentry 'Rescue' --id rescue {\n\tchainloader /rescue.efi\n}"
    node.write("boot/grub/custom.cfg", foreign, 0o600)
    trial = loader(node)
    trial.stage_trial(f"{ROOT} iommu=pt")
    trial.stage_trial(f"{ROOT} iommu=off")
    assert trial.staged() == f"{ROOT} iommu=off"
    assert node.read("boot/grub/custom.cfg").count("menuentry ") == 2
    trial.unstage()
    assert node.read("boot/grub/custom.cfg") == foreign + "\n"
    assert (node.root / "boot/grub/custom.cfg").stat().st_mode & 0o777 == 0o600


def test_a_broken_custom_cfg_is_not_made_worse(node: DebianNode) -> None:
    node.write("boot/grub/custom.cfg", "if [ x = y ]; then\n  echo unfinished\n")
    with pytest.raises(ToolError, match="grub-script-check"):
        loader(node).stage_trial(f"{ROOT} iommu=pt")
    assert "nodeprep" not in node.read("boot/grub/custom.cfg")


def test_an_unstaged_trial_cannot_be_armed(node: DebianNode) -> None:
    with pytest.raises(Refusal, match="no one-shot boot entry"):
        loader(node).arm()


def test_a_choice_of_others_is_left_alone(node: DebianNode) -> None:
    env = str(node.root / "boot/grub/grubenv")
    node.run(["grub-editenv", env, "set", "next_entry=memtest"], 10)
    trial = loader(node)
    trial.stage_trial(f"{ROOT} iommu=pt")
    with pytest.raises(Refusal, match="already promised to the entry 'memtest'"):
        trial.arm()
    trial.disarm()
    trial.unstage()
    assert node.boot() == "memtest"


def test_disarming_needs_no_program_when_nothing_is_armed(node: DebianNode) -> None:
    node.broken.add("grub-editenv")
    loader(node).disarm()
    trial = loader(node)
    node.broken.clear()
    trial.stage_trial(f"{ROOT} iommu=pt")
    trial.arm()
    node.broken.add("grub-editenv")
    with pytest.raises(ToolError):
        trial.disarm()
    assert trial.armed()


def test_a_choice_that_is_not_written_is_noticed(node: DebianNode) -> None:
    trial = find(
        str(node.root), lambda argv, timeout_s: "" if argv[0] == "grub-editenv" else node.run(argv, timeout_s)
    )
    trial.stage_trial(f"{ROOT} iommu=pt")
    with pytest.raises(Refusal, match="does not hold the one-shot entry"):
        trial.arm()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("GRUB_TIMEOUT=5", "GRUB_TIMEOUT=-1"), "waits at its menu without end"),
        (("GRUB_DEFAULT=0", "GRUB_DEFAULT=0\nGRUB_RECORDFAIL_TIMEOUT=-1"), "waits at its menu without end"),
    ],
)
def test_a_menu_without_end_is_an_obstacle(node: DebianNode, change: tuple[str, str], words: str) -> None:
    node.write("etc/default/grub", PLAIN.replace(*change))
    node.update_grub()
    assert words in loader(node).one_shot_obstacle()
    with pytest.raises(Refusal, match=words):
        loader(node).stage_trial(f"{ROOT} iommu=pt")


def test_a_password_before_every_entry_is_an_obstacle(node: DebianNode) -> None:
    node.write(
        "etc/grub.d/01_password", "#!/bin/sh\necho 'set superusers=\"root\"'\necho 'password root x'\n", 0o755
    )
    node.update_grub()
    assert "asks for a password" in loader(node).one_shot_obstacle()
    # Debian's way out: entries that anyone may boot. The copy is one too.
    linux = node.root / "etc/grub.d/10_linux"
    linux.write_text(linux.read_text().replace('CLASS="--class', 'CLASS="--unrestricted --class', 1))
    node.update_grub()
    assert loader(node).one_shot_obstacle() == ""
    loader(node).stage_trial(f"{ROOT} iommu=pt")
    assert "--unrestricted" in node.read("boot/grub/custom.cfg")


OVERRULES = 'set default="rescue"\n'


def test_a_custom_cfg_that_sets_the_default_is_an_obstacle(node: DebianNode) -> None:
    node.write("boot/grub/custom.cfg", OVERRULES)
    assert "/boot/grub/custom.cfg sets the default boot entry" in loader(node).one_shot_obstacle()
    with pytest.raises(Refusal, match=r"/boot/grub/custom\.cfg"):
        loader(node).stage_trial(f"{ROOT} iommu=pt")
    # Where it minds next_entry itself, or sets something else, nothing is in the way.
    node.write(
        "boot/grub/custom.cfg", OVERRULES + 'if [ "${next_entry}" ]; then set default="${next_entry}"; fi\n'
    )
    assert "custom.cfg" not in loader(node).one_shot_obstacle()
    node.write("boot/grub/custom.cfg", "set color_normal=white/black\n")
    assert loader(node).one_shot_obstacle() == ""


def test_a_40_custom_that_sets_the_default_is_an_obstacle(node: DebianNode) -> None:
    node.write("etc/grub.d/40_custom", f"#!/bin/sh\necho '{OVERRULES}'\n", 0o755)
    node.update_grub()
    obstacle = loader(node).one_shot_obstacle()
    assert "/boot/grub/grub.cfg sets the default boot entry after" in obstacle
    assert "40_custom" in obstacle


def test_without_41_custom_no_trial(node: DebianNode) -> None:
    (node.root / "etc/grub.d/41_custom").chmod(0o644)
    node.update_grub()
    assert "does not read custom.cfg" in loader(node).one_shot_obstacle()


def test_a_grub_mkconfig_of_another_distribution_is_refused(node: DebianNode) -> None:
    node.write("usr/sbin/grub-mkconfig", "#!/bin/sh\n. /etc/default/grub\n", 0o755)
    for action in (lambda: loader(node).stage_trial(ROOT), lambda: loader(node).commit(EDIT)):
        with pytest.raises(Refusal, match=r"does not read /etc/default/grub\.d"):
            action()


def test_what_grub_cannot_pass_on_is_refused(node: DebianNode) -> None:
    for action in (
        lambda: loader(node).stage_trial(r"x=a\b"),
        lambda: loader(node).commit(Edit(present=(r"x=a\b",))),
    ):
        with pytest.raises(Refusal, match="GRUB cannot pass on"):
            action()


def test_grub_cfg_keeps_its_mode(node: DebianNode) -> None:
    (node.root / "boot/grub/grub.cfg").chmod(0o600)
    loader(node).commit(EDIT)
    assert (node.root / "boot/grub/grub.cfg").stat().st_mode & 0o777 == 0o600


def test_the_installed_grub_cfg_is_what_grub_understands(node: DebianNode) -> None:
    loader(node).commit(Edit(present=('dyndbg="file a +p"', "memmap=4G$8G")))
    subprocess.run(["grub-script-check", str(node.root / "boot/grub/grub.cfg")], check=True)
    assert loader(node).default_entry().cmdline == f'{ROOT} quiet "dyndbg=file a +p" memmap=4G$8G'


class Killed(BaseException):
    """Stands for a power cut: nothing that would put things back runs after it."""


@pytest.mark.parametrize("then", ["restore", "commit"])
@pytest.mark.parametrize("moment", ["_generated", "_install", "_forget_candidate"])
def test_a_node_that_dies_during_a_commit_is_mended(
    node: DebianNode, monkeypatch: pytest.MonkeyPatch, moment: str, then: str
) -> None:
    snapshot = loader(node).snapshot()
    before = kernel_lines(node)
    dying = loader(node)
    put = dying._put  # type: ignore[attr-defined]
    monkeypatch.setattr(dying, "_put", lambda files: put(files) if not dead else None)
    dead: list[str] = []

    def die(*_arguments: object) -> None:
        dead.append(moment)
        raise Killed

    monkeypatch.setattr(dying, "_forget_candidate", lambda: None)
    monkeypatch.setattr(dying, moment, die)
    with pytest.raises(Killed):
        dying.commit(EDIT)
    # Never anything between the two.
    assert kernel_lines(node) == before or EDIT.satisfied(loader(node).default_entry().cmdline)
    if then == "restore":
        loader(node).restore(snapshot)
        assert kernel_lines(node) == before
        assert not (node.root / DROP_IN).exists()
    else:
        loader(node).commit(EDIT)
        assert EDIT.satisfied(loader(node).default_entry().cmdline)
    assert not list(node.root.glob("boot/grub/nodeprep*"))
