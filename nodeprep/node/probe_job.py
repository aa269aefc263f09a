"""The probe as a detached job of the node: started, polled and stopped by whoever comes along.

A run outlives the connection that began it. A small supervisor in a session of its own starts the
probe, notes in job.json who it is, and in exit.json how it ended; everything else (progress.jsonl,
result.json) the probe writes itself into the same folder. So the controller may be killed and come
back, and a node that rebooted half-way is told from one whose probe was killed.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import subprocess
import time
import zipfile
from typing import Any, Dict, List, Optional, Sequence, Tuple

JOB, EXIT, LOG = "job.json", "exit.json", "job.log"
RESULT, PROGRESS = "result.json", "progress.jsonl"
BOOT_ID = "proc/sys/kernel/random/boot_id"
OLDEST_PYTHON = (3, 8)

LOOK_S = 0.1
# The supervisor writes exit.json right after the probe is gone.
SUPERVISOR_S = 2.0
LAUNCH_S = 20.0
PYTHON_S = 30.0
# A node that loses a soak more often has another trouble.
MOST_RESUMES = 50
_ENDED = ("completed", "interrupted", "failed")


class JobProblem(Exception):
    """The job cannot be started; carries a hint."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def start(root: str, job_dir: str, python: str, pyz: str, args: Sequence[str] = ()) -> Dict[str, Any]:
    """Starts `PYTHON PYZ run --root ROOT --out JOB_DIR ARGS...` detached, and returns at once.

    Starting a job that runs already changes nothing; a finished one in the same folder is replaced.

    Args:
        root: "/" or a simulated root.
        job_dir: Folder for the job and its results; made if need be.
        python: The interpreter, one that has torch (numpy for a simulated root).
        pyz: The probe program.
        args: Further arguments of `run`, such as --workload and --level.

    Returns:
        {changed, failed, error, hint, job}; `job` is the content of job.json, None when failed.
    """
    try:
        job, alive = _running_job(job_dir)
        if alive:
            return {"changed": False, "failed": False, "error": "", "hint": "", "job": job}
        _check_program(python, pyz)
        _make_folder(job_dir)
        command = [python, pyz, "run", "--root", root, "--out", job_dir, *map(str, args)]
        job = _launch(command, root, job_dir)
    except JobProblem as problem:
        return {"changed": False, "failed": True, "error": problem.message, "hint": problem.hint, "job": None}
    return {"changed": True, "failed": False, "error": "", "hint": "", "job": job}


def poll(job_dir: str, wait_s: float = 0.0, after_line: int = 0) -> Dict[str, Any]:
    """How the job stands, after waiting up to `wait_s` for its end.

    Args:
        job_dir: The job's folder.
        wait_s: Returns earlier only when the job has ended.
        after_line: Progress lines that the caller has seen already.

    Returns:
        {finished, state, progress, lines, exit, error, hint, job}. `state` is "running", "completed",
        "interrupted", "failed" (all three say what result.json says; "failed" also when the probe
        ended without one), "died" (killed, or the node rebooted) or "absent" (never started).
        `progress` are the new lines, decoded; `lines` is the count to pass as after_line next.
    """
    end = time.monotonic() + wait_s
    standing = _standing(job_dir)
    while standing["state"] == "running" and time.monotonic() < end:
        time.sleep(min(LOOK_S, max(0.0, end - time.monotonic())))
        standing = _standing(job_dir)
    # Read after the state: of a job that has ended these are then all lines.
    progress, lines = _progress(job_dir, after_line)
    finished = standing["state"] != "running"
    return {"finished": finished, "progress": progress, "lines": lines, **standing}


