"""POST to actions: resets of the host and the BMC, defaults, giving up what waits."""

from __future__ import annotations

from collections.abc import Callable

from nodeprep.sim.bmc.dump import plain
from nodeprep.sim.bmc.host import HostRefused
from nodeprep.sim.bmc.jobs import BIOS_JOB
from nodeprep.sim.bmc.messages import Message, Refused
from nodeprep.sim.bmc.staging import body_of
from nodeprep.sim.bmc.state import State
from nodeprep.sim.bmc.tree import Tree
from nodeprep.sim.bmc.wire import Request, Response


class Actions:
    """The actions of one BMC, found by the targets that its resources name."""

    def __init__(self, state: State, tree: Tree) -> None:
        self._state = state
        self._tree = tree
        self._base = state.conduct.base
        dump = state.dump
        found = (
            (_target(dump.body(dump.system), "#ComputerSystem.Reset"), self._reset_host),
            (dump.system and f"{dump.system}/Actions/ComputerSystem.Reset", self._reset_host),
            (_target(dump.body(dump.manager), "#Manager.Reset"), self._reset_bmc),
            (tree.bios and _target(dump.body(dump.bios), "#Bios.ResetBios"), self._reset_bios),
            (
                tree.settings and f"{tree.settings}/Actions/Oem/DellManager.ClearPending"
                if tree.job_places
                else None,
                self._clear,
            ),
        )
        self._actions: dict[str, Callable[[Request], None]] = {
            plain(target).lower(): action for target, action in found if target
        }

    def known(self, path: str) -> bool:
        """Whether a path is an action."""
        return plain(path).lower() in self._actions

    def run(self, path: str, request: Request) -> Response:
        """Do it.

        Raises:
            Refused: It is not done.
        """
        if "if-match" in request.headers:
            # Source: stmcginnis/gofish#510, an action has no ETag, so nothing can match.
            text = "The ETag supplied did not match the ETag required to change this resource."
            raise Refused(412, (Message(f"{self._base}.PreconditionFailed", text),))
        self._actions[plain(path).lower()](request)
        return Response(204)

    def _reset_host(self, request: Request) -> None:
        state = self._state
        kind = body_of(request, self._base).get("ResetType")
        allowed = self._tree.resets()
        if not isinstance(kind, str) or kind not in allowed:
            text = f"The parameter ResetType takes one of {', '.join(allowed)}, not {kind!r}."
            key = "ActionParameterMissing" if kind is None else "ActionParameterNotSupported"
            raise Refused(400, (Message(f"{self._base}.{key}", text, ("ResetType", "Reset")),))
        if state.conduct.power.refused:
            raise self._state_refused("resets are refused")
        try:
            state.host.reset(kind)
        except HostRefused as refused:
            raise self._state_refused(str(refused)) from None
        state.logs.add(f"Reset of the host: {kind}.", MessageId=f"{self._base}.ResetHost", MessageArgs=[kind])
        if kind != "Nmi":
            state.ready_at = state.clock() + state.conduct.ready.not_ready_s

    def _state_refused(self, why: str) -> Refused:
        conduct = self._state.conduct
        text = f"The operation cannot be done in the present state of the system: {why}."
        if conduct.vendor in ("hpe", "hpe_ilo4"):
            return Refused(400, (Message(f"{conduct.oem}.InvalidOperationForSystemState", text),))
        if conduct.vendor == "dell":
            return Refused(409, (Message(f"{conduct.oem}.PSU501", text),))
        return Refused(409, (Message(f"{conduct.base}.ResourceInUse", text),))

    def _reset_bmc(self, _request: Request) -> None:
        self._state.restart_bmc()

    def _reset_bios(self, _request: Request) -> None:
        self._state.settings.fall_back(self._state.next_boot)

    def _clear(self, _request: Request) -> None:
        if self._state.jobs.open(BIOS_JOB) is not None:
            text = "Unable to clear the values: a configuration job is scheduled or running."
            raise Refused(400, (Message(f"{self._state.conduct.oem}.SYS012", text),))
        self._state.settings.clear()


def _target(body: dict[str, object], name: str) -> str:
    actions = body.get("Actions")
    action = actions.get(name) if isinstance(actions, dict) else None
    target = action.get("target") if isinstance(action, dict) else None
    return target if isinstance(target, str) else ""
