#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ansible's door to nodeprep.node.apply."""

from __future__ import annotations

DOCUMENTATION = r"""
module: apply
short_description: Write settings of a GPU node
version_added: "0.1.0"
description:
  - Brings the node to the given settings and reads them back. What is already so is left alone.
  - All or nothing. Limits are checked against every GPU's constraints before the first write. When anything
    after it fails, settings and files go back to what they were, and the message says what was rolled back
    and what could not be.
  - Before the first write the present state goes to a restore point on the node.
options:
  root:
    description: Root of the machine; any folder other than C(/) is a simulated machine.
    type: path
    default: /
  settings:
    description: What to set, by group. A group that is left out is left alone.
    type: dict
    default: {}
    suboptions:
      gpu_power:
        description: Power limit and persistence of every GPU.
        type: dict
        suboptions:
          limit:
            description:
              - Watts (C(650W)) or per cent of each GPU's default (C(93%)).
              - Not given leaves limits alone, also the one that the unit sets at boot.
              - C(none) has the unit set no limit at boot, and leaves the present limit alone.
            type: str
          persistence:
            description: Persistence mode. Not given leaves it alone, also what the unit sets at boot.
            type: bool
          state:
            description:
              - C(present) sets the above and makes it survive reboots, by a unit that runs O(node_pyz).
              - C(absent) undoes all that was ever set here and removes the unit.
            type: str
            choices: [present, absent]
            default: present
      pcie_link:
        description:
          - PCIe generation that the GPUs' links may reach at most, by the target speed of the port above.
          - A link is trained anew only when no driver is bound below its port, or with C(live). Otherwise the
            unit pins it at the next boot before the driver loads, and the result says C(pending_reboot).
          - A port that ignores the write makes the module fail; it is never taken for pinned.
        type: dict
        suboptions:
          gen:
            description: Generation, 1 to 6. Needed for C(present).
            type: int
          gpus:
            description:
              - PCI addresses of the GPUs; none means all NVIDIA GPUs.
              - GPUs that were pinned before stay pinned, to the same generation.
            type: list
            elements: str
          live:
            description:
              - Train links also under a bound driver, as long as no process has a GPU open.
              - A GPU that does not come back is lost until the next boot.
            type: bool
            default: false
          state:
            description:
              - C(present) pins, now or at the next boot, and makes it survive reboots by a unit that runs
                O(node_pyz).
              - C(absent) gives the ports their old target speeds and removes the unit.
            type: str
            choices: [present, absent]
            default: present
  node_pyz:
    description: Path of the node program (M(nodeprep.rack.program)); settings that survive a reboot need it.
    type: str
    default: /usr/local/lib/nodeprep/node.pyz
  deadline_s:
    description: Seconds for each group; a driver that hangs is given up then.
    type: float
    default: 60.0
attributes:
  check_mode:
    description: Reads the present state and tells what would change.
    support: full
  diff_mode:
    description: Shows every setting and file that differs.
    support: full
  platform:
    description: Linux with Python 3.8 or later.
    platforms: linux
    support: full
author:
  - nodeprep contributors (@nodeprep)
"""

EXAMPLES = r"""
- name: Give every GPU 93 % of its default limit
  nodeprep.rack.apply:
    settings:
      gpu_power:
        limit: 93%
        persistence: true

- name: Pin the links of all GPUs to Gen4
  nodeprep.rack.apply:
    settings:
      pcie_link:
        gen: 4
"""

RETURN = r"""
nodeprep:
  description: One key for each group in O(settings), with what was found, written and read back.
  returned: always
  type: dict
  sample:
    gpu_power:
      changed: true
      persisted: true
      rolled_back: []
      left_behind: []
      gpus:
        - address: "0000:17:00.0"
          enforced_w: 651.0
          persistence: true
    pcie_link:
      changed: true
      persisted: true
      pending_reboot: false
      rolled_back: []
      left_behind: []
      links:
        - gpu: "0000:17:00.0"
          port: "0000:16:01.0"
          target_gen: 4
          gen: 4
          in_effect: true
hint:
  description: What to do about a failure.
  returned: on failure, where something can be said
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import apply
from ..module_utils.node.power_unit import NODE_PYZ

GPU_POWER = {
    "limit": {"type": "str"},
    "persistence": {"type": "bool"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
PCIE_LINK = {
    "gen": {"type": "int"},
    "gpus": {"type": "list", "elements": "str"},
    "live": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/"},
            "settings": {
                "type": "dict",
                "default": {},
                "options": {
                    "gpu_power": {"type": "dict", "options": GPU_POWER},
                    "pcie_link": {"type": "dict", "options": PCIE_LINK},
                },
            },
            "node_pyz": {"type": "str", "default": NODE_PYZ},
            "deadline_s": {"type": "float", "default": 60.0},
        },
        supports_check_mode=True,
    )
    given = module.params
    done = apply.apply(
        given["root"],
        {group: values for group, values in given["settings"].items() if values is not None},
        check_mode=module.check_mode,
        deadline_s=given["deadline_s"],
        node_pyz=given["node_pyz"],
    )
    answer = {"changed": done["changed"], "diff": done["diff"], "nodeprep": done["results"]}
    if done["failed"]:
        module.fail_json(msg=done["msg"], hint=done["hint"], **answer)
    module.exit_json(msg=done["msg"], **answer)


if __name__ == "__main__":
    main()
