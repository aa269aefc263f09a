# SPDX-License-Identifier: Apache-2.0
"""What the module `probe` does in each of its states, over nodeprep.node.probe_job."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time

from .node import paths, probe_job
from .packing import Bundle, results

RUNTIME_PYTHON = "/var/lib/nodeprep/probe-runtime/bin/python"
ARCHIVE = "results.tar.gz"
WORKLOAD = "workload.json"
# How many progress lines the controller has had; see docs/adr/0003-the-probe-runs-detached.md.
SEEN = ".seen"


class JobError(Exception):
    """The job cannot be started or looked at."""

    def __init__(self, message, hint=""):
        super().__init__(message)
        self.hint = hint


def started(given, check_mode):
    """Starts the probe, once no other one runs on this node."""
    job_dir = given["job_dir"]
    _refuse_second_probe(job_dir)
    if check_mode:
        running = probe_job.poll(job_dir)["state"] == "running"
        return not running, _account({"state": "running" if running else "absent"})
    _prune(job_dir, given["keep"])
    try:
        workload = _workload(given["workload"], job_dir)
        _set_seen(job_dir, 0)
    except OSError as error:
        raise _disk_error(error, job_dir) from error
    begun = probe_job.start(
        given["root"],
        job_dir,
        given["python"] or _python(given["root"]),
        given["program"] or os.path.join(job_dir, "probe.pyz"),
        _arguments(given, workload),
    )
    if begun["failed"]:
        raise JobError(begun["error"], begun["hint"])
    return begun["changed"], _account({"state": "running", "job": begun["job"]})


def polled(given, check_mode):
    """News since the last poll; a probe that does not come to its end in time is stopped."""
    job_dir = given["job_dir"]
    standing = probe_job.poll(job_dir, given["wait_s"], _seen(job_dir))
    if standing["state"] == "died" and not check_mode:
        standing = _gone_on(job_dir, standing)
    if standing["state"] == "absent":
        raise JobError(standing["error"], "start it first")
    if not check_mode:
        try:
            _set_seen(job_dir, standing["lines"])
        except OSError as error:
            # A full disk must not hide that the probe has ended; its lines are then told again.
            standing = dict(standing, error=standing["error"] or str(_disk_error(error, job_dir)))
        standing = _end_overdue(given, standing)
    return False, dict(_account(standing), progress=standing.get("progress", []))


def collected(given, check_mode):
    """Packs the results; also those of a probe that failed or died."""
    job_dir = given["job_dir"]
    try:
        names = results(job_dir)
    except OSError as error:
        raise JobError("no results in %s: %s" % (job_dir, error.strerror)) from error
    account = _account(probe_job.poll(job_dir))
    if not names or check_mode:
        return bool(names), account
    archive = os.path.join(job_dir, ARCHIVE)
    try:
        bundle = Bundle(archive, given["max_bytes"])
        try:
            for name in names:
                bundle.add_file(name, os.path.join(job_dir, name))
            bundle.close(simulated=not paths.is_real(given["root"]))
        finally:
            bundle.abandon()
    except OSError as error:
        raise _disk_error(error, job_dir) from error
    return True, dict(account, archive=archive)


def stopped(given, check_mode):
    """Ends the probe; says so when there is none."""
    job_dir = given["job_dir"]
    if check_mode:
        standing = probe_job.poll(job_dir)
        return standing["state"] == "running", _account(standing)
    standing = probe_job.stop(job_dir, given["grace_s"])
    if standing["state"] == "running":
        raise JobError(
            "the probe does not end, not even by force",
            "a process that hangs in the driver goes with a reboot",
        )
    how = "killed" if standing["killed"] else "stopped" if standing["changed"] else "was not running"
    return standing["changed"], dict(_account(standing), message="the probe %s" % how)


STATES = {"started": started, "polled": polled, "collected": collected, "stopped": stopped}


def _account(standing):
    """What the controller is told; the job's command line and the like stay here."""
    return {
        "state": standing["state"],
        "finished": standing.get("finished", False),
        "error": standing.get("error", ""),
        "hint": standing.get("hint", ""),
        "archive": "",
    }


def _arguments(given, workload):
    arguments = ["--workload", workload, "--level", given["level"]]
    # The folder is named for the run; the result says so too, and is held against it.
    arguments += ["--run", os.path.basename(os.path.normpath(given["job_dir"]))]
    arguments += ["--nvml-deadline-s", str(given["nvml_deadline_s"])]
    for address in given["gpus"]:
        arguments += ["--gpu", address]
    if given["duration_s"]:
        arguments += ["--duration-s", str(given["duration_s"])]
    if given["inject"]:
        arguments += ["--inject", given["inject"]]
    return arguments


def _workload(asked, job_dir):
    """The workload's name, or the path of a file with it: the node's Python reads no YAML."""
    if not isinstance(asked, dict):
        return str(asked)
    path = os.path.join(job_dir, WORKLOAD)
    os.makedirs(job_dir, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(asked, file, sort_keys=True)
    return path


def _python(root):
    prepared = paths.under(root, RUNTIME_PYTHON)
    return prepared if os.path.exists(prepared) else sys.executable


def _others(job_dir):
    """Folders of other jobs, the newest first."""
    parent = os.path.dirname(os.path.abspath(job_dir))
    if not os.path.isdir(parent):
        return []
    found = [os.path.join(parent, name) for name in os.listdir(parent) if name != os.path.basename(job_dir)]
    return sorted((path for path in found if os.path.isdir(path)), key=os.path.getmtime, reverse=True)


def _refuse_second_probe(job_dir):
    """Two probes on one GPU would spoil both results."""
    for other in _others(job_dir):
        if not probe_job.poll(other)["finished"]:
            run_id = os.path.basename(other)
            raise JobError(
                "the probe of run %s is still running on this node" % run_id,
                "wait for its end, or stop it: ansible-playbook nodeprep.rack.stop -e nodeprep_run_id=%s"
                % run_id,
            )


def _prune(job_dir, keep):
    for old in _others(job_dir)[max(0, keep - 1) :]:
        shutil.rmtree(old, ignore_errors=True)


def _end_overdue(given, standing):
    limit = given["deadline_s"]
    job = standing["job"]
    if standing["finished"] or not limit or job is None or time.time() - job["started"] < limit:
        return standing
    ended = probe_job.stop(given["job_dir"], given["grace_s"])
    error = "the probe came to no end within %.0f s and was stopped" % limit
    return dict(standing, **dict(ended, error=error, finished=True))


def _gone_on(job_dir, standing):
    """A soak that died goes on; what cannot be started again, or dies over and over, is what it is."""
    resumed = probe_job.resume(job_dir)
    if not resumed["changed"]:
        return dict(standing, error="; ".join(filter(None, [standing["error"], resumed["error"]])))
    return dict(probe_job.poll(job_dir, 0, _seen(job_dir)))


def _seen(job_dir):
    try:
        with open(os.path.join(job_dir, SEEN), encoding="utf-8") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _set_seen(job_dir, lines):
    os.makedirs(job_dir, exist_ok=True)
    with open(os.path.join(job_dir, SEEN), "w", encoding="utf-8") as file:
        file.write(str(lines))


def _disk_error(error, job_dir):
    return JobError(
        "cannot write %s: %s" % (job_dir, error.strerror or error), "free space on the node's disk"
    )
