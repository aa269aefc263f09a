#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ansible's door to nodeprep.node.probe_job."""

from __future__ import annotations

DOCUMENTATION = r"""
module: probe
short_description: Start, watch, collect and stop the stress probe
version_added: "0.1.0"
description:
  - The probe runs detached, so that a lost connection does not end it.
  - A probe that failed or died is a result and not a failure of this module, which fails when the probe
    cannot be started, or when there is nothing to look at.
options:
  state:
    description:
      - C(started) starts a probe in O(job_dir). One that runs there is left as it is, one that ended is
        replaced, and one that runs in another folder beside it is a failure.
      - C(polled) waits up to O(wait_s) for news and returns the progress lines since the last poll. A soak
        that was killed, or whose node rebooted, is started again and goes on where it was.
      - C(collected) packs the results into one archive.
      - C(stopped) ends the probe; it then writes its result as interrupted.
    type: str
    choices: [started, polled, collected, stopped]
    required: true
  job_dir:
    description: Folder of this job on the node. Older jobs beside it are removed when a new one starts.
    type: path
    required: true
  root:
    description: Root of the machine; any folder other than C(/) is a simulated machine.
    type: path
    default: /
  python:
    description: >-
      Python with torch. Empty takes the one of the role probe_runtime when it is there, else the one that
      runs this module.
    type: str
    default: ""
  program:
    description: The probe, as put there by M(nodeprep.rack.program). By default C(probe.pyz) in O(job_dir).
    type: path
  level:
    description: How long and how hard.
    type: str
    choices: [quick, standard, extended, soak]
    default: standard
  workload:
    description: Name of a shipped workload, or a workload as a mapping.
    type: raw
    default: vit-g
  inject:
    description: Fault to inject, for example C(flip:block=7,bit=0). The result can never certify.
    type: str
    default: ""
  duration_s:
    description: Length of a soak, or of the compute phase at other levels, in seconds. 0 is the level's own.
    type: float
    default: 0.0
  gpus:
    description: PCI addresses of the GPUs to load. Empty loads all.
    type: list
    elements: str
    default: []
  nvml_deadline_s:
    description: Seconds the probe waits for NVML to list the GPUs.
    type: float
    default: 30.0
  wait_s:
    description: Longest wait for news, in seconds.
    type: float
    default: 2.0
  deadline_s:
    description: Seconds from its start after which a poll stops the probe. 0 waits for ever.
    type: float
    default: 0.0
  grace_s:
    description: Seconds between asking the probe to stop and killing it.
    type: float
    default: 10.0
  keep:
    description: Jobs to keep on the node, this one included.
    type: int
    default: 5
  max_bytes:
    description: Most bytes of results, before compression.
    type: int
    default: 536870912
attributes:
  check_mode:
    description: Starts, packs and stops nothing; polling works.
    support: full
  diff_mode:
    description: There is no difference to show.
    support: none
  platform:
    description: Linux with Python 3.8 or later.
    platforms: linux
    support: full
author:
  - nodeprep contributors (@nodeprep)
"""

EXAMPLES = r"""
- name: Load the node for ten minutes
  nodeprep.rack.probe:
    state: started
    job_dir: /var/lib/nodeprep/runs/r1
    level: standard

- name: Wait for the end
  nodeprep.rack.probe:
    state: polled
    job_dir: /var/lib/nodeprep/runs/r1
  register: watched
  until: watched.nodeprep.probe.finished
  retries: 1000
  delay: 0
"""

RETURN = r"""
nodeprep:
  description: Holds C(probe).
  returned: success
  type: dict
  contains:
    probe:
      description: The job as it stands.
      type: dict
      sample:
        state: running
        finished: false
        error: ""
        hint: ""
        progress:
          - {t_s: 12.5, phase: compute, message: iteration 11, percent: 30, gpu: "0000:17:00.0"}
        archive: ""
hint:
  description: What to do about a failure.
  returned: on failure, where something can be said
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import job


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "choices": ["started", "polled", "collected", "stopped"],
                "required": True,
            },
            "job_dir": {"type": "path", "required": True},
            "root": {"type": "path", "default": "/"},
            "python": {"type": "str", "default": ""},
            "program": {"type": "path"},
            "level": {
                "type": "str",
                "choices": ["quick", "standard", "extended", "soak"],
                "default": "standard",
            },
            "workload": {"type": "raw", "default": "vit-g"},
            "inject": {"type": "str", "default": ""},
            "duration_s": {"type": "float", "default": 0.0},
            "gpus": {"type": "list", "elements": "str", "default": []},
            "nvml_deadline_s": {"type": "float", "default": 30.0},
            "wait_s": {"type": "float", "default": 2.0},
            "deadline_s": {"type": "float", "default": 0.0},
            "grace_s": {"type": "float", "default": 10.0},
            "keep": {"type": "int", "default": 5},
            "max_bytes": {"type": "int", "default": 512 * 1024 * 1024},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        changed, probe = job.STATES[given["state"]](given, module.check_mode)
    except job.JobError as error:
        module.fail_json(msg=str(error), hint=error.hint)
    module.exit_json(changed=changed, nodeprep={"probe": probe})


if __name__ == "__main__":
    main()
