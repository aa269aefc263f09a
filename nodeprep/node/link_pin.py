"""Pins GPU links to a PCIe generation from the host: target speed of the port above, then training anew.

All or nothing: every link is looked at before the first write, and when anything after that fails,
ports, files and unit go back to what they were. A port that ignores the write is a failure.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import durable, link_pin_restore, link_pin_unit, link_pin_users
from .link_pin_bus import LOCKDOWN_HINT, Bus, WriteForbidden, lockdown, open_bus
from .link_pin_find import find_pins, gone
from .link_pin_rollback import Before, roll_back
from .link_pin_train import LinkState, TrainingError, confirm, look, port_problem, retrain, set_target
from .link_pin_unit import CONFIG, UNIT, Config, FileChanges, Pin
from .power_unit import NODE_PYZ, UnitError
from .reading import NotSupported, describe

DEADLINE_S = 60.0
Result = Dict[str, Any]

OBSTACLE_HINT = (
    "the program must be on the file system of / or /usr: name another place for it, for example "
    "/usr/lib/nodeprep/node.pyz"
)
IGNORED_HINT = (
    "this hardware cannot be pinned from the host (emulated ports never can): pin it in the BIOS setup"
)
HELD_HINT = "a pin lowers a generation and never raises it: raise it in the BIOS setup, then pin"
INITRAMFS_HINT = (
    "is the driver in the initramfs? It must load after the unit: take it out, or pin in the BIOS"
)

_PROBLEMS = (OSError, ValueError, NotSupported, TrainingError, WriteForbidden, UnitError)


class Refused(Exception):
    """Nothing was changed; the message says why."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Goal:
    """One link, how it stands, and the generation it should have at most.

    Attributes:
        drivers: Bound to what is below the port.
    """

    pin: Pin
    state: LinkState
    drivers: Tuple[str, ...]
    gen: int

    @property
    def due(self) -> bool:
        """The port has to be written."""
        return self.state.target != self.gen or self.state.fastest > self.gen


def apply(
    root: str,
    *,
    gen: int,
    gpus: Sequence[str] = (),
    live: bool = False,
    check_mode: bool = False,
    deadline_s: float = DEADLINE_S,
    node_pyz: Optional[str] = NODE_PYZ,
) -> Result:
    """Pins the links of GPUs now where no driver is bound to them, and at every boot before one is.

    Args:
        root: "/" or a simulated root.
        gen: PCIe generation, 1 to 6.
        gpus: Addresses; none means all NVIDIA GPUs. GPUs that were pinned before stay pinned.
        live: Also train links of GPUs that have a driver, as long as no process has a GPU open. A GPU
            that does not come back is lost until the next boot.
        check_mode: Only say what would change.
        deadline_s: Seconds after which no further link is trained.
        node_pyz: The node program that the unit runs at boot, as a path on the node.

    Returns:
        changed, failed, msg, hint, diff (before, after), links (one entry each), pending_reboot (true when
        a link will only be pinned by the next boot), persisted, rolled_back and left_behind.
    """
    end = time.monotonic() + deadline_s
    bus = open_bus(root)
    try:
        goals = _goals(bus, gen, gpus)
        files = _files(root, Config(gen, tuple(goal.pin for goal in goals)), node_pyz, check_mode)
        before = Before.of(root, {goal.pin: goal.state for goal in goals}, files)
        now = [goal for goal in goals if goal.due and (live or not goal.drivers)]
        _guard(root, now)
    except Refused as refusal:
        return _result(failed=True, msg=str(refusal), hint=refusal.hint)
    except _PROBLEMS as error:
        return _failed(error, "nothing was changed: ")
    waiting = [goal for goal in goals if goal.due and goal not in now]
    start = not waiting and (bool(files or now) or not (before.enabled and before.active))
    changed = bool(files or now or start or not before.enabled)
    result = _result(
        changed=changed,
        diff=_diff(now, files, enable=not before.enabled, start=start),
        links=[_entry(goal, goal.state, pending=goal in waiting) for goal in goals],
        pending_reboot=bool(waiting),
        persisted=not (check_mode and changed),
        msg=_pending_words(waiting),
    )
    if check_mode or not changed:
        return result
    touched: List[Pin] = []
    started = False
    try:
        link_pin_restore.remember(root, {goal.pin: goal.state.target for goal in goals if goal.due})
        link_pin_unit.put_files(root, {path: text for path, (_, text) in files.items()})
        trained = {}
        for goal in now:
            if time.monotonic() >= end:
                raise TrainingError(f"{deadline_s:g} s were over before all links were trained")
            touched.append(goal.pin)
            trained[goal.pin] = _train(bus, goal)
        link_pin_unit.enable(root)
        if start:
            started = True
            link_pin_unit.start(root)
    except _PROBLEMS as error:
        undone = roll_back(bus, before, touched, started=started)
        result.update(_failed(error, after=f"; {undone}"))
        result.update(links=_seen_after(bus, goals, error), changed=bool(undone.stuck))
        result.update(rolled_back=undone.back, left_behind=undone.stuck)
        return result
    result["links"] = [
        _entry(goal, trained.get(goal.pin, goal.state), pending=goal in waiting) for goal in goals
    ]
    return result


