#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ansible's door to nodeprep.node.observe."""

from __future__ import annotations

DOCUMENTATION = r"""
module: observe
short_description: Facts of a GPU node in one round trip
version_added: "0.1.0"
description:
  - Reads PCI tree, link and error registers, kernel command line, identity, drivers and GPUs (by NVML).
  - Changes nothing. What cannot be read is an error in its place in the facts and does not fail the module.
  - A hung NVML is given up after O(nvml_deadline_s) and reported as such.
options:
  root:
    description: Root of the machine; any folder other than C(/) is a simulated machine and the facts say so.
    type: path
    default: /
  gpu_ids:
    description: Further PCI ids (C(vendor:device)) to take for GPUs. For tests; the facts become simulated.
    type: list
    elements: str
    default: []
  nvml_deadline_s:
    description: Seconds after which NVML counts as hung and its process is killed.
    type: float
    default: 30.0
  since:
    description: The C(log_cursor) of earlier facts; kernel log records after it are reported.
    type: dict
attributes:
  check_mode:
    description: Runs the same; it changes nothing.
    support: full
  diff_mode:
    description: There is never a difference.
    support: none
  platform:
    description: Linux with Python 3.8 or later.
    platforms: linux
    support: full
author:
  - nodeprep contributors (@nodeprep)
"""

EXAMPLES = r"""
- name: See what the node really is
  nodeprep.rack.observe:
  register: node

- name: Look again and read the kernel log on from the first look
  nodeprep.rack.observe:
    since: "{{ node.nodeprep.facts.log_cursor }}"
"""

RETURN = r"""
nodeprep:
  description: Holds one key, C(facts), the C(nodeprep.facts/1) document.
  returned: always
  type: dict
  sample:
    facts:
      schema: nodeprep.facts/1
      simulated: false
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import observe


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/"},
            "gpu_ids": {"type": "list", "elements": "str", "default": []},
            "nvml_deadline_s": {"type": "float", "default": 30.0},
            "since": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    given = module.params
    facts = observe.collect(
        given["root"],
        gpu_ids=tuple(given["gpu_ids"]),
        nvml_deadline_s=given["nvml_deadline_s"],
        since=given["since"],
    )
    module.exit_json(changed=False, nodeprep={"facts": facts})


if __name__ == "__main__":
    main()
