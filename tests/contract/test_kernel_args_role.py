"""The role kernel_args: which steps it takes, and what it says, over a node that answers as told."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprep.fleet.content import collections_path, program
from nodeprep.sim.rack import build_rack

ROLE = collections_path() / "ansible_collections" / "nodeprep" / "rack" / "roles" / "kernel_args"

STUB = '''\
#!/usr/bin/python
"""Answers as a file says, and notes what it was asked."""
import json
import os

from ansible.module_utils.basic import AnsibleModule

HERE = os.path.dirname(os.environ["KERNEL_ARGS_SCRIPT"])


def main():
    module = AnsibleModule(
        argument_spec=dict(
            state=dict(type="str"), root=dict(type="path"), why=dict(type="str"), confirm_s=dict(type="int"),
            present=dict(type="list"), absent=dict(type="list"), replace=dict(type="list"),
            gpu_ids=dict(type="list"), accept_aer_loss=dict(type="bool"), settle_s=dict(type="float"),
            owner=dict(type="dict"),
        ),
        supports_check_mode=True,
    )
    state = module.params["state"]
    with open(os.environ["KERNEL_ARGS_SCRIPT"]) as file:
        script = json.load(file)
    with open(os.path.join(HERE, "calls"), "a") as file:
        file.write(json.dumps(dict(module.params, check=module.check_mode)) + "\\n")
    answers = script[state]
    answer = answers.pop(0) if len(answers) > 1 else answers[0]
    with open(os.environ["KERNEL_ARGS_SCRIPT"], "w") as file:
        json.dump(script, file)
    found = dict(phase="", verdict="", needs_reboot=False, finished=False, evidence={})
    found.update(answer.get("found", {}))
    more = {name: value for name, value in answer.items() if name != "found"}
    result = dict(dict(changed=False, msg=""), nodeprep={"kernel_args": found}, **more)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)


main()
'''

REBOOT = '''\
#!/usr/bin/python
"""A reboot that is only noted."""
import json
import os

from ansible.module_utils.basic import AnsibleModule


def main():
    module = AnsibleModule(argument_spec=dict(boot_time_command={}, reboot_timeout={}, msg={}))
    place = os.environ["KERNEL_ARGS_SCRIPT"]
    with open(os.path.join(os.path.dirname(place), "calls"), "a") as file:
        file.write(json.dumps(dict(state="reboot", **module.params)) + "\\n")
    if os.path.exists(os.path.join(os.path.dirname(place), "hangs")):
        module.fail_json(msg="Timed out waiting for last boot time check (timeout=1800)")
    module.exit_json(changed=True)


main()
'''

STAGED = {"changed": True, "found": {"phase": "staged"}}
ARMED = {"changed": True, "found": {"phase": "armed", "needs_reboot": True}}
HAD_ITS_BOOT = {"found": {"phase": "armed"}}
GOOD = {"found": {"phase": "judged", "verdict": "good"}}
BAD = {"msg": "the trial boot is bad: cpus: 64 online before, 1 online now", "found": {"verdict": "bad"}}
BACK = {
    "msg": "this boot is not the trial",
    "found": {"verdict": "not_booted", "evidence": {"kernel_log": ["one", "Kernel panic - not syncing"]}},
}
COMMITTED = {"changed": True}
ABANDONED = {"changed": True, "found": {"needs_reboot": True}}


class Played:
    """How a play of the role went."""

    def __init__(self, done: subprocess.CompletedProcess[str], folder: Path) -> None:
        self.code = done.returncode
        self.out = re.sub(r"\s+", " ", done.stdout + done.stderr)
        lines = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
        self.calls: list[dict[str, Any]] = [json.loads(line) for line in lines]
        [changed] = re.findall(r"^node .*changed=(\d+)", done.stdout, re.MULTILINE)
        self.changed = int(changed)

    @property
    def steps(self) -> list[str]:
        return [call["state"] for call in self.calls]


class Stage:
    """The role in a collection whose modules are stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rack = folder / "ansible_collections" / "nodeprep" / "rack"
        shutil.copytree(ROLE, rack / "roles" / "kernel_args")
        (rack / "plugins" / "modules").mkdir(parents=True)
        (rack / "plugins" / "modules" / "kernel_args.py").write_text(STUB)
        (rack / "plugins" / "modules" / "noted_reboot.py").write_text(REBOOT)
        for tasks in (rack / "roles" / "kernel_args" / "tasks").glob("*.yml"):
            tasks.write_text(
                tasks.read_text().replace("ansible.builtin.reboot:", "nodeprep.rack.noted_reboot:")
            )

    def play(self, script: dict[str, Any], *arguments: str, **variables: Any) -> Played:
        (self.folder / "calls").unlink(missing_ok=True)
        answers = {state: given if isinstance(given, list) else [given] for state, given in script.items()}
        (self.folder / "script.json").write_text(json.dumps(answers))
        host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        (self.folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"node": host}}}))
        names = {f"nodeprep_kernel_args_{name}": value for name, value in variables.items()}
        book = {"hosts": "all", "gather_facts": False, "vars": names, "roles": ["nodeprep.rack.kernel_args"]}
        (self.folder / "book.yml").write_text(yaml.safe_dump([book]))
        environment = os.environ | {
            "ANSIBLE_COLLECTIONS_PATH": str(self.folder),
            "ANSIBLE_NOCOLOR": "1",
            "KERNEL_ARGS_SCRIPT": str(self.folder / "script.json"),
        }
        environment.pop("ANSIBLE_FORCE_COLOR", None)
        command = [program("ansible-playbook"), "-i", "hosts.yml", "book.yml", *arguments]
        done = subprocess.run(
            command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        return Played(done, self.folder)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_good_trial_costs_one_reboot(stage: Stage) -> None:
    script = {"staged": STAGED, "armed": ARMED, "judged": GOOD, "committed": COMMITTED}
    played = stage.play(
        script,
        present=["iommu=pt"],
        absent=["pci=noaer"],
        replace=["panic=10"],
        accept_aer_loss=True,
        settle_s=5,
    )
    assert played.code == 0, played.out
    assert played.steps == ["staged", "armed", "reboot", "judged", "committed"]
    staged, _, reboot, judged, _ = played.calls
    assert (staged["present"], staged["absent"], staged["replace"]) == (
        ["iommu=pt"],
        ["pci=noaer"],
        ["panic=10"],
    )
    assert (staged["confirm_s"], reboot["reboot_timeout"]) == (600, "1800")
    assert reboot["boot_time_command"] == "cat /proc/sys/kernel/random/boot_id"
    assert (judged["accept_aer_loss"], judged["settle_s"]) == (True, 5.0)
    # Every step says whose it is, so that another controller leaves the trial alone.
    owners = {call["owner"]["controller"] for call in played.calls if "owner" in call}
    assert owners == {f"{getpass.getuser()}@{platform.node()}"}


def test_where_all_is_as_wanted_nothing_happens(stage: Stage) -> None:
    played = stage.play({"staged": {}})
    assert (played.code, played.changed, played.steps) == (0, 0, ["staged"])


def test_check_mode_only_looks(stage: Stage) -> None:
    played = stage.play({"staged": STAGED}, "--check")
    assert (played.code, played.steps) == (0, ["staged"])
    assert played.calls[0]["check"] is True


def test_a_trial_that_has_had_its_boot_is_judged_without_another(stage: Stage) -> None:
    script = {"staged": HAD_ITS_BOOT, "armed": HAD_ITS_BOOT, "judged": GOOD, "committed": COMMITTED}
    played = stage.play(script, reboot="forbidden")
    assert played.code == 0, played.out
    assert played.steps == ["staged", "armed", "judged", "committed"]


def test_a_forbidden_reboot_is_left_to_others(stage: Stage) -> None:
    played = stage.play({"staged": STAGED, "armed": ARMED}, reboot="forbidden")
    assert (played.code, played.steps) == (0, ["staged", "armed"])
    assert "The next reboot of node tries the new kernel arguments, once" in played.out
    again = {"staged": HAD_ITS_BOOT, "armed": {**ARMED, "changed": False}}
    played = stage.play(again, reboot="forbidden")
    assert (played.code, played.changed, played.steps) == (0, 0, ["staged", "armed"])


def test_a_bad_trial_goes_back_and_fails_with_what_was_seen(stage: Stage) -> None:
    script = {"staged": STAGED, "armed": ARMED, "judged": BAD, "abandoned": ABANDONED}
    played = stage.play(script)
    assert played.code == 2
    assert played.steps == ["staged", "armed", "reboot", "judged", "abandoned", "reboot"]
    assert "64 online before, 1 online now" in played.calls[4]["why"]
    assert (
        "The kernel arguments of node were not changed. Judge this boot: the trial boot is bad: cpus"
        in played.out
    )
    assert "The node runs its old arguments." in played.out


def test_a_trial_that_came_back_by_itself_needs_no_reboot_and_shows_its_last_words(stage: Stage) -> None:
    script = {"staged": STAGED, "armed": ARMED, "judged": BACK, "abandoned": {"changed": True}}
    played = stage.play(script)
    assert played.code == 2
    assert played.steps == ["staged", "armed", "reboot", "judged", "abandoned"]
    assert "Last lines of the trial boot: one / Kernel panic - not syncing" in played.out


def test_a_bad_trial_under_a_forbidden_reboot_says_what_is_left_to_do(stage: Stage) -> None:
    script = {"staged": HAD_ITS_BOOT, "armed": HAD_ITS_BOOT, "judged": BAD, "abandoned": ABANDONED}
    played = stage.play(script, reboot="forbidden")
    assert played.code == 2
    assert played.steps == ["staged", "armed", "judged", "abandoned"]
    assert "The trial boot still runs; a reboot brings the old arguments back." in played.out


def test_a_judgement_that_failed_is_not_good(stage: Stage) -> None:
    failed = {"failed": True, "msg": "no boot id", "found": {"verdict": "good"}}
    script = {"staged": STAGED, "armed": ARMED, "judged": failed, "abandoned": ABANDONED}
    played = stage.play(script)
    assert played.code == 2
    assert played.steps == ["staged", "armed", "reboot", "judged", "abandoned", "reboot"]


def test_a_commit_that_failed_goes_back(stage: Stage) -> None:
    failed = {"failed": True, "msg": "update-grub failed"}
    script = {"staged": STAGED, "armed": ARMED, "judged": GOOD, "committed": failed, "abandoned": ABANDONED}
    played = stage.play(script)
    assert played.code == 2
    assert played.steps[-2:] == ["abandoned", "reboot"]
    assert "Make the arguments permanent: update-grub failed" in played.out


def test_a_node_that_does_not_come_back_is_given_up(stage: Stage) -> None:
    (stage.folder / "hangs").touch()
    script = {"staged": STAGED, "armed": ARMED, "abandoned": {"failed": True, "msg": "out of reach"}}
    played = stage.play(script)
    assert played.code == 2
    assert played.steps == ["staged", "armed", "reboot", "abandoned"]
    assert "Boot the trial: Timed out waiting" in played.out
    assert "Giving the trial up failed too: out of reach" in played.out


def test_a_refusal_to_stage_leaves_nothing_to_give_up(stage: Stage) -> None:
    played = stage.play({"staged": {"failed": True, "msg": "nothing was changed: /boot is on LVM"}})
    assert (played.code, played.steps) == (2, ["staged"])


def test_absent_restores_reboots_and_drops_the_restore_point(stage: Stage) -> None:
    restored = [
        {"changed": True, "found": {"needs_reboot": True}},
        {"found": {"finished": True}},
    ]
    played = stage.play({"restored": restored}, state="absent")
    assert played.code == 0, played.out
    assert played.steps == ["restored", "reboot", "restored"]
    played = stage.play({"restored": {"found": {"finished": True}}}, state="absent")
    assert (played.code, played.changed, played.steps) == (0, 0, ["restored"])
    stuck = {"found": {"needs_reboot": True}}
    assert stage.play({"restored": stuck}, state="absent").code == 2
    played = stage.play({"restored": stuck}, state="absent", reboot="forbidden")
    assert (played.code, played.steps) == (0, ["restored"])
    played = stage.play({"restored": stuck}, "--check", state="absent")
    assert (played.code, played.steps) == (0, ["restored"])


def test_the_role_itself_only_reads_a_simulated_node(tmp_path: Path) -> None:
    [node] = build_rack(tmp_path / "rack", nodes=1).nodes
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "nodeprep_root": str(node.root),
    }
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"node": host}}}))
    wanted = {"nodeprep_kernel_args_present": ["iommu=pt"]}
    book = {"hosts": "all", "gather_facts": False, "vars": wanted, "roles": ["nodeprep.rack.kernel_args"]}
    (tmp_path / "book.yml").write_text(yaml.safe_dump([book]))
    environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(collections_path()), "ANSIBLE_NOCOLOR": "1"}
    environment.pop("ANSIBLE_FORCE_COLOR", None)

    def play(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [program("ansible-playbook"), "-i", "hosts.yml", "book.yml", *arguments]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    looked = play("--check", "--diff")
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert "\n+iommu=pt\n" in looked.stdout
    refused = play()
    assert refused.returncode == 2
    assert "is a simulated root: its boot loader is only read" in refused.stdout + refused.stderr