def reapply(root: str) -> Result:
    """What the unit does at boot: pins every port of CONFIG that is still what it was.

    One port that is gone does not leave the others without their pin, but it makes this fail.
    """
    try:
        config = link_pin_unit.configured(root)
    except _PROBLEMS as error:
        return _failed(error)
    if config is None:
        return _result(failed=True, msg=f"there is no {CONFIG}", hint="run the role pcie_link again")
    bus = open_bus(root)
    result = _result(persisted=True)
    problems = []
    for pin in config.pins:
        try:
            result["links"].append(_pin_again(bus, pin, config.gen))
        except Refused as refusal:
            problems.append(str(refusal))
            result["hint"] = refusal.hint
        except _PROBLEMS as error:
            failed = _failed(error)
            problems.append(failed["msg"])
            result["hint"] = failed["hint"]
    return {**result, "failed": bool(problems), "msg": "; ".join(problems)}


def show(root: str) -> Result:
    """How the links of all GPUs stand; changes nothing."""
    bus = open_bus(root)
    try:
        config = link_pin_unit.configured(root)
        pins = find_pins(bus, (), config)
    except _PROBLEMS as error:
        return _failed(error)
    result = _result(persisted=config is not None and link_pin_unit.enabled(root))
    problems = []
    for pin in pins:
        try:
            state = look(bus, pin.port, pin.gpu)
            goal = Goal(pin, state, link_pin_users.drivers(root, pin.port), config.gen if config else 0)
            result["links"].append(_entry(goal, state, pending=bool(config) and goal.due))
        except _PROBLEMS as error:
            problems.append(f"{pin.port}: {_failed(error)['msg']}")
    return {**result, "failed": bool(problems), "msg": "; ".join(problems)}


def forget(root: str, *, live: bool = False, check_mode: bool = False) -> Result:
    """Undoes all that `apply` did: unit and configuration away, target speeds as they were before.

    Under a bound driver the link is not trained anew: it may go up when it next changes speed by itself.
    The restore point goes only when everything is back.
    """
    bus = open_bus(root)
    try:
        entries = link_pin_restore.load(root)
        there = [
            path for path in (link_pin_unit.UNIT_FILE, CONFIG) if durable.content(root, path) is not None
        ]
        kept = {port: entry for port, entry in entries.items() if not gone(bus, entry.pin)}
        back = {port: entry for port, entry in kept.items() if bus.read(port).target_gen() != entry.target}
        if back and not check_mode:
            _unlocked(root)
        if live:
            _idle(root, [port for port in back if link_pin_users.drivers(root, port)])
    except Refused as refusal:
        return _result(failed=True, msg=str(refusal), hint=refusal.hint)
    except _PROBLEMS as error:
        return _failed(error, "nothing was changed: ")
    if not entries and not there:
        return _result(msg="nodeprep has pinned nothing here")
    old = {port: bus.read(port).target_gen() for port in back}
    diff = {
        "before": "".join(
            [*(f"{port} target Gen{old[port]}\n" for port in back), *(f"{path}: present\n" for path in there)]
        ),
        "after": "".join(
            [
                *(f"{port} target Gen{entry.target}\n" for port, entry in back.items()),
                *(f"{path}: absent\n" for path in there),
            ]
        ),
    }
    result = _result(changed=bool(back or there), diff=diff)
    if check_mode:
        return result
    notes = [f"{port} is no longer there to be restored" for port in entries if port not in kept]
    problems = []
    try:
        link_pin_unit.remove(root)
    except _PROBLEMS as error:
        return {**result, **_failed(error), "diff": diff, "changed": True}
    for port, entry in back.items():
        try:
            notes.extend(_put_back(bus, entry, live))
        except _PROBLEMS as error:
            problems.append(f"{port}: {_failed(error)['msg']}")
    if not problems:
        try:
            link_pin_restore.forget(root)
        except OSError as error:
            problems.append(describe(error))
    return {**result, "failed": bool(problems), "msg": "; ".join([*problems, *notes])}


