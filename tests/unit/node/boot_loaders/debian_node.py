"""A Debian node in a folder: the machine's own grub-mkconfig, made to look at that folder only."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from nodeprep.node.boot_loaders import _tools

PROGRAMS = ("grub-mkconfig", "grub-editenv", "grub-script-check", "dash")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]

UUID = "1b5f2a0c-6d1e-4a50-9f6e-0d9f4b6c2f11"
RELEASE = "6.1.0-18-amd64"
PLAIN = """\
GRUB_DEFAULT=0
GRUB_TIMEOUT=5
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX=""
"""

_PROBE = f"""\
#!/bin/sh
for each; do last=$each; done
case "$*" in
    *target=device*) echo /dev/vda1 ;;
    *fs_uuid*) echo {UUID} ;;
    *partmap*) echo gpt ;;
    *target=fs*|*"-t fs"*) echo ext2 ;;
    *abstraction*|*hint*) ;;
    *partuuid*) echo 11111111-01 ;;
esac
"""


class DebianNode:
    """Boot files of a node, and the programs that work on them.

    Attributes:
        root: The node's "/".
        called: Names of programs run so far.
        broken: Programs that fail from now on.
    """

    def __init__(self, root: Path, default: str = PLAIN, drop_ins: dict[str, str] | None = None) -> None:
        self.root = root
        self.called: list[str] = []
        self.broken: set[str] = set()
        self.write("etc/default/grub", default)
        for name, text in (drop_ins or {}).items():
            self.write(f"etc/default/grub.d/{name}", text)
        self.add_kernel(RELEASE)
        self.write("proc/self/mountinfo", "27 1 254:1 / / rw - ext4 /dev/vda1 rw\n")
        (root / "sys/dev/block").mkdir(parents=True)
        (root / "sys/dev/block/254:1").symlink_to("../../devices/pci0000:00/virtio0/block/vda/vda1")
        self._grub_programs()
        self.update_grub()

    def add_kernel(self, release: str) -> None:
        for name in ("vmlinuz", "initrd.img", "config"):
            self.write(f"boot/{name}-{release}", "")

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(mode)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def update_grub(self) -> None:
        self.run(["grub-mkconfig", "-o", str(self.root / "boot/grub/grub.cfg")], 60)

    def run(self, argv: Sequence[str], timeout_s: float) -> str:
        self.called.append(argv[0])
        if argv[0] in self.broken:
            raise _tools.ToolError(f"{argv[0]}: broken for the test")
        own = self.root / "usr/sbin" / argv[0]
        return _tools.run([str(own) if own.exists() else argv[0], *argv[1:]], timeout_s)

    def boot(self) -> str:
        """What GRUB does at power-on: clears the one-shot choice; returns it, "" for a plain boot."""
        env = str(self.root / "boot/grub/grubenv")
        if not Path(env).exists():
            return ""
        chosen = dict(
            line.partition("=")[::2] for line in _tools.run(["grub-editenv", env, "list"]).splitlines()
        ).get("next_entry", "")
        _tools.run(["grub-editenv", env, "unset", "next_entry"])
        return chosen

    def _grub_programs(self) -> None:
        root = str(self.root)
        self.write("fake/grub-probe", _PROBE, 0o755)
        self.write("fake/grub-mkrelpath", f'#!/bin/sh\necho "${{1#{root}}}"\n', 0o755)
        self.write("usr/sbin/update-grub", "#!/bin/sh\nexec grub-mkconfig -o /boot/grub/grub.cfg\n", 0o755)
        self.write("usr/bin/grub-script-check", '#!/bin/sh\nexec grub-script-check "$@"\n', 0o755)
        (self.root / "boot/grub").mkdir()
        changes = {
            'sysconfdir="/etc"': f'sysconfdir="{root}/etc"',
            '"${sbindir}/grub-probe"': f'"{root}/fake/grub-probe"',
            "${sbindir}/grub-probe": f"{root}/fake/grub-probe",
            '"${bindir}/grub-mkrelpath"': f'"{root}/fake/grub-mkrelpath"',
            'pkgdatadir="${datadir}/grub"': f'pkgdatadir="{root}/usr/share/grub"',
            "root=f\n": "root=t\n",
            "/boot/": f"{root}/boot/",
        }
        self._changed("/usr/sbin/grub-mkconfig", changes)
        self._changed("/usr/share/grub/grub-mkconfig_lib", changes)
        for script in ("00_header", "10_linux", "40_custom", "41_custom"):
            self._changed(f"/etc/grub.d/{script}", changes)

    def _changed(self, path: str, changes: dict[str, str]) -> None:
        text = Path(path).read_text()
        for old, new in changes.items():
            text = text.replace(old, new)
        self.write(path.lstrip("/"), text, 0o755)
