"""A node that can be rebooted: a folder with what a trial boot looks at, and a boot loader of a few files.

Like a real one, the boot loader keeps its permanent arguments in several places (a configuration, what is
generated from it, and what a kernel installed later gets), so a commit can be broken off between them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nodeprep.node import durable, trial, trial_end, trial_state
from nodeprep.node.boot_loaders import BootLoader, Entry, Refusal
from nodeprep.node.kernel_cmdline import Edit

RELEASE = "6.1.0-57-amd64"
OLD = "root=/dev/vda1 ro console=tty0 console=ttyS0,115200"
EDIT = Edit(present=("iommu=pt", "pcie_aspm.policy=performance"), absent=("quiet",))
GPU = "0000:01:00.0"
NIC = "0000:02:00.0"
OWNED = "acpi PNP0A08:00: _OSC: OS now controls [PCIeHotplug PME AER PCIeCapability LTR]"
NOT_OWNED = "acpi PNP0A08:00: _OSC: not requesting OS control; OS requires [ExtendedConfig ASPM MSI]"

_CONFIG, _GENERATED, _LATER = (f"/boot/{name}.json" for name in ("config", "generated", "later"))
_TRIAL, _ENV = "/boot/trial.json", "/boot/env.json"


class Files(BootLoader):
    """Permanent arguments in three files, a trial entry and a one-shot flag in one each."""

    id = "files"

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.obstacle = ""
        self.refuses = ""
        self.garbles = ""

    @classmethod
    def recognise(cls, root: str) -> str:
        return _CONFIG if durable.content(root, _CONFIG) is not None else ""

    def default_entry(self) -> Entry:
        return Entry("Linux", RELEASE, self._read(_GENERATED), _GENERATED)

    def one_shot_obstacle(self) -> str:
        return self.obstacle

    def stage_trial(self, cmdline: str) -> None:
        if self.refuses == "stage":
            raise Refusal("there is no room for an entry")
        self._write(_TRIAL, cmdline)

    def staged(self) -> str | None:
        return self._read(_TRIAL)

    def arm(self) -> None:
        if self.refuses == "arm":
            raise Refusal("the environment cannot be written")
        self._write(_ENV, True)

    def armed(self) -> bool:
        return bool(self._read(_ENV))

    def disarm(self) -> None:
        if self.armed():
            self._write(_ENV, None)

    def unstage(self) -> None:
        if self.staged() is not None:
            self._write(_TRIAL, None)

    def commit(self, edit: Edit) -> None:
        if self.refuses == "commit":
            raise Refusal("the generator failed")
        self._write(_CONFIG, edit.apply(self._read(_CONFIG)))
        self._write(_GENERATED, (self._read(_CONFIG) + self.garbles).strip())
        self._write(_LATER, self._read(_GENERATED))

    def snapshot(self) -> dict[str, Any]:
        return {"back_end": self.id, "config": self._read(_CONFIG)}

    def restore(self, snapshot: dict[str, Any], edits: Sequence[Edit] = ()) -> None:
        self._must_be_mine(snapshot)
        if self.refuses == "restore":
            raise OSError(28, "No space left on device", _CONFIG)
        self.install(snapshot["config"])

    def install(self, cmdline: str) -> None:
        """Writes everything anew, as somebody else's change would."""
        for path in (_CONFIG, _GENERATED, _LATER):
            self._write(path, cmdline)

    @property
    def everywhere(self) -> set[str]:
        """The permanent arguments in each place; one when all agree."""
        return {self._read(path) for path in (_CONFIG, _GENERATED, _LATER)}

    def _read(self, path: str) -> Any:
        text = durable.content(self.root, path)
        return None if text is None else json.loads(text)

    def _write(self, path: str, value: Any) -> None:
        durable.put(self.root, path, None if value is None else json.dumps(value))


Effect = Callable[["Node"], None]


