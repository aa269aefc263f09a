"""Bad kernel arguments: every node is back on its old ones without a hand, and the report says what was seen.

Cases run side by side with `-n 3`: every worker has a machine of its own, which its cases share.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from apply_helpers import CONFIRM_S, DEADLINE_S, SLOW, Nodes, Site, look

from nodeprep.sim.vm import Hardware

ITSELF, CONTROLLER, BMC = "itself", "controller", "bmc"
# The judgement waits a minute for what is late, and its steps take long where a processor is emulated. Where
# it is to be what ends the boot, the dead-man gives it time.
JUDGED_S = max(CONFIRM_S, 300)
# On a slow computer a deadline runs out, and the next in line comes first.
LATER = {CONTROLLER: (ITSELF, BMC), ITSELF: (BMC,), BMC: ()}
SMOKE = pytest.mark.metal
FULL = pytest.mark.metal_full


@dataclass(frozen=True)
class Bad:
    """A case.

    Attributes:
        words: The arguments.
        by: Who brings the node back.
        seen: Pattern of what the report must tell of this boot.
        confirm_s: Of the dead-man's switch; a long one leaves a node without network to its BMC.
    """

    words: tuple[str, ...]
    by: str
    seen: str
    confirm_s: int


def bad(words: str, by: str, seen: str, *, mark: Any = FULL, **more: Any) -> Any:
    """A case as pytest takes it."""
    more.setdefault("confirm_s", JUDGED_S if by == CONTROLLER else CONFIRM_S)
    case = Bad(tuple(words.split()), by, seen, **more)
    return pytest.param(case, id=words.replace("/", "|"), marks=mark)


CASES = (
    # The kernel panics: its init ends, it finds none, or no disk.
    bad("init=/bin/true", ITSELF, "Attempted to kill init", mark=SMOKE),
    bad("rdinit=/no/such/init", ITSELF, "Unable to mount root fs"),
    bad("mem=64M", ITSELF, "memory|panic|Out of memory"),
    # The initramfs gives up, and reboots because of panic=30.
    bad("root=/dev/vdz1", ITSELF, "/dev/vdz1 does not exist", mark=SMOKE),
    bad("pci=off", ITSELF, "does not exist"),
    bad("module_blacklist=virtio_blk", ITSELF, "does not exist"),
    bad("break=premount", ITSELF, "Spawning shell within the initramfs"),
    # It comes up, and something is missing: it is judged, and rebooted.
    bad("maxcpus=1", CONTROLLER, "cpus: 2 online, now 1 online", mark=SMOKE),
    bad("nosmp", CONTROLLER, "cpus: 2 online, now 1 online"),
    bad("mem=300M", CONTROLLER, "memory_bytes: "),
    bad("acpi=off", CONTROLLER, "cpus|aer|nics"),
    bad("pci=noaer", CONTROLLER, "aer: root bridge"),
    bad("init=/no/such/init", CONTROLLER, "init: /no/such/init asked for"),
    # It comes up without a way in.
    bad("systemd.unit=emergency.target", ITSELF, "emergency|Emergency"),
    bad("systemd.unit=rescue.target", ITSELF, "rescue|Rescue"),
    bad("systemd.mask=systemd-networkd.service", BMC, "login:", confirm_s=3600, mark=SMOKE),
    bad("module_blacklist=virtio_net", ITSELF, "virtio_net"),
    bad("systemd.mask=ssh.service systemd.mask=ssh.socket", ITSELF, "login:"),
    # Root is read-only: ssh answers, and no module of Ansible runs.
    bad("systemd.mask=systemd-remount-fs.service", BMC, "Look whether it is good: ", confirm_s=3600),
    # Nothing on the node helps: no systemd, or no power.
    bad("init=/bin/sh", BMC, "#", mark=SMOKE),
    bad("systemd.unit=poweroff.target", BMC, "chassis .*off"),
    # Megabytes on the console: what the kernel said first is lost, so nothing vouches for the boot.
    bad("dyndbg=+p ignore_loglevel", CONTROLLER, "overwritten|unreadable|unknown"),
)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    made = Nodes(lambda: tmp_path_factory.mktemp("b"), Hardware())
    yield made
    made.close()


@pytest.fixture
def node(nodes: Nodes) -> Site:
    return nodes.clean()


@pytest.mark.parametrize("case", CASES)
def test_a_bad_argument_costs_a_reboot_and_nothing_else(
    node: Site, case: Bad, record: Callable[..., None]
) -> None:
    before = look(node.vm)
    done = node.run("apply", case.words, confirm_s=case.confirm_s)
    trial, told = done.trial, done.told()
    record(case, done)

    # On the old arguments, by a boot of its own, and nothing is left that another boot would take.
    now = look(node.vm)
    assert now.id != before.id, told
    assert (now.running, now.permanent) == (before.running, before.permanent), told
    assert (now.next_entry, now.left) == ("", ""), told
    assert done.seconds < DEADLINE_S, told

    # And the report knows that, by whom, and what went wrong.
    assert done.document["state"] == "failed"
    assert trial["state"] == "rolled_back", told
    assert trial["recovered_by"] in (case.by, *(LATER[case.by] if SLOW else ())), told
    assert all(word in trial["cmdline"].split() for word in case.words)
    assert re.search(case.seen, told), told
    assert {each["source"]: each["state"] for each in trial["evidence"]}.items() >= (
        {"console": "ok", "sel": "ok", "chassis": "ok"}.items()
    ), told


@FULL
def test_without_a_bmc_the_node_comes_back_by_itself(node: Site) -> None:
    before = look(node.vm)
    done = node.run("apply", ["systemd.mask=ssh.service", "systemd.mask=ssh.socket"], bmc=False)
    now = look(node.vm)
    assert now.id != before.id
    assert (now.running, now.permanent, now.next_entry, now.left) == (
        (before.running, before.permanent, "", "")
    ), done.told()
    assert (done.trial["state"], done.trial["recovered_by"]) == ("rolled_back", "itself"), done.told()
    # Said before anything is rebooted, and kept in the report.
    assert "no BMC in the inventory" in done.said
    assert any("no BMC in the inventory" in note for note in done.trial["notes"])
    # The node's own journal is what is left to tell of that boot.
    assert "nobody confirmed this trial boot" in done.told()


@FULL
def test_without_a_bmc_a_hung_node_is_lost_until_somebody_resets_it(node: Site) -> None:
    before = look(node.vm)
    done = node.run("apply", ["init=/bin/sh"], bmc=False)
    assert done.trial["state"] == "lost", done.told()
    assert "has not come back from its trial boot" in done.document["error"]
    assert "every reset brings the old kernel arguments" in done.document["hint"]

    node.vm.power("reset")
    node.vm.wait_ssh(not_boot_id=before.id)
    now = look(node.vm)
    assert (now.running, now.permanent, now.next_entry) == (before.running, before.permanent, "")

    again = node.run("apply", ["metal.good=1"], bmc=False)
    assert again.trial["state"] == "permanent", again.told()
    good = look(node.vm)
    assert good.permanent == f"{before.permanent} metal.good=1"
    assert (good.next_entry, good.left) == ("", "")


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Keeps how each case went, a line of JSON each, in the file that NODEPREP_METAL_TABLE names."""

    def keep(case: Bad, done: Any) -> None:
        table = os.environ.get("NODEPREP_METAL_TABLE")
        if table:
            line = {
                "words": " ".join(case.words),
                "seconds": round(done.seconds),
                "state": done.trial["state"],
                "by": done.trial["recovered_by"],
                "findings": done.trial["findings"],
                "told": done.told(),
            }
            with Path(table).open("a") as file:
                file.write(json.dumps(line) + "\n")

    return keep
