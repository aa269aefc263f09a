# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bios
short_description: Set the BIOS of a machine through its BMC, on any vendor's
version_added: "0.1.0"
description:
  - Knobs have names that are the same on every machine. Which attribute and value of a BIOS they are is found
    in the attribute registry of its own BMC.
  - Runs on the controller and speaks Redfish. The node is not connected to, and needs nothing.
  - Takes a restore point, stages, restarts the host, waits through POST, and reads back the values in effect.
  - All or none. A knob that this BIOS refuses, lacks or has twice keeps the others from being written.
  - The host is restarted when something is to change, and only then. Drain it first.
options:
  bmc:
    description: The BMC, as C(https://ADDRESS[:PORT]) or the address alone.
    type: str
    required: true
  user:
    description: User of the BMC. It needs the rights to configure the system and to control its power.
    type: str
    default: admin
  password:
    description:
      - Its password, from a vault for example. Without it, E(NODEPREP_BMC_PASSWORD) of the controller and
        then O(password_file) are used.
    type: str
  password_file:
    description: File on the controller with the password alone, not readable by others.
    type: path
  ca:
    description: PEM file of the authorities that vouch for the BMC. By default those of the controller.
    type: path
  fingerprint:
    description: SHA-256 of the BMC's one certificate, in place of O(ca).
    type: str
  insecure:
    description: Take any certificate. The result says so.
    type: bool
    default: false
  state:
    description:
      - C(present) sets O(knobs).
      - C(restored) takes back what nodeprep changed on this BMC, by the restore point on this controller.
    type: str
    choices: [present, restored]
    default: present
  knobs:
    description:
      - Names and values, for example C(iommu=disabled). C(4,slot=3) limits a knob to a slot.
      - Quote words that YAML takes for true or false.
    type: dict
    default: {}
  unsupported:
    description: What it means when a BIOS has no such setting. C(accept) goes on with the others.
    type: str
    choices: [error, accept]
    default: error
  reset:
    description: Restart the host. Without it the values stay staged until its next reset.
    type: bool
    default: true
  deadline_s:
    description: Seconds for each reset, until the values are in effect.
    type: float
    default: 1800.0
  graceful_s:
    description: Seconds for the operating system to shut down before it is switched off.
    type: float
    default: 180.0
  bios_password:
    description: Setup password of the BIOS (HPE), sent only where the BMC asks for it.
    type: str
  home:
    description: Folder on the controller for restore points and records. By default as E(NODEPREP_HOME) says.
    type: path
attributes:
  check_mode:
    description: Tells which attributes would change, and what cannot be set. Changes nothing.
    support: full
  diff_mode:
    description: Shows each attribute before and after.
    support: full
  platform:
    description: Machines with a Redfish BMC that has BIOS settings.
    platforms: posix
    support: full
author:
  - nodeprep contributors (@nodeprep)
"""

EXAMPLES = r"""
- name: Switch the IOMMU and ASPM off
  nodeprep.rack.bios:
    bmc: https://10.0.0.7
    user: nodeprep
    password: "{{ vault_bmc_password }}"
    ca: /etc/nodeprep/bmc-ca.pem
    knobs:
      iommu: disabled
      aspm: disabled

- name: As it was before
  nodeprep.rack.bios:
    bmc: https://10.0.0.7
    password_file: /etc/nodeprep/bmc-password
    state: restored
"""

RETURN = r"""
nodeprep:
  description: Holds C(bios), a C(nodeprep.bios_plan/1) in check mode, else a C(nodeprep.bios_apply/1).
  returned: always
  type: dict
  sample:
    bios:
      schema: nodeprep.bios_apply/1
      state: applied
      resets: 1
hint:
  description: What to do about a failure.
  returned: failure
  type: str
  sample: nothing was written
"""
