"""Sets GPU power limits and persistence, proves that they are in effect, and makes them last.

All or nothing: every limit is checked against every GPU's constraints before the first write, and
when anything after that fails, settings and files go back to what they were.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from . import durable, pci, power_restore, power_unit
from .gpu_power_nvml import Change, GpuPower, Snapshot, read, write
from .power_rollback import Before, roll_back, setting, watts
from .power_unit import NODE_PYZ, UnitError
from .reading import Reading, value_or

DEADLINE_S = 60.0
# As a limit: the unit sets none at boot, and the present one is left alone.
NO_LIMIT = "none"
Result = Dict[str, Any]

CAPPED_HINT = (
    "something else caps this GPU lower, out of band (BMC, Redfish, SMBPBI) or on the board itself; "
    "look for a power cap in the BMC"
)
VOLATILE_HINT = "without persistence the driver drops the limit with its last client: ask for persistence too"


class Refused(Exception):
    """Nothing was changed; the message says why."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Failed(Exception):
    """Something was changed, and it did not come out right."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Limit:
    """A limit as asked for."""

    number: float
    percent: bool

    @classmethod
    def parse(cls, text: str) -> Limit:
        """From "93%" or "650W".

        Raises:
            Refused: It is neither.
        """
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%|[Ww])\s*", text)
        if match is None or float(match.group(1)) == 0:
            raise Refused(f"power limit {text!r} is no limit", 'write "650W", or "93%" of the default limit')
        return cls(float(match.group(1)), match.group(2) == "%")

    def milliwatts(self, default_mw: int) -> int:
        """For a GPU with this default limit; a percentage comes out in whole watts."""
        if self.percent:
            return int(default_mw * self.number / 100000 + 0.5) * 1000
        return round(self.number * 1000)


@dataclass
class Goal:
    """One GPU and what it should have (None: leave it)."""

    gpu: GpuPower
    limit_mw: Optional[int]
    persistence: Optional[bool]
    changes: List[Change] = field(default_factory=list)


def apply(
    root: str,
    *,
    limit: Optional[str] = None,
    persistence: Optional[bool] = None,
    check_mode: bool = False,
    deadline_s: float = DEADLINE_S,
    node_pyz: Optional[str] = NODE_PYZ,
) -> Result:
    """Brings every GPU of the node to these settings, and makes them survive a reboot.

    Args:
        root: "/" or a simulated root.
        limit: "650W", or "93%" of each GPU's default limit. None leaves limits alone, now and in what
            the unit sets at boot. "none" has the unit set no limit, and leaves the present one alone.
        persistence: Persistence mode. None leaves it alone, now and in what the unit sets at boot.
        check_mode: Only say what would change.
        deadline_s: Seconds for all NVML calls together; taking back a failed apply has as long again
            for each of its steps.
        node_pyz: The node program that the unit runs at boot, as a path on the node.

    Returns:
        changed, failed, msg, hint, diff (before, after), gpus (one entry each, watts; of a failed apply
        as last seen before it was rolled back), persisted (bool) and persisted_reason (why not),
        rolled_back and left_behind (after a failure: what is as before again, and what is not).
    """
    end = time.monotonic() + deadline_s
    try:
        goals = _goals(read(root, deadline_s), limit, persistence)
        lasting = power_unit.plan(root, _config(root, limit, persistence), node_pyz)
        files = lasting.changes(root)
        before = Before.of(root, tuple(goal.gpu for goal in goals), files)
    except Refused as refusal:
        return _refused(str(refusal), refusal.hint)
    except (OSError, ValueError) as error:
        return _refused(f"nothing was changed: {error}")
    changes = [change for goal in goals for change in goal.changes]
    enable = not lasting.obstacle and (bool(files) or not (before.unit.enabled and before.unit.active))
    result = _result(
        changed=bool(changes or files or enable),
        diff=_diff(goals, {path: text for path, (_, text) in files.items()}, enable),
        gpus=[_entry(goal, goal.gpu) for goal in goals],
        persisted=not lasting.obstacle and not (check_mode and enable),
        persisted_reason=lasting.obstacle,
    )
    if check_mode:
        return result
    started = False
    try:
        if changes or files:
            power_restore.remember(root, before.gpus)
        power_unit.put_files(root, {path: wanted for path, (_, wanted) in files.items()})
        written = write(root, changes, max(1.0, end - time.monotonic()))
        if written.problem:
            raise Failed(written.problem)
        _confirm(root, goals, result, max(1.0, end - time.monotonic()))
        if enable:
            started = True
            _enable(root)
    except (Failed, OSError, ValueError, UnitError) as error:
        undone = roll_back(root, before, started=started, deadline_s=deadline_s)
        result.update(failed=True, msg=f"{error}; {undone}", hint=getattr(error, "hint", ""))
        result.update(rolled_back=undone.back, left_behind=undone.stuck, changed=bool(undone.stuck))
        result.update(persisted=False, persisted_reason=f"apply failed: {error}")
        if not undone.stuck:
            result["diff"] = {"before": "", "after": ""}
    return result


def reapply(root: str, *, wait_s: float, deadline_s: float = DEADLINE_S) -> Result:
    """What the unit does at boot: the settings of CONFIG, on every GPU that answers.

    One lost GPU does not leave the others without their limit, but it makes this fail.

    Args:
        root: "/" or a simulated root.
        wait_s: Seconds to wait until as many GPUs answer as the PCI bus shows.
        deadline_s: Seconds for the NVML calls of one attempt.
    """
    try:
        config = power_unit.configured(root)
        if not _is(root, power_unit.CONFIG):
            raise Refused(f"there is no {power_unit.CONFIG}", "run the role gpu_power again")
        snapshot = _wait(root, wait_s, deadline_s)
        answering = Snapshot(snapshot.gpus, "" if snapshot.gpus else snapshot.problem)
        goals = _goals(answering, config["limit"], config["persistence"])
    except Refused as refusal:
        return _refused(str(refusal), refusal.hint)
    except (OSError, ValueError) as error:
        return _refused(str(error))
    changes = [change for goal in goals for change in goal.changes]
    written = write(root, changes, deadline_s, go_on=True)
    result = _result(changed=bool(written.done), diff=_diff(goals, {}, False), persisted=True)
    problems = [written.problem] if written.problem else []
    try:
        _confirm(root, goals, result, deadline_s)
    except Failed as failure:
        problems.append(str(failure))
        result["hint"] = failure.hint
    if snapshot.problem:
        problems.append(f"seen to on {len(goals)} GPUs only: {snapshot.problem}")
    return {**result, "failed": bool(problems), "msg": "; ".join(problems)}


def show(root: str, *, deadline_s: float = DEADLINE_S) -> Result:
    """The present settings; changes nothing."""
    snapshot = read(root, deadline_s)
    goals = [Goal(gpu, None, None) for gpu in snapshot.gpus]
    gpus = [_entry(goal, goal.gpu) for goal in goals]
    return _result(failed=bool(snapshot.problem), msg=snapshot.problem, gpus=gpus)


def forget(root: str, *, check_mode: bool = False, deadline_s: float = DEADLINE_S) -> Result:
    """Undoes all that `apply` did: unit, drop-in and configuration away, limits as they were before.

    The restore point goes only when everything is back.
    """
    try:
        entries = power_restore.load(root)
        there = [p for p in (power_unit.UNIT_FILE, power_unit.DROP_IN, power_unit.CONFIG) if _is(root, p)]
        if not entries and not there:
            return _result(msg="nodeprep has set nothing here")
        snapshot = read(root, deadline_s)
    except (OSError, ValueError) as error:
        return _result(failed=True, msg=f"nothing was changed: {error}")
    changes = power_restore.changes_back(entries, snapshot.gpus)
    diff = {
        "before": "".join(
            [*(f"{setting(change, change.old)}\n" for change in changes), *(f"{p}: present\n" for p in there)]
        ),
        "after": "".join(
            [*(f"{setting(change, change.new)}\n" for change in changes), *(f"{p}: absent\n" for p in there)]
        ),
    }
    result = _result(changed=bool(changes or there), diff=diff)
    if check_mode:
        return result
    try:
        power_unit.remove(root)
    except (OSError, UnitError) as error:
        return {**result, "failed": True, "msg": str(error)}
    problems = [snapshot.problem] if snapshot.problem else []
    problems.append(write(root, changes, deadline_s, go_on=True).problem)
    answering = {gpu.uuid for gpu in snapshot.gpus}
    problems.extend(
        f"GPU {entry['address']} ({uuid}) is not there to be restored"
        for uuid, entry in entries.items()
        if uuid not in answering
    )
    problems = [problem for problem in problems if problem]
    if problems:
        return {**result, "failed": True, "msg": "; ".join(problems)}
    power_restore.forget(root)
    return result


def _config(root: str, limit: Optional[str], persistence: Optional[bool]) -> Dict[str, Any]:
    """What the unit is to set. What is left alone now was set by an earlier run, and must stay set.

    Raises:
        OSError: The present configuration may not be read.
        Refused: It is damaged, and so what is to be left alone is not known.
    """
    try:
        config = power_unit.configured(root)
    except ValueError as error:
        if limit is None or persistence is None:
            hint = "ask for a limit (or none) and for persistence: the file is then written anew"
            raise Refused(str(error), hint) from error
        config = {}
    if limit is not None:
        config["limit"] = None if limit == NO_LIMIT else limit
    if persistence is not None:
        config["persistence"] = persistence
    return config


def _goals(snapshot: Snapshot, limit: Optional[str], persistence: Optional[bool]) -> List[Goal]:
    """What each GPU needs.

    Raises:
        Refused: A GPU cannot have it, or not all could be read.
    """
    wanted = None if limit in (None, NO_LIMIT) else Limit.parse(str(limit))
    if snapshot.problem:
        raise Refused(f"not all GPUs could be read, nothing was changed: {snapshot.problem}")
    if not snapshot.gpus:
        raise Refused("NVML lists no GPU", "is the driver loaded, and are there GPUs on the PCI bus?")
    problems: List[str] = []
    goals = [_goal(gpu, wanted, persistence, problems) for gpu in snapshot.gpus]
    if problems:
        raise Refused("nothing was changed: " + "; ".join(problems))
    return goals


def _goal(gpu: GpuPower, limit: Optional[Limit], persistence: Optional[bool], problems: List[str]) -> Goal:
    goal = Goal(gpu, None, persistence)
    if persistence is not None:
        mode = _need(gpu, "persistence", problems)
        if mode is not None and mode != persistence:
            goal.changes.append(Change(gpu.address, gpu.uuid, "persistence", int(mode), int(persistence)))
    if limit is not None:
        values = [_need(gpu, what, problems) for what in ("limit", "default", "lowest", "highest")]
        if None not in values:
            now, default, lowest, highest = values
            goal.limit_mw = limit.milliwatts(default)
            if not lowest <= goal.limit_mw <= highest:
                problems.append(
                    f"{gpu.address} takes {watts(lowest)} to {watts(highest)}, not {watts(goal.limit_mw)}"
                )
            elif goal.limit_mw != now or value_or(gpu.requested, now) != goal.limit_mw:
                goal.changes.append(Change(gpu.address, gpu.uuid, "limit", now, goal.limit_mw))
    return goal


def _need(gpu: GpuPower, what: str, problems: List[str]) -> Any:
    found: Reading = getattr(gpu, what)
    if found["state"] != "ok":
        problems.append(f"{gpu.address}: its {what} is unknown: {found['detail']}")
    return found.get("value")


def _confirm(root: str, goals: List[Goal], result: Result, deadline_s: float) -> None:
    """Reads back in a new process, as the next client of the driver would, into the result.

    Raises:
        Failed: Something is not in effect.
    """
    after = read(root, deadline_s)
    found = {gpu.uuid: gpu for gpu in after.gpus}
    problems = [after.problem] if after.problem else []
    hints = []
    entries = []
    for goal in goals:
        gpu = found.get(goal.gpu.uuid)
        if gpu is None:
            problems.append(f"{goal.gpu.address} no longer answers")
            continue
        why, hint = _shortfall(goal, gpu)
        problems.extend([f"{gpu.address}: {why}"] if why else [])
        hints.extend([hint] if hint else [])
        entries.append({**_entry(goal, gpu), "in_effect": not why, "problem": why})
    result["gpus"] = entries
    if problems:
        raise Failed("not in effect: " + "; ".join(problems), hints[0] if hints else "")


def _shortfall(goal: Goal, gpu: GpuPower) -> Tuple[str, str]:
    """What is not as it should be, and a hint; both "" when all is."""
    if goal.persistence is not None and gpu.persistence.get("value") is not goal.persistence:
        found = gpu.persistence.get("value", gpu.persistence.get("detail"))
        return f"persistence was set to {goal.persistence} and reads {found}", ""
    if goal.limit_mw is None:
        return "", ""
    limit, enforced = gpu.limit, gpu.enforced
    requested = gpu.requested if gpu.requested["state"] != "not_supported" else limit
    for name, found in (("limit", limit), ("requested limit", requested), ("enforced limit", enforced)):
        if found["state"] != "ok":
            return f"its {name} cannot be read back: {found['detail']}", ""
    if limit["value"] != goal.limit_mw or requested["value"] != goal.limit_mw:
        lasts = gpu.persistence.get("value")
        text = f"the limit was set to {watts(goal.limit_mw)} and reads {watts(limit['value'])}"
        return text, "" if lasts else VOLATILE_HINT
    return _enforced_shortfall(goal.limit_mw, enforced["value"])


def _enforced_shortfall(limit_mw: int, enforced_mw: int) -> Tuple[str, str]:
    if enforced_mw < limit_mw:
        text = (
            f"{watts(limit_mw)} are requested and {watts(enforced_mw)} enforced: "
            "capped out of band (BMC/SMBPBI) or by the board"
        )
        return text, CAPPED_HINT
    if enforced_mw > limit_mw:
        return f"{watts(enforced_mw)} are enforced, more than the limit of {watts(limit_mw)}", ""
    return "", ""


def _enable(root: str) -> None:
    try:
        power_unit.enable(root)
    except (OSError, UnitError) as error:
        raise Failed(f"the settings took effect but would not survive a reboot: {error}") from error


def _wait(root: str, wait_s: float, deadline_s: float) -> Snapshot:
    """The GPUs, when as many answer as the PCI bus shows; else those that do, with the problem."""
    end = time.monotonic() + wait_s
    while True:
        try:
            expected, problem = len(pci.gpus(root)), ""
        except OSError as error:
            expected, problem = 0, f"the PCI bus cannot be read: {error}"
        snapshot = read(root, deadline_s)
        if len(snapshot.gpus) < expected:
            problem = f"only {len(snapshot.gpus)} of {expected} GPUs on the PCI bus answer"
        problem = snapshot.problem or problem
        if not problem or time.monotonic() >= end:
            return Snapshot(snapshot.gpus, problem)
        time.sleep(min(2.0, max(0.1, wait_s / 10)))


def _entry(goal: Goal, gpu: GpuPower) -> Dict[str, Any]:
    """One GPU of a result. None stands for what could not be read."""

    def in_watts(found: Reading) -> Optional[float]:
        return found["value"] / 1000 if found["state"] == "ok" else None

    return {
        "address": gpu.address,
        "uuid": gpu.uuid,
        "name": gpu.name.get("value"),
        "wanted_w": None if goal.limit_mw is None else goal.limit_mw / 1000,
        "before_w": in_watts(goal.gpu.limit),
        "limit_w": in_watts(gpu.limit),
        "requested_w": in_watts(gpu.requested),
        "enforced_w": in_watts(gpu.enforced),
        "default_w": in_watts(gpu.default),
        "min_w": in_watts(gpu.lowest),
        "max_w": in_watts(gpu.highest),
        "persistence": gpu.persistence.get("value"),
    }


def _diff(goals: List[Goal], files: Dict[str, Optional[str]], enable: bool) -> Dict[str, str]:
    changes = [change for goal in goals for change in goal.changes]
    before = [setting(change, change.old) for change in changes]
    after = [setting(change, change.new) for change in changes]
    for path, text in files.items():
        before.append(f"{path}: {'as before' if text is None else 'absent or different'}")
        after.append(f"{path}: {'absent' if text is None else 'as nodeprep writes it'}")
    if enable:
        before.append(f"{power_unit.UNIT}: not enabled, or to be started again")
        after.append(f"{power_unit.UNIT}: enabled")
    return {
        "before": "".join(f"{line}\n" for line in before),
        "after": "".join(f"{line}\n" for line in after),
    }


def _is(root: str, path: str) -> bool:
    return durable.content(root, path) is not None


def _refused(message: str, hint: str = "") -> Result:
    """Of a run that wrote nothing."""
    return _result(failed=True, msg=message, hint=hint, persisted_reason=message)


def _result(**values: Any) -> Result:
    base: Result = {
        "changed": False,
        "failed": False,
        "msg": "",
        "hint": "",
        "diff": {"before": "", "after": ""},
        "gpus": [],
        "persisted": False,
        "persisted_reason": "",
        "rolled_back": [],
        "left_behind": [],
    }
    return {**base, **values}
