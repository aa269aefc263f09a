"""Whether GPU power settings come back after a reboot; NVML forgets them with the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from nodeprep.knobs import gpu_power_limit
from nodeprep.knobs._knob import Knob
from nodeprep.model.facts import GpuPowerUnit, NodeFacts
from nodeprep.model.plan import Change
from nodeprep.model.spec import NodeSpec

# What the node takes for "the unit sets no limit"; nothing at all would leave the one it has.
NO_LIMIT = "none"

_WHY = "NVML forgets limit and persistence when the driver is unloaded or the node reboots"
_RISKS = ("a unit of nodeprep's runs at every boot: nodeprep-gpu-power.service",)


def _plan(spec: NodeSpec, facts: NodeFacts) -> Iterator[Change]:
    wanted = spec.policy.gpu
    unit = facts.driver.gpu_power_unit
    new = _words(wanted.power_limit or "", wanted.persistence)

    def change(
        status: Literal["ok", "change", "refused", "unsupported", "unknown"], old: str, reason: str = ""
    ) -> Change:
        return Change(
            knob=KNOB.id,
            subject="node",
            status=status,
            old=old,
            new=new,
            why=_WHY,
            reason=reason,
            risks=_RISKS if status == "change" else (),
        )

    if facts.nvml.gpus.value is None:
        # Writing goes through NVML: a driver that does not answer is not asked to change anything.
        yield change("unknown", "unreadable", f"the GPUs could not be read: {facts.nvml.gpus.detail}")
        return
    refused = [one for one in gpu_power_limit.KNOB.plan(spec, facts) if one.status == "refused"]
    if refused:
        yield change("refused", "not looked at", f"the limit itself is refused: {refused[0].reason}")
        return
    if unit.value is None:
        status: Literal["unsupported", "unknown"] = (
            "unsupported" if unit.state == "not_supported" else "unknown"
        )
        yield change(status, "unreadable" if status == "unknown" else "not set at boot", unit.detail)
        return
    yield change("ok" if _holds(unit.value, spec) else "change", _now(unit.value))


def _holds(unit: GpuPowerUnit, spec: NodeSpec) -> bool:
    wanted = spec.policy.gpu
    return unit.enabled and (unit.limit, unit.persistence) == (wanted.power_limit or "", wanted.persistence)


def _now(unit: GpuPowerUnit) -> str:
    return _words(unit.limit, unit.persistence) if unit.enabled else "not set at boot"


def _words(limit: str, persistence: bool | None) -> str:
    words = [f"limit {limit}"] if limit else []
    if persistence is not None:
        words.append(f"persistence {'on' if persistence else 'off'}")
    return ", ".join(words) + " at boot"


def _settings(spec: NodeSpec, _changes: tuple[Change, ...]) -> Mapping[str, Any]:
    wanted = spec.policy.gpu
    return {"gpu_power": {"limit": wanted.power_limit or NO_LIMIT, "persistence": wanted.persistence}}


KNOB = Knob(
    id="gpu_power_boot",
    title="GPU power settings at boot",
    risks=_RISKS,
    needs_reboot=False,
    plan=_plan,
    settings=_settings,
)
