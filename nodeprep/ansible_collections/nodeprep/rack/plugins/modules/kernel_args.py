#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ansible's door to nodeprep.node.trial."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_args
short_description: Kernel arguments that become permanent only after a boot with them was judged good
version_added: "0.1.0"
description:
  - One step of a trial boot. In the order C(staged), C(armed), a reboot by whoever calls, C(judged),
    C(committed), or C(abandoned) in place of the last. C(restored) takes back all that was ever committed.
  - Until C(committed) the permanent arguments are untouched, and the trial is a boot entry for one boot, so
    any reset brings the old arguments back. The trial boot also reboots by itself when nobody confirms it.
  - Every step can be broken off anywhere and called again. The role C(nodeprep.rack.kernel_args) takes all
    of them.
options:
  state:
    description:
      - C(staged) prepares the trial. It makes the restore point, notes what the node has, and writes the boot
        entry and the unit that reboots an unconfirmed trial. A trial of the same arguments that is under way
        is gone on with; one of others is abandoned first. Where the arguments are permanent and running,
        nothing is done.
      - C(armed) has the next boot, and only that one, take the entry.
      - C(judged) says whether this boot is the trial, and good. The module does not fail for a bad boot; see
        RV(nodeprep.kernel_args.verdict).
      - C(committed) makes the arguments permanent if this boot was judged good, and still is.
      - C(abandoned) ends the trial, whatever it has come to.
      - C(restored) abandons a trial and puts the arguments back that were permanent before the first
        C(committed). The restore point goes in a call after the reboot.
    type: str
    choices: [staged, armed, judged, committed, abandoned, restored]
    required: true
  present:
    description:
      - Arguments that are to be there exactly once and in effect. What contradicts them goes.
      - Other values of a key that may be repeated, such as C(console=), stay. For O(state=staged).
    type: list
    elements: str
    default: []
  absent:
    description:
      - Arguments that are not to be there, nor as options of a list (C(pci=noaer) also goes from
        C(pci=noaer,realloc)). Without a value it means every value. For O(state=staged).
    type: list
    elements: str
    default: []
  replace:
    description: Arguments that are to be the only value of their key. For O(state=staged).
    type: list
    elements: str
    default: []
  trial_id:
    description:
      - Names the trial on the command line of its boot, as C(nodeprep.trial=ID). Not given makes a new one.
        For O(state=staged).
    type: str
  confirm_s:
    description:
      - Seconds from the start of the trial boot until the node reboots by itself, unless the trial was
        committed or abandoned by then; 120 to 7200. For O(state=staged).
    type: int
    default: 600
  gpu_ids:
    description: Further PCI ids (C(vendor:device)) to take for GPUs. For O(state=staged).
    type: list
    elements: str
    default: []
  accept_aer_loss:
    description:
      - Let a boot pass in which the OS no longer owns AER, as with C(pcie_aspm=off); PCIe errors are then not
        reported. For O(state=judged).
    type: bool
    default: false
  settle_s:
    description: Seconds to wait for drivers and services that are late. For O(state=judged).
    type: float
    default: 60.0
  why:
    description: The reason, for whoever asks later. For O(state=abandoned).
    type: str
    default: ""
  owner:
    description:
      - Who takes the step. While the trial of one controller is under way, the steps of another are refused.
        Not given is somebody who does not say, and is refused too.
    type: dict
    suboptions:
      controller:
        description: User and machine, such as C(sre@ctl1).
        type: str
        required: true
      run:
        description: Id of the run there.
        type: str
        default: ""
      takes_over:
        description: Id of an earlier run of the same controller that is known to have ended.
        type: str
        default: ""
      hold_s:
        description: Seconds without a step after which the trial is anybody's; 60 to 86400.
        type: int
        default: 3600
  root:
    description: Root of the machine. Any folder other than C(/) is a simulated machine, which is only read.
    type: path
    default: /
attributes:
  check_mode:
    description: Looks and tells what would change; a judgement is not kept.
    support: full
  diff_mode:
    description: Shows the permanent arguments before and after, one a line.
    support: full
  platform:
    description: Linux with Python 3.8 or later.
    platforms: linux
    support: full
author:
  - nodeprep contributors (@nodeprep)
"""

EXAMPLES = r"""
- name: Prepare one boot with other arguments
  nodeprep.rack.kernel_args:
    state: staged
    present: [iommu=pt, pcie_aspm.policy=performance]
    absent: [pci=noaer]

- name: Let the next boot be the trial
  nodeprep.rack.kernel_args:
    state: armed

- name: Boot it
  ansible.builtin.reboot:
    boot_time_command: cat /proc/sys/kernel/random/boot_id
    reboot_timeout: 1800

- name: Judge it
  nodeprep.rack.kernel_args:
    state: judged
  register: judged

- name: Keep it, or give it up
  nodeprep.rack.kernel_args:
    state: "{{ 'committed' if judged.nodeprep.kernel_args.verdict == 'good' else 'abandoned' }}"
