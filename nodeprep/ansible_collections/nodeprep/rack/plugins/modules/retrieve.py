# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: retrieve
short_description: Bring an archive from a node and unpack it on the controller
version_added: "0.1.0"
description:
  - Fetches a tar.gz and unpacks it into a folder of the controller, which it replaces as a whole.
  - What a node sends is not trusted. Links, devices, paths that lead out of the folder and archives that
    unpack to more than O(max_bytes) are refused.
options:
  src:
    description: Path of the archive on the node.
    type: str
    required: true
  dest:
    description: Folder on the controller; replaced.
    type: path
    required: true
  max_bytes:
    description: Most bytes of content.
    type: int
    default: 536870912
attributes:
  check_mode:
    description: Fetches nothing.
    support: full
  diff_mode:
    description: There is no difference to show.
    support: none
  platform:
    description: Any node that ansible.builtin.fetch can read from.
    platforms: posix
    support: full
author:
  - nodeprep contributors (@nodeprep)
"""

EXAMPLES = r"""
- name: Bring the probe's results home
  nodeprep.rack.retrieve:
    src: /var/lib/nodeprep/runs/r1/results.tar.gz
    dest: results/node01
"""

RETURN = r"""
dest:
  description: The folder on the controller.
  returned: success
  type: str
files:
  description: Names of the unpacked files.
  returned: success
  type: list
  elements: str
"""
