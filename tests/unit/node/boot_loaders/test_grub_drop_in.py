"""The drop-in under real shells, against the same edit made by the parser of command lines."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nodeprep.node.boot_loaders import Refusal, _grub_drop_in
from nodeprep.node.boot_loaders._boot_loader import same_arguments
from nodeprep.node.boot_loaders._grub_script import expand, kernel_words, tokens
from nodeprep.node.kernel_cmdline import Edit

SHELLS = [
    command
    for command in (["dash"], ["bash", "--posix"], ["busybox", "sh"], ["ksh"], ["mksh"])
    if shutil.which(command[0])
]
PRINT = 'printf "%s\\n%s\\n" "$GRUB_CMDLINE_LINUX" "$GRUB_CMDLINE_LINUX_DEFAULT"\n'

EDITS = [
    Edit(present=("iommu=pt",)),
    Edit(present=("iommu=off",)),
    Edit(present=("pcie_aspm=off", "panic=30"), absent=("quiet",)),
    Edit(present=("pci=realloc,nocrs",), absent=("pci=noaer",)),
    Edit(absent=("pci",)),
    Edit(absent=("console=tty0", "intel_iommu")),
    Edit(present=("console=ttyS0,115200",)),
    Edit(replace=("console=ttyS1",)),
    Edit(present=("rd.driver.blacklist=nouveau", "modprobe.blacklist=nouveau"), replace=("loglevel=3",)),
    Edit(present=('dyndbg="file drivers/pci/* +p"',), absent=("pcie-aspm",)),
    Edit(present=("memmap=4G$8G", "x=a'b".replace("'", "")), absent=("splash",)),
    Edit(),
]
VALUES = [
    ("", ""),
    ("", "quiet splash"),
    ("console=tty0 console=ttyS0,115200", "quiet"),
    ("console=ttyS0,115200 console=tty0", "console=ttyS0,115200"),
    ("iommu=off", "iommu=pt iommu=pt"),
    ("pci=noaer", "pci=realloc,noaer quiet  pci=nocrs"),
    ("intel_iommu=on,sm_on pcie_aspm=force", "pcie-aspm=off panic=10 loglevel=7"),
    ("", 'dyndbg="file drivers/pci/* +p" quiet x="a quiet  b"'),
    ("", "dyndbg='file drivers/pci/* +p' memmap=4G\\$8G * ?"),
    ("quiet", "quiet quiet -- single quiet"),
    ("  quiet\tsplash ", "\tsplash"),
]


def run(shell: list[str], script: str) -> list[str]:
    done = subprocess.run(
        [*shell, "-c", f"set -eu\n{script}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def given(linux: str, default: str) -> str:
    return "".join(
        f"{name}=$(cat <<'END'\n{value}\nEND\n)\n"
        for name, value in (("GRUB_CMDLINE_LINUX", linux), ("GRUB_CMDLINE_LINUX_DEFAULT", default))
    )


def kernel_line(*values: str) -> str:
    """What the kernel is given when grub.cfg has these values in its linux line."""
    text = " ".join(values)
    return kernel_words([word for token in tokens(text) for word in expand(token.text, {})])


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_the_shell_makes_the_same_edit(shell: list[str], edit: Edit) -> None:
    text = _grub_drop_in.text_of(edit)
    # Sourced twice each: a second time must change nothing more.
    printed = run(shell, "".join(given(*value) + text + PRINT + text + PRINT for value in VALUES))
    assert len(printed) == 4 * len(VALUES)
    for number, value in enumerate(VALUES):
        once, twice = printed[4 * number : 4 * number + 2], printed[4 * number + 2 : 4 * number + 4]
        got = kernel_line(*once)
        # What the kernel gets is the same, whichever of the two variables a word comes from.
        assert same_arguments(got, edit.apply(kernel_line(*value))), value
        assert edit.satisfied(got)
        assert same_arguments(kernel_line(*twice), got)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_unset_variables_are_no_error(shell: list[str]) -> None:
    text = _grub_drop_in.text_of(Edit(present=("iommu=pt",)))
    assert run(shell, text + PRINT) == ["", "iommu=pt"]


def test_there_are_shells_to_test_with() -> None:
    assert ["bash", "--posix"] in SHELLS


def test_the_edit_is_read_back() -> None:
    edit = Edit(present=('x="a b"',), absent=("quiet",), replace=("loglevel=3",))
    assert _grub_drop_in.edit_in({"zz-nodeprep.cfg": _grub_drop_in.text_of(edit)}) == edit
    assert _grub_drop_in.edit_in({}) is None


@pytest.mark.parametrize("text", ["", "# nodeprep edit: {}\n", "# nodeprep edit: [1\n"])
def test_a_damaged_drop_in_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"zz-nodeprep\.cfg is damaged"):
        _grub_drop_in.edit_in({"zz-nodeprep.cfg": text})


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        (Edit(present=("a=1",)), Edit(present=("b",)), Edit(present=("a=1", "b"))),
        (Edit(present=("iommu=pt",)), Edit(present=("iommu=off",)), Edit(present=("iommu=off",))),
        (Edit(present=("quiet",)), Edit(absent=("quiet",)), Edit(absent=("quiet",))),
        (Edit(absent=("quiet",)), Edit(present=("quiet",)), Edit(present=("quiet",))),
        (Edit(replace=("loglevel=3",)), Edit(replace=("loglevel=4",)), Edit(replace=("loglevel=4",))),
        (Edit(absent=("pci=noaer",)), Edit(absent=("pci=noaer",)), Edit(absent=("pci=noaer",))),
    ],
)
def test_edits_are_put_together(old: Edit, new: Edit, both: Edit) -> None:
    assert _grub_drop_in.together(old, new) == both


def test_quotes_and_backslashes_that_grub_would_change_are_refused() -> None:
    with pytest.raises(Refusal, match="GRUB cannot pass on"):
        _grub_drop_in.text_of(Edit(present=("x=it's",)))


@pytest.mark.parametrize(
    ("others", "name"),
    [
        ([], "zz-nodeprep.cfg"),
        (["50-cloudimg-settings.cfg", "hetzner.cfg", "ZZZ.cfg.bak"], "zz-nodeprep.cfg"),
        (["00-größe.cfg"], "zz-nodeprep.cfg"),
        (["zz-other.cfg"], "zzz-nodeprep.cfg"),
        # Upper case comes first in the C locale, and between lower case in others.
        (["ZZ-T.cfg"], "zzz-nodeprep.cfg"),
        (["zz-nodeprep.cfg", "zzzz-nodeprep.cfg"], "zz-nodeprep.cfg"),
    ],
)
def test_the_name_comes_last(tmp_path: Path, others: list[str], name: str) -> None:
    folder = tmp_path / "etc/default/grub.d"
    folder.mkdir(parents=True)
    for other in others:
        (folder / other).touch()
    path, _ = _grub_drop_in.file_for(str(tmp_path), Edit(present=("quiet",)))
    assert path == f"/etc/default/grub.d/{name}"