def resume(job_dir: str) -> Dict[str, Any]:
    """Starts a soak again that died, with the command of its first start; it goes on where it was.

    Returns:
        {changed, error}. Unchanged are jobs that run, that are no soak, or that died too often.
    """
    standing = _standing(job_dir)
    job = standing["job"]
    if standing["state"] != "died" or job is None or not _may_go_on(job):
        return {"changed": False, "error": ""}
    resumed = int(job.get("resumed", 0)) + 1
    if resumed > MOST_RESUMES:
        return {"changed": False, "error": "it died %d times and is not started again" % resumed}
    try:
        for name in (EXIT, RESULT):
            _unlink(os.path.join(job_dir, name))
        _launch(job["command"], job["root"], job_dir, resumed)
    except (JobProblem, OSError) as problem:
        return {"changed": False, "error": "it could not be started again: %s" % problem}
    return {"changed": True, "error": ""}


def _may_go_on(job: Dict[str, Any]) -> bool:
    command = job["command"]
    is_soak = ("--level", "soak") in [tuple(command[n : n + 2]) for n in range(len(command))]
    return is_soak and not job.get("stopped")


def stop(job_dir: str, grace_s: float = 5.0) -> Dict[str, Any]:
    """Asks the job to end (SIGTERM), and ends it by force (SIGKILL) after `grace_s`.

    Returns:
        {changed, killed} and what `poll` says afterwards, without progress.
    """
    job, alive = _running_job(job_dir)
    killed = False
    if alive and job is not None:
        # A soak that is ended by force is not one that died.
        _write_json(os.path.join(job_dir, JOB), {**job, "stopped": True})
        _signal_group(job, signal.SIGTERM)
        if not _wait_for_death(job, grace_s):
            killed = True
            _signal_group(job, signal.SIGKILL)
            _wait_for_death(job, SUPERVISOR_S)
    standing = _standing(job_dir)
    return {"changed": alive, "killed": killed, "finished": standing["state"] != "running", **standing}


# ---- start ------------------------------------------------------------------------------------------


def _check_program(python: str, pyz: str) -> None:
    hint = "name a Python that has torch in nodeprep_policy.probe_python, or use the role probe_runtime"
    if not python:
        raise JobProblem("no Python for the probe is named", hint)
    if not os.path.isfile(pyz):
        raise JobProblem("the probe program %s is missing on the node" % pyz, "upload it again")
    if not zipfile.is_zipfile(pyz):
        raise JobProblem("%s is not a probe program: it is damaged" % pyz, "upload it again")
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [python, "-c", question],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=PYTHON_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else "it did not answer within %.0f s" % PYTHON_S
        raise JobProblem("the probe's Python %s cannot be run: %s" % (python, why), hint) from error
    version = answer.stdout.decode("utf-8", "replace").strip()
    parts = version.split(".")
    if answer.returncode or len(parts) != 2 or not all(part.isdigit() for part in parts):
        last = answer.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise JobProblem("the probe's Python %s does not work: %s" % (python, "".join(last) or version), hint)
    if tuple(map(int, parts)) < OLDEST_PYTHON:
        raise JobProblem(
            "the probe's Python %s is %s, and 3.8 is the oldest that will do" % (python, version), hint
        )


def _make_folder(job_dir: str) -> None:
    try:
        os.makedirs(job_dir, exist_ok=True)
        for name in (JOB, EXIT, RESULT, PROGRESS, LOG):
            _unlink(os.path.join(job_dir, name))
    except OSError as error:
        raise _disk_problem(error, job_dir) from error


def _disk_problem(error: OSError, path: str) -> JobProblem:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return JobProblem("the disk is full: cannot write %s" % path, "free space on the node")
    return JobProblem(
        "cannot write %s: %s" % (path, error.strerror or error), "is the user right, and the disk writable?"
    )


