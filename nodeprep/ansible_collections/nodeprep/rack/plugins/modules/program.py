# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: program
short_description: Put one of nodeprep's single-file programs on a node
version_added: "0.1.0"
description:
  - Builds the program from the nodeprep that runs on the controller, and copies it when the node has another.
  - The file is a Python zip application with the same bytes wherever it is built.
  - The folder of O(dest) is made when it is missing.
options:
  name:
    description:
      - C(node) is the node code (facts, settings).
      - C(probe) is the stress probe; it contains the node code too.
    type: str
    choices: [node, probe]
    required: true
  dest:
    description: Path of the file on the node.
    type: str
    required: true
attributes:
  check_mode:
    description: Tells whether the file would change.
    support: full
  diff_mode:
    description: Shows the digest, the content being a zip file.
    support: full
  platform:
    description: Any node that ansible.builtin.copy can write to.
    platforms: posix
    support: full
author:
  - nodeprep contributors (@nodeprep)
"""

EXAMPLES = r"""
- name: Put the stress probe on the node
  nodeprep.rack.program:
    name: probe
    dest: /var/lib/nodeprep/probe.pyz
"""

RETURN = r"""
nodeprep:
  description: Holds C(programs), with an entry for the program by name.
  returned: success
  type: dict
  sample:
    programs:
      probe:
        dest: /var/lib/nodeprep/probe.pyz
        sha256: 3f1c0e...
        bytes: 512000
"""