"""

RETURN = r"""
nodeprep:
  description: Holds one key, C(kernel_args), with what this step found.
  returned: always
  type: dict
  contains:
    kernel_args:
      description: The trial and this boot.
      type: dict
      contains:
        trial_id:
          description:
            - Id of the trial. Without one under way, C(judged) and C(abandoned) give the id of the last one;
              empty when there was none.
          type: str
        owner:
          description: Whose trial it is, as C(controller), C(run), C(since), C(seen_at) and C(hold_s).
          type: dict
        held:
          description: The step was refused, because the trial is somebody else's.
          type: bool
        outcome:
          description:
            - C(committed), C(abandoned) or C(rolled back), of a trial that has ended. C(committed) and
              C(abandoned) tell that of the trial that they ended. With no trial under way, C(judged) and
              C(abandoned) tell that of the last one, so a caller whose connection broke during C(committed)
              learns how it went. Empty while a trial is under way.
          type: str
        phase:
          description: C(staged), C(armed), C(judged) or C(committing); empty when no trial is under way.
          type: str
        booted:
          description: This boot is the trial.
          type: bool
        rebooted:
          description: The node booted since the trial was staged or armed.
          type: bool
        verdict:
          description: C(good), C(bad) or C(not_booted); empty before a judgement.
          type: str
        findings:
          description: What speaks against the boot, each with C(what), C(before) and C(now).
          type: list
          elements: dict
        notes:
          description: What is worth knowing and does not count.
          type: list
          elements: str
        evidence:
          description: What is left of a trial boot that did not last, such as the end of its kernel log.
          type: dict
        deadman:
          description:
            - The trial boot reboots by itself when nobody confirms it. After C(judged), the unit that does
              it is in place.
          type: bool
        needs_reboot:
          description:
            - The next step is a reboot. After C(armed) it boots the trial; after C(abandoned) and C(restored)
              it gets rid of arguments that run and are not permanent.
          type: bool
        finished:
          description: After C(restored), nothing is left to be undone.
          type: bool
        permanent:
          description: After C(staged), the permanent arguments now.
          type: str
        target:
          description: After C(staged), the permanent arguments if the trial is good.
          type: str
        cmdline:
          description: After C(staged), what the trial boot is given; not there when nothing is to be done.
          type: str
      sample:
        trial_id: 20270131T101500-4f2a
        phase: judged
        booted: true
        verdict: bad
        findings:
          - {what: cpus, before: 448 online, now: 224 online}
hint:
  description: What to do about a failure.
  returned: on failure, where something can be said
  type: str
"""

import uuid
from datetime import datetime, timezone

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import trial, trial_lock, trial_owner
from ..module_utils.node.boot_loaders import Refusal
from ..module_utils.node.kernel_cmdline import Edit
from ..module_utils.node.trial_result import failure

GENERIC = ("changed", "failed", "msg", "hint", "diff")


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "choices": ["staged", "armed", "judged", "committed", "abandoned", "restored"],
                "required": True,
            },
            "present": {"type": "list", "elements": "str", "default": []},
            "absent": {"type": "list", "elements": "str", "default": []},
            "replace": {"type": "list", "elements": "str", "default": []},
            "trial_id": {"type": "str"},
            "confirm_s": {"type": "int", "default": 600},
            "gpu_ids": {"type": "list", "elements": "str", "default": []},
            "accept_aer_loss": {"type": "bool", "default": False},
            "settle_s": {"type": "float", "default": 60.0},
            "why": {"type": "str", "default": ""},
            "owner": {
                "type": "dict",
                "options": {
                    "controller": {"type": "str", "required": True},
                    "run": {"type": "str", "default": ""},
                    "takes_over": {"type": "str", "default": ""},
                    "hold_s": {"type": "int", "default": 3600},
                },
            },
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    given = module.params
    done = _taken(given, module.check_mode)
    answer = {
        "changed": done["changed"],
        "diff": done["diff"],
        "nodeprep": {"kernel_args": {name: value for name, value in done.items() if name not in GENERIC}},
    }
    if done["failed"]:
        module.fail_json(msg=done["msg"], hint=done["hint"], **answer)
    module.exit_json(msg=done["msg"], **answer)


def _taken(given, check_mode):
    root = given["root"]
    try:
        caller = trial_owner.Caller.of(given["owner"])
    except Refusal as problem:
        return failure(problem)
    return trial_lock.alone(
        root,
        lambda: trial_owner.step(
            root, caller, lambda: _step(given, caller, check_mode), check_mode=check_mode
        ),
    )


def _step(given, caller, check_mode):
    root, state = given["root"], given["state"]
    if state == "staged":
        edit = Edit(tuple(given["present"]), tuple(given["absent"]), tuple(given["replace"]))
        return trial.stage(
            root,
            edit,
            trial_id=given["trial_id"] or _new_id(),
            confirm_s=given["confirm_s"],
            gpu_ids=given["gpu_ids"],
            owner=caller.claim(),
            check_mode=check_mode,
        )
    if state == "judged":
        return trial.judge(
            root,
            accept_aer_loss=given["accept_aer_loss"],
            settle_s=given["settle_s"],
            check_mode=check_mode,
        )
    if state == "abandoned":
        return trial.abandon(root, why=given["why"], check_mode=check_mode)
    steps = {"armed": trial.arm, "committed": trial.commit, "restored": trial.restore}
    return steps[state](root, check_mode=check_mode)


def _new_id():
    return "%s-%s" % (datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S"), uuid.uuid4().hex[:4])


if __name__ == "__main__":
    main()
