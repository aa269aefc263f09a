"""GPU power limit: what management software asks of the board, in watts or per cent of its default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.knobs._gpus import each_gpu
from nodeprep.knobs._knob import Knob
from nodeprep.model.facts import Gpu, GpuPower, NodeFacts
from nodeprep.model.plan import Change
from nodeprep.model.power import is_share, limit_w
from nodeprep.model.spec import NodeSpec

# NVML speaks milliwatts; a percentage of a default seldom comes out on one that boards keep exactly.
_SAME_W = 1.0

_WHY = "less power draws less heat and smaller load steps through board and power supply"
_RISKS = ("compute throughput falls with the limit; the probe measures by how much",)


def _plan(spec: NodeSpec, facts: NodeFacts) -> Iterator[Change]:
    asked = spec.policy.gpu.power_limit
    if asked is None:
        return
    yield from each_gpu(
        KNOB.id, facts, wanted=asked, why=_WHY, compare=lambda gpu: _compare(gpu, asked, spec)
    )


def _compare(gpu: Gpu, asked: str, spec: NodeSpec) -> Change:
    power = gpu.power
    wanted_w = _wanted_w(asked, power)
    set_w = power.limit_w.require("power limit")
    low_w, high_w = power.min_w.require("lowest power limit"), power.max_w.require("highest power limit")
    new = f"{wanted_w:g} W" + (f" ({asked} of {power.default_w.value:g})" if asked.endswith("%") else "")

    def change(status: Any, reason: str = "", risks: tuple[str, ...] = ()) -> Change:
        return Change(
            knob=KNOB.id,
            subject=gpu.pci_address,
            status=status,
            old=f"{set_w:g} W",
            new=new,
            why=_WHY,
            reason=reason,
            risks=risks,
        )

    if not low_w <= wanted_w <= high_w:
        return change("refused", f"the board allows {low_w:g} to {high_w:g} W")
    if abs(set_w - wanted_w) > _SAME_W:
        return change("change", risks=_RISKS + _loss_risks(spec))
    enforced_w = power.enforced_w.require("enforced power limit")
    if abs(enforced_w - set_w) > _SAME_W:
        return change(
            "unsupported",
            f"asked for, and the board obeys {enforced_w:g} W: something outside the operating system "
            "caps it, most often the BMC",
        )
    return change("ok")


def _wanted_w(asked: str, power: GpuPower) -> float:
    return limit_w(asked, power.default_w.require("default power limit") if is_share(asked) else 0.0)


def _loss_risks(spec: NodeSpec) -> tuple[str, ...]:
    if spec.policy.gpu.persistence:
        return ()
    return ("without persistence the limit is lost when the last user of the GPU ends",)


def _settings(spec: NodeSpec, _changes: tuple[Change, ...]) -> Mapping[str, Any]:
    return {"gpu_power": {"limit": spec.policy.gpu.power_limit}}


KNOB = Knob(
    id="gpu_power_limit",
    title="GPU power limit",
    risks=_RISKS,
    needs_reboot=False,
    plan=_plan,
    settings=_settings,
)