def _goals(bus: Bus, gen: int, gpus: Sequence[str]) -> List[Goal]:
    """The links with how they stand.

    Raises:
        Refused: One cannot be pinned to this generation.
        OSError, ValueError, NotSupported: One cannot be read.
    """
    if isinstance(gen, bool) or not isinstance(gen, int) or not 1 <= gen <= 6:
        raise Refused(f"generation {gen!r} is no PCIe generation", "1 to 6")
    try:
        config = link_pin_unit.configured(bus.root)
    except ValueError:
        config = None  # it is written anew
    pins = find_pins(bus, gpus, config)
    if not pins:
        raise Refused("there is no GPU on the PCI bus whose link could be pinned")
    entries = link_pin_restore.load(bus.root)
    goals, problems = [], []
    for pin in pins:
        state = _read(bus, pin)
        highest = link_pin_restore.ceiling(entries, pin, state.target)
        problem = port_problem(bus.read(pin.port))
        if not problem and gen not in state.common:
            can = ", ".join(f"Gen{one}" for one in state.common)
            problem = f"and {pin.gpu} can do {can} together, not Gen{gen}"
        if not problem and gen > highest:
            problem = _held(state)
        problems.extend([f"{pin.port} {problem}"] if problem else [])
        goals.append(Goal(pin, state, link_pin_users.drivers(bus.root, pin.port), gen))
    if problems:
        raise Refused("nothing was changed: " + "; ".join(problems))
    return goals


def _read(bus: Bus, pin: Pin) -> LinkState:
    """How a link stands; a register that makes no sense is told with its place.

    Raises:
        Refused: It cannot be read.
    """
    try:
        return look(bus, pin.port, pin.gpu)
    except (OSError, ValueError, NotSupported) as error:
        why = describe(error) if isinstance(error, OSError) else str(error)
        raise Refused(
            f"nothing was changed: the link of {pin.gpu} below {pin.port} cannot be read: {why}"
        ) from error


def _held(state: LinkState) -> str:
    return f"is held at Gen{state.target}, and not by nodeprep: firmware or the kernel had a reason"


def _files(root: str, config: Config, node_pyz: Optional[str], check_mode: bool) -> FileChanges:
    why = link_pin_unit.obstacle(root, node_pyz, program_to_come=check_mode)
    if why:
        hint = OBSTACLE_HINT if "file system" in why else ""
        raise Refused(f"nothing was changed: the pin would be lost at the next boot: {why}", hint)
    return link_pin_unit.files(root, config, str(node_pyz))


def _guard(root: str, now: Sequence[Goal]) -> None:
    _unlocked(root)
    _idle(root, [goal.pin.port for goal in now if goal.drivers])


def _unlocked(root: str) -> None:
    mode = lockdown(root)
    if mode not in ("", "none"):
        # The unit could not write at boot either.
        raise Refused(f"nothing was changed: kernel lockdown is in force ({mode})", LOCKDOWN_HINT)


def _idle(root: str, ports: Sequence[str]) -> None:
    users = link_pin_users.processes(root) if ports else ()
    if users:
        raise Refused(
            f"nothing was changed: GPUs are in use by {', '.join(users)}",
            "stop them first: a link that is trained under a running GPU can lose it",
        )


def _train(bus: Bus, goal: Goal) -> LinkState:
    set_target(bus, goal.pin.port, goal.gen)
    retrain(bus, goal.pin.port)
    return confirm(bus, goal.pin.port, goal.pin.gpu, goal.state, goal.gen)


