"""Nodes whose boot entries are files of their own: a copy of a layout, and programs that work on it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from nodeprep.node.boot_loaders import _efi_variables, _tools

CASES = Path(__file__).parents[3] / "cases" / "boot_loaders"


class BlsNode:
    """A node, with grubby, bootctl and kernelstub as they behave, and GRUB's own grub-editenv.

    Attributes:
        root: The node's "/".
        called: What was run so far.
        broken: Programs that fail from now on.
        careless: grubby then leaves the entries as they are and says nothing.
    """

    def __init__(self, root: Path, layout: str) -> None:
        self.root = root
        self.called: list[list[str]] = []
        self.broken: set[str] = set()
        self.careless = False
        shutil.copytree(CASES / layout, root, symlinks=True, dirs_exist_ok=True)

    def run(self, argv: Sequence[str], timeout_s: float) -> str:
        self.called.append(list(argv))
        if argv[0] in self.broken:
            raise _tools.ToolError(f"{argv[0]}: broken for the test")
        own = {"grubby": self._grubby, "bootctl": self._bootctl, "kernelstub": self._kernelstub}
        if argv[0] in own:
            own[argv[0]](list(argv[1:]))
            return ""
        return _tools.run([argv[0].replace("grub2-", "grub-"), *argv[1:]], timeout_s)

    def entries(self) -> dict[str, str]:
        """Options of each entry, by the end of its file's name."""
        found = {}
        for path in sorted(self.root.glob("**/loader/entries/*.conf")):
            (options,) = [line for line in path.read_text().splitlines() if line.startswith("options")]
            found[path.stem] = options.split(None, 1)[1]
        return found

    def environment(self) -> dict[str, str]:
        listed = _tools.run(["grub-editenv", str(self.root / "boot/grub2/grubenv"), "list"])
        return dict(line.partition("=")[::2] for line in listed.splitlines())

    def _grubby(self, arguments: list[str]) -> None:
        """update_bls_fragment of grubby-bls: all values of a name go when one is added."""
        options = dict(argument.partition("=")[::2] for argument in arguments)
        assert options.pop("--update-kernel") == "ALL"
        add, remove = (options.pop(name, "").split() for name in ("--args", "--remove-args"))
        assert not options
        if self.careless:
            return
        env = str(self.root / "boot/grub2/grubenv")
        kernelopts = self.environment().get("kernelopts")
        if kernelopts is not None:
            changed = _updated(kernelopts, add, remove)
            _tools.run(["grub-editenv", env, "set", f"kernelopts={changed}"])
        for path in self.root.glob("boot/loader/entries/*.conf"):
            lines = path.read_text().splitlines()
            text = [
                f"options {_updated(line.split(None, 1)[1], add, remove)}"
                if line.startswith("options") and "$kernelopts" not in line
                else line
                for line in lines
            ]
            path.write_text("\n".join(text) + "\n")

    def _bootctl(self, arguments: list[str]) -> None:
        assert arguments[0] == "set-oneshot"
        path = self.root / f"{_efi_variables._FOLDER}/LoaderEntryOneShot-{_efi_variables._VENDOR}".lstrip("/")
        if arguments[1]:
            path.write_bytes(b"\x07\0\0\0" + (arguments[1] + "\0").encode("utf-16-le"))
        else:
            path.unlink(missing_ok=True)

    def _kernelstub(self, arguments: list[str]) -> None:
        path = self.root / "boot/efi/loader/entries/Pop_OS-current.conf"
        lines = path.read_text().splitlines()
        (options,) = [line.split()[1:] for line in lines if line.startswith("options")]
        words = arguments[1].split()
        if arguments[0] == "--add-options":
            options += words
        else:
            options = [word for word in options if word not in words]
        others = [line for line in lines if not line.startswith("options")]
        path.write_text("\n".join([*others, "options " + " ".join(options)]) + "\n")


def _updated(old: str, add: list[str], remove: list[str]) -> str:
    names = {word.rpartition("=")[0] or word for word in add}
    words = old.split()
    for each in remove:
        words = [word for word in words if word != each and ("=" in each or word.partition("=")[0] != each)]
    return " ".join([*(word for word in words if word.partition("=")[0] not in names), *add])
