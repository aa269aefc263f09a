#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Packs evidence on the node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle
short_description: Pack the evidence of a node into one archive, bounded in time and size
version_added: "0.1.0"
description:
  - Packs facts, the kernel log from a cursor on, the results of a probe, C(nvidia-smi -q), for a diagnosis
    also the journal and C(lspci -vvv), and a report of C(nvidia-bug-report.sh) into a tar.gz on the node.
  - A part that is missing, too large or too slow is named in the archive's C(MANIFEST.json) with the reason.
    The module fails only when the archive itself cannot be written.
  - The kernel log is read and never cleared.
options:
  dest:
    description: Path of the archive on the node. It appears there when it is complete, with mode 0600.
    type: path
    required: true
  root:
    description:
      - Root of the machine.
      - Below any other folder than C(/), programs are taken from that root's C(usr/bin) only.
    type: path
    default: /
  facts:
    description: Documents to pack under C(facts/), by name.
    type: dict
    default: {}
  since:
    description: The C(log_cursor) of earlier facts. Without one, or after a reboot, the whole log is packed.
    type: dict
  job_dir:
    description: Folder of a probe job whose results are packed under C(probe/).
    type: path
  bug_report:
    description: Run C(nvidia-bug-report.sh), which takes up to a minute or two on a machine with eight GPUs.
    type: bool
    default: true
  logs:
    description:
      - Pack the kernel's part of the journal since the last boot, and C(lspci -vvv), for a diagnosis.
      - The journal may hold what the ring buffer has already lost, and the other way round.
      - With O(since), the journal is limited to what came after it as well.
    type: bool
    default: false
  deadline_s:
    description: Seconds for all programs together; one that is still running then is killed.
    type: float
    default: 120.0
  max_bytes:
    description: Most bytes of content, before compression.
    type: int
    default: 67108864
attributes:
  check_mode:
    description: Reports that an archive would be written.
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
- name: Pack what is known about this node
  nodeprep.rack.bundle:
    dest: /var/lib/nodeprep/evidence.tar.gz
"""

RETURN = r"""
nodeprep:
  description: Holds C(evidence) with the path of the archive on the node and its manifest.
  returned: success
  type: dict
  sample:
    evidence:
      path: /var/lib/nodeprep/evidence.tar.gz
      parts:
        - {name: kernel.log, state: included, bytes: 5120, sha256: 9c0e...}
        - {name: nvidia-smi-q.txt, state: missing, reason: nvidia-smi is not installed}
"""

import os
import shutil
import tempfile
import time
from datetime import datetime, timezone

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import bounded
from ..module_utils.node import boot, kernel_log, paths
from ..module_utils.packing import Bundle, results

# A moment of the ring buffer and of the journal differ by what either has lost, so both are packed.
_LOG_PROGRAMS = (
    (
        ["journalctl", "-k", "-b", "0", "-o", "short-iso-precise", "--utc", "--no-pager", "-q"],
        "journal-kernel.txt",
    ),
    (["lspci", "-D", "-nn", "-vvv"], "lspci-vvv.txt"),
)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "root": {"type": "path", "default": "/"},
            "facts": {"type": "dict", "default": {}},
            "since": {"type": "dict"},
            "job_dir": {"type": "path"},
            "bug_report": {"type": "bool", "default": True},
            "logs": {"type": "bool", "default": False},
            "deadline_s": {"type": "float", "default": 120.0},
            "max_bytes": {"type": "int", "default": 64 * 1024 * 1024},
        },
        supports_check_mode=True,
    )
    given = module.params
    if module.check_mode:
        module.exit_json(changed=True, nodeprep={"evidence": {"path": given["dest"], "parts": []}})
    try:
        manifest = _pack(given)
    except OSError as error:
        module.fail_json(
            msg="cannot write the evidence to %s: %s" % (given["dest"], error.strerror or error),
            hint="free space on the node's disk, or set nodeprep_evidence_dir",
        )
    module.exit_json(changed=True, nodeprep={"evidence": dict(manifest, path=given["dest"])})


def _pack(given):
    bundle = Bundle(given["dest"], given["max_bytes"])
    try:
        for name, document in sorted(given["facts"].items()):
            bundle.add_document("facts/%s.json" % os.path.basename(name), document)
        _add_kernel_log(bundle, given["root"], given["since"])
        _add_results(bundle, given["job_dir"])
        _add_programs(bundle, given)
        return bundle.close(
            simulated=not paths.is_real(given["root"]),
            collected_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        )
    finally:
        bundle.abandon()


def _add_kernel_log(bundle, root, since):
    try:
        records = kernel_log.read_records(root)
    except (OSError, ValueError) as error:
        bundle.miss("kernel.log", str(error))
        return
    start, note = _start(root, since)
    lines = [
        "%d,%d,%d;%s" % (record.sequence, record.monotonic_us, record.priority, record.text)
        for record in records
        if record.sequence > start
    ]
    bundle.add_text("kernel.log", "".join(line + "\n" for line in lines), note)


def _start(root, since):
    """The sequence number to read on from, and what to say when it is not the cursor's."""
    if since is None:
        return -1, "the whole log of this boot"
    boot_id = boot.collect(root)["boot_id"]
    if boot_id.get("value") != since.get("boot_id"):
        return -1, "the whole log: it is of another boot than the cursor"
    sequence = since.get("sequence") or {}
    if sequence.get("state") != "ok":
        return -1, "the whole log: the cursor has no position"
    return int(sequence["value"]), ""