def _pin_again(bus: Bus, pin: Pin, gen: int) -> Dict[str, Any]:
    why = gone(bus, pin)
    if why:
        raise Refused(
            f"{pin.port}, pinned to Gen{gen}, {why}", "run the role pcie_link again after a rebuild"
        )
    try:
        state = look(bus, pin.port, pin.gpu)
    except (OSError, ValueError, NotSupported) as error:
        set_target(bus, pin.port, gen)
        raise Refused(
            f"{pin.port} is pinned to Gen{gen}, but its GPU {pin.gpu} is not there: {error}"
        ) from error
    if gen > link_pin_restore.ceiling(link_pin_restore.load(bus.root), pin, state.target):
        raise Refused(f"{pin.port} {_held(state)}, lower than the pin", HELD_HINT)
    goal = Goal(pin, state, link_pin_users.drivers(bus.root, pin.port), gen)
    if goal.due and not goal.drivers:
        state = _train(bus, goal)
    elif goal.due:
        # Harmless by itself: a link only goes faster by training, and then no faster than this.
        set_target(bus, pin.port, gen)
        if state.fastest > gen:
            raise Refused(
                f"the link of {pin.gpu} stays at Gen{state.fastest}: {', '.join(goal.drivers)} had it first",
                INITRAMFS_HINT,
            )
        state = look(bus, pin.port, pin.gpu)
    return _entry(goal, state, pending=False)


def _put_back(bus: Bus, entry: link_pin_restore.Entry, live: bool) -> List[str]:
    """Gives a port its old target; what is left to be said."""
    pin = entry.pin
    try:
        state = look(bus, pin.port, pin.gpu)
    except (OSError, ValueError, NotSupported) as error:
        set_target(bus, pin.port, entry.target)
        return [f"{pin.port} has its old target, its link was not trained: {error}"]
    set_target(bus, pin.port, entry.target)
    drivers = link_pin_users.drivers(bus.root, pin.port)
    if drivers and not live:
        return [f"the link of {pin.gpu} goes back up when it next trains: {' and '.join(drivers)} has it"]
    retrain(bus, pin.port)
    confirm(bus, pin.port, pin.gpu, state, entry.target)
    return []


def _seen_after(bus: Bus, goals: Sequence[Goal], error: BaseException) -> List[Dict[str, Any]]:
    entries = []
    for goal in goals:
        try:
            state = look(bus, goal.pin.port, goal.pin.gpu)
            entries.append({**_entry(goal, state, pending=False), "in_effect": False, "problem": str(error)})
        except (OSError, ValueError, NotSupported) as problem:
            entries.append(
                {"gpu": goal.pin.gpu, "port": goal.pin.port, "in_effect": False, "problem": str(problem)}
            )
    return entries


def _entry(goal: Goal, state: LinkState, *, pending: bool) -> Dict[str, Any]:
    return {
        "gpu": goal.pin.gpu,
        "port": goal.pin.port,
        "wanted_gen": goal.gen or None,
        "before_target_gen": goal.state.target,
        "target_gen": state.target,
        "before_gen": goal.state.gen,
        "gen": state.gen,
        "gpu_gen": state.gpu_gen,
        "width_lanes": state.width,
        "drivers": list(goal.drivers),
        "pending_reboot": pending,
        "in_effect": bool(goal.gen) and state.target == goal.gen and state.fastest <= goal.gen,
        "problem": "",
    }


def _pending_words(waiting: Sequence[Goal]) -> str:
    if not waiting:
        return ""
    gpus = ", ".join(goal.pin.gpu for goal in waiting)
    return f"pending reboot: a driver has {gpus}; the unit pins their links at the next boot, before it loads"


def _diff(now: Sequence[Goal], files: FileChanges, *, enable: bool, start: bool) -> Dict[str, str]:
    before = [f"{goal.pin.port} target Gen{goal.state.target}" for goal in now]
    after = [f"{goal.pin.port} target Gen{goal.gen}" for goal in now]
    for path in files:
        before.append(f"{path}: absent or different")
        after.append(f"{path}: as nodeprep writes it")
    if enable or start:
        before.append(f"{UNIT}: not enabled, or to be started again")
        after.append(f"{UNIT}: enabled")
    return {
        "before": "".join(f"{line}\n" for line in before),
        "after": "".join(f"{line}\n" for line in after),
    }


def _failed(error: BaseException, prefix: str = "", after: str = "") -> Result:
    words = (
        str(error)
        if isinstance(error, (TrainingError, WriteForbidden, UnitError, NotSupported))
        else describe(error)
    )
    hint = getattr(error, "hint", "")
    if isinstance(error, TrainingError) and "not effective" in words:
        hint = IGNORED_HINT
    return _result(failed=True, msg=f"{prefix}{words}{after}", hint=hint)


def _result(**values: Any) -> Result:
    base: Result = {
        "changed": False,
        "failed": False,
        "msg": "",
        "hint": "",
        "diff": {"before": "", "after": ""},
        "links": [],
        "pending_reboot": False,
        "persisted": False,
        "rolled_back": [],
        "left_behind": [],
    }
    return {**base, **values}