class Node:
    """A node and its boots.

    Attributes:
        effects: Word of the command line to what a boot with it does to the node.
        boots: Command lines of all boots so far.
        clears: Whether the boot loader clears the one-shot flag, as it should.
    """

    def __init__(self, folder: Path) -> None:
        self.root = str(folder)
        self.effects: dict[str, Effect] = {}
        self.boots: list[str] = []
        self.clears = True
        for name in ("run/systemd/system", "boot", "var/lib", "etc/systemd/system"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.set_up()
        self.boot()

    def set_up(self) -> None:
        """Gives the node its boot loader."""
        self.loader = Files(self.root)
        self.loader.install(OLD)

    def next_cmdline(self) -> str:
        """What the boot loader does at power-on."""
        cmdline = self.loader.default_entry().cmdline
        if self.loader.armed():
            cmdline = self.loader.staged() or cmdline
            if self.clears:
                self.loader.disarm()
        return cmdline

    def boot(self) -> str:
        """What a reset does; returns the command line that runs then."""
        cmdline = self.next_cmdline()
        self.boots.append(cmdline)
        self.write("/proc/cmdline", f"BOOT_IMAGE=/boot/vmlinuz-{RELEASE} {cmdline}\n")
        self.write("/proc/sys/kernel/random/boot_id", f"boot-{len(self.boots)}\n")
        self.hardware()
        for word, effect in self.effects.items():
            if word in cmdline.split():
                effect(self)
        return cmdline

    def hardware(self) -> None:
        """All of it is there."""
        self.write("/proc/sys/kernel/osrelease", RELEASE)
        self.write("/proc/meminfo", f"MemTotal:       {64 * 1024**2} kB\n")
        self.write("/sys/devices/system/cpu/online", "0-63\n")
        for name, number in (("eth0", 0), ("eth1", 1)):
            self.write(f"/sys/class/net/{name}/address", f"52:54:00:00:00:0{number}")
            self.folder(f"/sys/class/net/{name}/device")
        for name in ("nvme0n1", "nvme1n1"):
            self.write(f"/sys/block/{name}/wwid", f"eui.{name}")
            self.folder(f"/sys/block/{name}/device")
        for name, text in (("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200")):
            self.write(f"/sys/bus/pci/devices/{GPU}/{name}", text)
        self.write(f"/sys/bus/pci/devices/{GPU}/config", "answers")
        self.write(f"/sys/bus/pci/devices/{NIC}/class", "0x020000")
        self.write(f"/sys/bus/pci/devices/{NIC}/vendor", "0x15b3")
        self.write(f"/sys/bus/pci/devices/{NIC}/device", "0x1021")
        self.bind(GPU, "nvidia")
        self.bind(NIC, "mlx5_core")
        for name in ("pci0000:00", "LNXSYSTM:00/PNP0A08:00"):
            self.folder(f"/sys/devices/{name}")
        link = Path(self.root, "sys/devices/pci0000:00/firmware_node")
        if not link.is_symlink():
            link.symlink_to("../LNXSYSTM:00/PNP0A08:00")
        self.kernel_says()

    def kernel_says(self, *lines: str, aer: str = OWNED) -> None:
        every = ["Linux version " + RELEASE, aer, *lines]
        self.write("/dev/kmsg", "".join(f"6,{at},{at * 1000},-;{line}\n" for at, line in enumerate(every)))

    def bind(self, address: str, driver: str) -> None:
        """Binds a PCI device to a driver; to none with ""."""
        link = Path(self.root, f"sys/bus/pci/devices/{address}/driver")
        if link.is_symlink():
            link.unlink()
        if driver:
            self.folder(f"/sys/bus/pci/drivers/{driver}")
            link.symlink_to(f"../../drivers/{driver}")

    def write(self, path: str, text: str) -> None:
        place = Path(self.root + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def write_bytes(self, path: str, data: bytes) -> None:
        Path(self.root + path).write_bytes(data)

    def folder(self, path: str) -> None:
        Path(self.root + path).mkdir(parents=True, exist_ok=True)

    # ---- steps of a trial, as whoever drives it takes them

    def stage(self, edit: Edit = EDIT, trial_id: str = "trial-1", **more: Any) -> dict[str, Any]:
        return trial.stage(self.root, edit, trial_id=trial_id, loader=self.loader, **more)

    def arm(self, **more: Any) -> dict[str, Any]:
        return trial.arm(self.root, loader=self.loader, **more)

    def judge(self, **more: Any) -> dict[str, Any]:
        return trial.judge(self.root, loader=self.loader, **{"settle_s": 0, **more})

    def commit(self, **more: Any) -> dict[str, Any]:
        return trial.commit(self.root, loader=self.loader, **more)

    def abandon(self, **more: Any) -> dict[str, Any]:
        return trial.abandon(self.root, loader=self.loader, **more)

    def restore(self, **more: Any) -> dict[str, Any]:
        return trial.restore(self.root, loader=self.loader, **more)

    def try_out(self, edit: Edit = EDIT, trial_id: str = "trial-1") -> None:
        """Up to the trial boot."""
        for done in (self.stage(edit, trial_id), self.arm()):
            assert not done["failed"], done["msg"]
        self.boot()

    def apply(self, edit: Edit = EDIT, trial_id: str = "trial-1", accept_aer_loss: bool = False) -> str:
        """The whole of it; "as wanted", "committed" or "rolled back"."""
        staged = self.stage(edit, trial_id)
        assert not staged["failed"], staged["msg"]
        if not staged["phase"]:
            return "as wanted"
        if not staged["booted"] and staged["phase"] in ("staged", "armed") and not staged["rebooted"]:
            armed = self.arm()
            assert not armed["failed"], armed["msg"]
            assert armed["needs_reboot"]
            self.boot()
        if self.judge(accept_aer_loss=accept_aer_loss)["verdict"] == "good":
            committed = self.commit()
            assert not committed["failed"], committed["msg"]
            return "committed"
        abandoned = self.abandon()
        assert not abandoned["failed"], abandoned["msg"]
        if abandoned["needs_reboot"]:
            self.boot()
        return "rolled back"

    # ---- what is there

    @property
    def permanent(self) -> str:
        return self.loader.default_entry().cmdline

    @property
    def clean(self) -> bool:
        """Nothing of a trial is left."""
        return not trial_end.traces(self.root, self.loader) and trial_state.load(self.root) is None

    def files(self) -> dict[str, str]:
        """All files below the root, for what must change nothing."""
        return {
            str(path): path.read_text()
            for path in sorted(Path(self.root).rglob("*"))
            if path.is_file() and not path.is_symlink()
        }
