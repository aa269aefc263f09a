"""ECC of the GPU's memory. Compared only: a change comes with a GPU reset, which this version does not do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodeprep.knobs._gpus import each_gpu
from nodeprep.knobs._knob import Knob
from nodeprep.model.facts import Gpu, NodeFacts
from nodeprep.model.plan import Change
from nodeprep.model.spec import NodeSpec

_WHY = "without ECC a flipped memory bit goes unseen"
_RISKS = ("the new mode takes a GPU reset, which ends every process on the GPU",)


def _plan(spec: NodeSpec, facts: NodeFacts) -> Iterator[Change]:
    on = spec.policy.gpu.ecc
    yield from each_gpu(KNOB.id, facts, wanted=_word(on), why=_WHY, compare=lambda gpu: _compare(gpu, on))


def _compare(gpu: Gpu, on: bool) -> Change:
    def change(status: Any, old: str, reason: str = "", risks: tuple[str, ...] = ()) -> Change:
        return Change(
            knob=KNOB.id,
            subject=gpu.pci_address,
            status=status,
            old=old,
            new=_word(on),
            why=_WHY,
            reason=reason,
            risks=risks,
        )

    if gpu.ecc.enabled.state == "not_supported":
        if not on:
            return change("ok", "not supported")
        return change(
            "unsupported", "not supported", f"this GPU has no ECC to turn on: {gpu.ecc.enabled.detail}"
        )
    now = gpu.ecc.enabled.require("ECC mode")
    if now == on:
        return change("ok", _word(now))
    if gpu.ecc.pending_enabled.value == on:
        return change("unsupported", _word(now), "asked for, and waits for a GPU reset or a reboot", _RISKS)
    return change(
        "unsupported",
        _word(now),
        f"this version does not write it: nvidia-smi -i {gpu.pci_address} -e {int(on)}, then reset the GPU",
        _RISKS,
    )


def _word(on: bool) -> str:
    return "on" if on else "off"


KNOB = Knob(id="gpu_ecc", title="GPU memory ECC", risks=_RISKS, needs_reboot=False, plan=_plan)