def _only_new(command, given):
    """What limits the journal to the time after the cursor, as the kernel log is."""
    position = (given["since"] or {}).get("monotonic_us") or {}
    if command[0] != "journalctl" or position.get("state") != "ok":
        return []
    if _start(given["root"], given["since"])[0] < 0:
        return []
    # Whole seconds, rounded down: what the cursor's own second still has is in the kernel log.
    return ["--since=-%ds" % max(0, boot.uptime_s(given["root"]) - position["value"] / 1e6)]


def _add_results(bundle, job_dir):
    if job_dir is None:
        return
    try:
        names = results(job_dir)
    except OSError as error:
        bundle.miss("probe/", error.strerror)
        return
    for name in names:
        bundle.add_file("probe/" + name, os.path.join(job_dir, name))


def _add_programs(bundle, given):
    end = time.monotonic() + given["deadline_s"]
    folder = tempfile.mkdtemp(prefix="nodeprep-evidence-")
    try:
        _add_program(
            bundle, given["root"], end, ["nvidia-smi", "-q"], os.path.join(folder, "nvidia-smi-q.txt")
        )
        if given["logs"]:
            for command, name in _LOG_PROGRAMS:
                limited = command + _only_new(command, given)
                _add_program(bundle, given["root"], end, limited, os.path.join(folder, name))
        # The script adds .gz to the name by itself.
        report = os.path.join(folder, "nvidia-bug-report.log")
        command = ["nvidia-bug-report.sh", "--safe-mode", "--output-file", report]
        if given["bug_report"]:
            _add_program(bundle, given["root"], end, command, report + ".gz")
        else:
            bundle.miss(os.path.basename(report) + ".gz", "not asked for")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _add_program(bundle, root, end, command, result):
    """Runs a program and adds its result, in the state it is in when the time is up."""
    name = os.path.basename(result)
    path = shutil.which(command[0], path=None if paths.is_real(root) else paths.under(root, "/usr/bin"))
    if path is None:
        bundle.miss(name, "%s is not installed" % command[0])
        return
    # The report's own output says what it did; it is not the result.
    output = os.devnull if command[0] == "nvidia-bug-report.sh" else result
    with open(output, "wb") as file:
        problem = bounded.run([path, *command[1:]], max(1.0, end - time.monotonic()), file)
    said = "%s: %s" % (command[0], problem) if problem else ""
    if os.path.exists(result) and os.path.getsize(result):
        bundle.add_file(name, result, said)
    else:
        bundle.miss(name, said or "%s wrote nothing" % command[0])


if __name__ == "__main__":
    main()
