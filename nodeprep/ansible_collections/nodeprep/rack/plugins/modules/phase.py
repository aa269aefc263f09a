# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: phase
short_description: Record that a host has come to the end of a phase
version_added: "0.1.0"
description:
  - nodeprep counts a host as done only when this record arrives. A host that Ansible drops from a play on the
    way leaves no trace in its statistics and would otherwise look fine.
  - Runs on the controller; the host is not contacted.
options:
  name:
    description: Name of the phase.
    type: str
    required: true
  state:
    description: How the phase ended for this host.
    type: str
    choices: [done, failed]
    default: done
  error:
    description: What went wrong.
    type: str
    default: ""
  hint:
    description: What to do about it.
    type: str
    default: ""
  data:
    description:
      - What else is known of the phase and no module of this collection has told, by the key of the module
        that it belongs to.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Runs the same; it changes nothing.
    support: full
  diff_mode:
    description: There is never a difference.
    support: none
  platform:
    description: Runs on the controller.
    platforms: posix
    support: full
author:
  - nodeprep contributors (@nodeprep)
"""

EXAMPLES = r"""
- name: This host is through
  nodeprep.rack.phase:
    name: inspect
"""

RETURN = r"""
nodeprep:
  description: Holds the key C(phase) with the options as given, and the keys of O(data).
  returned: always
  type: dict
"""