def _launch(command: List[str], root: str, job_dir: str, resumed: int = 0) -> Dict[str, Any]:
    """Forks twice, so that the supervisor belongs to nobody; waits until the probe has been started."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                _supervise(command, root, job_dir, writer, resumed)
        finally:
            # Never back into the caller's code in a second process.
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    answer = _answer(reader)
    if "error" in answer:
        raise JobProblem(answer["error"], answer["hint"])
    return answer


def _answer(reader: int) -> Dict[str, Any]:
    """What the supervisor said; it closes the pipe once the probe is on its way."""
    data = b""
    end = time.monotonic() + LAUNCH_S
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            part = pipe.read(65536)
            if not part:
                break
            data += part
    try:
        answer: Dict[str, Any] = json.loads(data.decode())
    except ValueError:
        return {
            "error": "the probe's supervisor did not start",
            "hint": "is the node out of memory or processes?",
        }
    return answer


def _supervise(command: List[str], root: str, job_dir: str, writer: int, resumed: int) -> None:
    """Runs in the grandchild: starts the probe, waits for it, and notes how it ended."""
    problem: Optional[JobProblem] = None
    try:
        log = _leave_caller(job_dir, writer)
        probe = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
        )
        job = {**_describe(command, root, probe.pid), "resumed": resumed}
        try:
            _write_json(os.path.join(job_dir, JOB), job)
        except OSError:
            probe.kill()
            raise
        os.write(writer, json.dumps(job).encode())
    except OSError as error:
        problem = _disk_problem(error, job_dir)
        os.write(writer, json.dumps({"error": problem.message, "hint": problem.hint}).encode())
        return
    os.close(writer)
    code = probe.wait()
    ended = {"returncode": code if code >= 0 else None, "signal": -code if code < 0 else None}
    _write_json(os.path.join(job_dir, EXIT), {**ended, "ended": time.time()})


def _leave_caller(job_dir: str, writer: int) -> int:
    """Lets go of everything inherited: an open pipe would keep ssh and Ansible waiting for its end."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != writer:
            _close(int(name))
    os.chdir("/")
    return os.open(os.path.join(job_dir, LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def _describe(command: List[str], root: str, pid: int) -> Dict[str, Any]:
    return {
        "pid": pid,
        # start_new_session makes the probe the leader of its own group.
        "pgid": pid,
        "supervisor": os.getpid(),
        "started": time.time(),
        "start_ticks": _process(pid)[1],
        "boot_id": _boot_id(root),
        "root": root,
        "command": command,
    }


# ---- how it stands ----------------------------------------------------------------------------------


def _standing(job_dir: str) -> Dict[str, Any]:
    """State, error, hint, exit and job."""
    job, alive = _running_job(job_dir)
    standing = {"state": "running", "error": "", "hint": "", "exit": None, "job": job}
    if job is None:
        if os.path.exists(os.path.join(job_dir, JOB)):
            return {**standing, "state": "died", "error": "%s is damaged" % os.path.join(job_dir, JOB)}
        return {**standing, "state": "absent", "error": "no probe was started in %s" % job_dir}
    if alive:
        return standing
    rebooted = job["boot_id"] != _boot_id(job["root"])
    ended = _read_json(os.path.join(job_dir, EXIT)) if rebooted else _exit(job_dir, job)
    state, error, hint = _end(job_dir, ended, rebooted)
    return {**standing, "state": state, "error": error, "hint": hint, "exit": ended}


def _end(job_dir: str, ended: Optional[Dict[str, Any]], rebooted: bool) -> Tuple[str, str, str]:
    """State, error and hint of a job that no longer runs."""
    path = os.path.join(job_dir, RESULT)
    result = _read_json(path)
    if result is not None and result.get("state") in _ENDED:
        return result["state"], result.get("error", ""), result.get("hint", "")
    if os.path.exists(path):
        return "failed", "%s is damaged" % path, ""
    return _end_without_result(job_dir, ended, rebooted)


def _end_without_result(
    job_dir: str, ended: Optional[Dict[str, Any]], rebooted: bool
) -> Tuple[str, str, str]:
    if rebooted:
        why, hint = "the node rebooted while the probe ran", "see the boot before: journalctl -b -1 -k"
    elif _disk_is_full(job_dir):
        return "failed", "the disk is full: the probe could not write its result", "free space on the node"
    elif ended is None:
        why, hint = "the probe and its supervisor were killed", "was the node out of memory? journalctl -k"
    elif ended["signal"] is not None:
        why = "the probe was killed by %s" % _signal_name(ended["signal"])
        hint = "somebody killed it, or the kernel did for want of memory: journalctl -k -g 'Out of memory'"
    else:
        said, hint = _last_words(job_dir)
        return "failed", "the probe ended with exit code %s: %s" % (ended["returncode"], said), hint
    return "died", why, hint


def _exit(job_dir: str, job: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """exit.json, which comes a moment after the process is gone while the supervisor lives."""
    path = os.path.join(job_dir, EXIT)
    end = time.monotonic() + SUPERVISOR_S
    found = _read_json(path)
    while found is None and _process(job["supervisor"])[0] and time.monotonic() < end:
        time.sleep(0.02)
        found = _read_json(path)
    return found if found is not None else _read_json(path)


def _disk_is_full(job_dir: str) -> bool:
    """Less room than a file takes; no result is then no wonder."""
    try:
        room = os.statvfs(job_dir)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < 4096


def _last_words(job_dir: str) -> Tuple[str, str]:
    """The last line the probe printed, and its hint."""
    try:
        with open(os.path.join(job_dir, LOG), encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file.read()[-8192:].splitlines() if line.strip()]
    except OSError as error:
        return "its log cannot be read: %s" % error.strerror, ""
    hints = [line[len("hint: ") :] for line in lines if line.startswith("hint: ")]
    said = [line for line in lines if not line.startswith("hint: ")]
    last = said[-1] if said else "it said nothing"
    return last[len("error: ") :] if last.startswith("error: ") else last, (
        hints[-1] if hints else "see %s" % LOG
    )


def _progress(job_dir: str, after_line: int) -> Tuple[List[Dict[str, Any]], int]:
    """Decoded lines after the given one, and how many complete lines there are."""
    try:
        with open(os.path.join(job_dir, PROGRESS), "rb") as file:
            *lines, _ = file.read().split(b"\n")
    except FileNotFoundError:
        return [], 0
    return [json.loads(line.decode()) for line in lines[after_line:]], len(lines)


def _running_job(job_dir: str) -> Tuple[Optional[Dict[str, Any]], bool]:
    """job.json (None when there is none, or a damaged one), and whether its process is alive."""
    job = _read_json(os.path.join(job_dir, JOB))
    if job is None or not {"pid", "pgid", "supervisor", "start_ticks", "boot_id", "root"} <= set(job):
        return None, False
    alive, start_ticks = _process(job["pid"])
    # A number may have been given to another process since, surely so after a reboot.
    same = start_ticks == job["start_ticks"] and job["boot_id"] == _boot_id(job["root"])
    return job, alive and same


def _process(pid: int) -> Tuple[bool, Optional[int]]:
    """Whether a process is alive (a zombie is not), and its start time in clock ticks since boot."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            # The name in parentheses may hold spaces and parentheses itself.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return False, None
    return fields[0] not in (b"Z", b"X"), int(fields[19])


def _boot_id(root: str) -> str:
    try:
        with open(os.path.join(root, BOOT_ID)) as file:
            return file.read().strip()
    except OSError:
        # Some containers hide it; the start time of the process then tells one from another.
        return ""


def _signal_group(job: Dict[str, Any], number: int) -> None:
    try:
        os.killpg(job["pgid"], number)
    except ProcessLookupError:
        return


def _wait_for_death(job: Dict[str, Any], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while True:
        alive, start_ticks = _process(job["pid"])
        if not alive or start_ticks != job["start_ticks"]:
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


# ---- files ------------------------------------------------------------------------------------------


def _read_json(path: str) -> Optional[Dict[str, Any]]:
    """The object in a file; None when there is no whole one."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write_json(path: str, document: Dict[str, Any]) -> None:
    temporary = "%s.%d.new" % (path, os.getpid())
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        _unlink(temporary)
        raise


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError as error:
        # The descriptor that listed /proc/self/fd is gone by now.
        if error.errno != errno.EBADF:
            raise
