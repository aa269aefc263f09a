"""Persistence mode: the driver keeps the GPU initialised when nobody uses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.knobs._gpus import each_gpu
from nodeprep.knobs._knob import Knob
from nodeprep.model.facts import Gpu, NodeFacts
from nodeprep.model.plan import Change
from nodeprep.model.spec import NodeSpec

_WHY_ON = "without it the driver forgets the power limit when the last user of a GPU ends"
_WHY_OFF = "the policy asks for persistence off"
_RISKS_OFF = ("the power limit and locked clocks are lost when the last user of a GPU ends",)


def _plan(spec: NodeSpec, facts: NodeFacts) -> Iterator[Change]:
    on = spec.policy.gpu.persistence
    yield from each_gpu(
        KNOB.id,
        facts,
        wanted=_word(on),
        why=_WHY_ON if on else _WHY_OFF,
        compare=lambda gpu: _compare(gpu, on, facts),
    )


def _compare(gpu: Gpu, on: bool, facts: NodeFacts) -> Change:
    now = gpu.persistence.require("persistence mode")
    return Change(
        knob=KNOB.id,
        subject=gpu.pci_address,
        status="ok" if now == on else "change",
        old=_word(now),
        new=_word(on),
        why=_WHY_ON if on else _WHY_OFF,
        risks=() if now == on else _risks(on, facts),
    )


def _risks(on: bool, facts: NodeFacts) -> tuple[str, ...]:
    if not on:
        return _RISKS_OFF
    if facts.driver.persistenced_no_persistence_mode.value:
        # Ubuntu's packaged unit: "active", and persistence is off all the same.
        return ("nvidia-persistenced runs with --no-persistence-mode and will not keep it over a reboot",)
    return ()


def _word(on: bool) -> str:
    return "on" if on else "off"


def _settings(spec: NodeSpec, _changes: tuple[Change, ...]) -> Mapping[str, Any]:
    return {"gpu_power": {"persistence": spec.policy.gpu.persistence}}


KNOB = Knob(
    id="gpu_persistence",
    title="GPU persistence mode",
    risks=_RISKS_OFF,
    needs_reboot=False,
    plan=_plan,
    settings=_settings,
)
