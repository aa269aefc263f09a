"""One virtual machine as a node that `nodeprep apply` works on, and what an operator would look at there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from nodeprep.sim.vm import Hardware, Rack, Vm, make_rack
from nodeprep.sim.vm.programs import VmError

# A machine boots in 40 s on an idle computer. Who has many others beside it, and boots of minutes, says so.
SLOW = "NODEPREP_METAL_RETURN_S" in os.environ
RETURN_S = int(os.environ.get("NODEPREP_METAL_RETURN_S", "180"))
CONFIRM_S = int(os.environ.get("NODEPREP_METAL_CONFIRM_S", "120"))
# A reboot that fails, a look whether the node answers, its power, and the reboot to the old arguments or the
# dead-man's reboot; the rest is Ansible's.
DEADLINE_S = 2 * RETURN_S + CONFIRM_S + 60 + 80 + 180

# Names of tasks in playbooks/trial.yml, by what of a trial's life they begin.
STEPS = {
    "write": "Write a boot entry with the new arguments",
    "one_shot": "Let the next boot take it, and only that one",
    "reboot": "Reboot",
    "verify": "Look whether it is good",
    "commit": "Make the arguments permanent",
}

_ONLY_LOOK = ("inspect", "plan", "verify")

_LOOK = """\
cat /proc/sys/kernel/random/boot_id
cat /proc/cmdline
grep -m1 -E '^[[:space:]]*linux' /boot/grub/grub.cfg
grub-editenv - list | sed -n 's/^next_entry=//p' | grep . || echo -
ls -d /etc/systemd/system/nodeprep-trial.service /etc/systemd/system/*.wants/nodeprep-trial.service \
/var/lib/nodeprep/trial.json /boot/grub/nodeprep-candidate.cfg 2>/dev/null | tr '\\n' ' '
grep -l nodeprep /boot/grub/custom.cfg 2>/dev/null || echo
"""


@dataclass(frozen=True)
class Boot:
    """What runs on a node, and what its next boot would take.

    Attributes:
        running: /proc/cmdline, without what GRUB puts before it.
        permanent: The same of the first entry in grub.cfg, which is the default one here.
        next_entry: GRUB's one-shot choice, "" for none.
        left: Files of a trial.
    """

    id: str
    running: str
    permanent: str
    next_entry: str
    left: str


@dataclass(frozen=True)
class Done:
    """How a command of nodeprep ended.

    Attributes:
        document: What it printed with --json.
    """

    code: int
    document: Mapping[str, Any]
    said: str
    seconds: float

    def of(self, host: str) -> Done:
        """The part of one host, of a command for several."""
        return replace(self, document=self.document["hosts"][host])

    @property
    def trial(self) -> Mapping[str, Any]:
        """The report of the trial boot."""
        assert self.document.get("trial"), f"no trial boot: {self.document}\n{self.said}"
        found: Mapping[str, Any] = self.document["trial"]
        return found

    def told(self) -> str:
        """Everything that the report says was seen, one thing a line."""
        trial = self.trial
        lines = [f"{each['what']}: {each['before']}, now {each['now']}" for each in trial["findings"]]
        for piece in trial["evidence"]:
            lines += [f"{piece['source']} ({piece['state']}): {line}" for line in piece["text"].splitlines()]
        return "\n".join([trial["reason"], *lines])


class Site:
    """A rack of virtual machines that have booted, as an operator's inventory names them.

    Args:
        rack: Its machines are up.
        work: Empty folder for policies and run folders.
    """

    def __init__(self, rack: Rack, work: Path) -> None:
        self.rack = rack
        self._work = work
        self._runs = 0
        self.first = {vm.name: look(vm) for vm in rack.machines}

    @property
    def vm(self) -> Vm:
        """The first machine, of a rack with one machine the only one."""
        return self.rack.machines[0]

    @property
    def folder(self) -> Path:
        """Run folder of the command that was made last."""
        return self._work / f"run{self._runs}"

    def is_clean(self) -> bool:
        """Whether every machine is up and as it was when it was new."""
        return all(self._is_clean(vm) for vm in self.rack.machines)

    def command(
        self,
        verb: str,
        words: Sequence[str] | None = None,
        *,
        bmc: bool = True,
        confirm_s: int = CONFIRM_S,
    ) -> list[str]:
        """A command of nodeprep for all machines.

        Args:
            words: Arguments that the policy asks for, against every guard; None for its default ones.
            bmc: False for an inventory that names neither BMC nor console.
            confirm_s: Of the dead-man's switch.
        """
        self._runs += 1
        policy = self._work / f"policy{self._runs}.yml"
        asked: dict[str, Any] = {"trial": {"return_s": RETURN_S, "confirm_s": confirm_s}}
        if words is not None:
            why = [{"argument": word, "owner": "the tests", "why": "to see it fail"} for word in words]
            asked["kernel_args"] = {"present": list(words), "absent": [], "override": why}
        policy.write_text(yaml.safe_dump({"nodeprep_policy": asked}))
        program = str(Path(sys.executable).with_name("nodeprep"))
        inventory = str(self.rack.inventory if bmc else self._without_bmc())
        places = ["-i", inventory, "--policy", str(policy), "-o", str(self.folder)]
        return [program, verb, "-b", *([] if verb in _ONLY_LOOK else ["--yes"]), *places, "--json"]

    def run(
        self, verb: str, words: Sequence[str] | None = None, *, home: Path | None = None, **more: Any
    ) -> Done:
        """Runs a command of nodeprep to its end; see `command`.

        Args:
            home: NODEPREP_HOME of another controller.
        """
        command = self.command(verb, words, **more)
        environment = os.environ if home is None else {**os.environ, "NODEPREP_HOME": str(home)}
        began = time.monotonic()
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=3600,
            check=False,
        )
        seconds = time.monotonic() - began
        assert done.stdout, f"no document, exit code {done.returncode}: {done.stderr}"
        return Done(done.returncode, json.loads(done.stdout), done.stderr, seconds)

    def kill_at(self, step: str, words: Sequence[str], *, after_s: float = 0.0) -> None:
        """Starts `nodeprep apply`, and kills it when a step of the trial has begun.

        Args:
            step: Key of `STEPS`.
            after_s: Seconds into the step.
        """
        command = self.command("apply", words)
        log = (self._work / f"killed{self._runs}.log").open("w")
        with log, subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True) as running:
            try:
                while not self._has_begun(step):
                    assert running.poll() is None, f"it ended before {step}: {Path(log.name).read_text()}"
                    time.sleep(0.1)
                time.sleep(after_s)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)

    def _has_begun(self, step: str) -> bool:
        try:
            lines = (self.folder / "events.jsonl").read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return False
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return any(each["phase"] == "trial" and each["message"] == STEPS[step] for each in events)

    def _is_clean(self, vm: Vm) -> bool:
        try:
            now = look(vm)
        except (VmError, ValueError, IndexError):
            return False
        first = self.first[vm.name]
        untouched = (now.running, now.permanent) == (first.running, first.permanent)
        return untouched and not now.next_entry and not now.left

    def _without_bmc(self) -> Path:
        inventory = yaml.safe_load(self.rack.inventory.read_text())
        for host in inventory["all"]["hosts"].values():
            for name in ("nodeprep_bmc", "nodeprep_bmc_password_file", "nodeprep_console_log"):
                host.pop(name, None)
        path = self._work / "no-bmc.yml"
        path.write_text(yaml.safe_dump(inventory))
        return path


@contextmanager
def site(folder: Path, hardware: Sequence[Hardware]) -> Iterator[Site]:
    """A rack that is up; it is taken down at the end.

    Args:
        folder: Empty, with a short path.
    """
    rack = make_rack(folder / "r", hardware, print, warm_start=True)
    work = folder / "w"
    work.mkdir()
    try:
        rack.start(print)
        rack.wait(print)
        rack.keep_warm(print)
        yield Site(rack, work)
    finally:
        rack.down()


def look(vm: Vm) -> Boot:
    """What runs on a machine now, and what would run next.

    Raises:
        VmError: It cannot be reached.
    """
    lines = [line.strip() for line in vm.ssh(_LOOK).splitlines()]
    boot_id, running, entry, next_entry = lines[:4]
    # "linux", the kernel's path, and then its arguments.
    permanent = entry.split(maxsplit=2)[2]
    bare = re.sub(r"^BOOT_IMAGE=\S+ ", "", running)
    return Boot(boot_id, bare, permanent, next_entry.removeprefix("-"), " ".join(lines[4:]).strip())


class Nodes:
    """The node that tests share one after the other, made anew when one of them did not leave it clean.

    Args:
        new_folder: Makes an empty folder with a short path.
    """

    def __init__(self, new_folder: Callable[[], Path], hardware: Hardware) -> None:
        self._new_folder = new_folder
        self._hardware = hardware
        self._open = ExitStack()
        self._site: Site | None = None

    def clean(self) -> Site:
        """A node that is up and as if new."""
        if self._site is not None and not self._site.is_clean():
            self.close()
        if self._site is None:
            self._site = self._open.enter_context(site(self._new_folder(), [self._hardware]))
        return self._site

    def close(self) -> None:
        """Ends what runs."""
        self._open.close()
        self._site = None
