"""The power limit that is wanted is the one requested, and the one the board obeys."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu
from nodeprep.model.facts import Gpu
from nodeprep.model.power import is_share, limit_w
from nodeprep.model.result import CheckResult

# NVML sets milliwatts, people and roles set whole watts, and a percentage need not come out even.
TOLERANCE_W = 1.0


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU."""
    wanted = context.spec.policy.gpu.power_limit

    def judge(gpu: Gpu) -> CheckResult:
        return _judge(gpu, wanted)

    yield from each_gpu(CHECK, context, "power", judge)


def _judge(gpu: Gpu, wanted: str | None) -> CheckResult:
    power, address = gpu.power, gpu.pci_address
    # Field 192 is missing on older drivers; the management limit is then what was requested.
    asked = power.limit_w if power.requested_w.state == "not_supported" else power.requested_w
    requested = asked.require(f"the requested power limit of GPU {address}")
    enforced = power.enforced_w.require(f"the enforced power limit of GPU {address}")
    # A limit that nobody wants is one that somebody forgot; 300 W on every board makes a slow rack.
    limit = _watts(gpu, wanted or "100%")
    source = f"policy gpu.power_limit ({wanted})" if wanted else "the board's default; the policy names none"
    if abs(requested - limit) > TOLERANCE_W and not wanted:
        measured = requested
        reason = (
            f"GPU {address} is asked for {requested:g} W, its default is {limit:g} W, and the policy names "
            "no limit: if this one is meant, name it as gpu.power_limit"
        )
    elif abs(requested - limit) > TOLERANCE_W:
        measured = requested
        reason = f"GPU {address} is asked for {requested:g} W, {limit:g} W wanted{_range(gpu, limit)}"
        if enforced < min(requested, limit) - TOLERANCE_W:
            # Apply takes a limit back that the board does not obey, so this is what is left to be seen.
            reason += f"; the board obeys {enforced:g} W whatever it is asked: something caps it from outside"
    elif abs(enforced - requested) > TOLERANCE_W:
        measured = enforced
        reason = (
            f"GPU {address} enforces {enforced:g} W although {requested:g} W are requested: something "
            "outside the operating system caps it (BMC, board, or power-supply budget)"
        )
    else:
        measured = enforced
        reason = f"GPU {address} enforces {enforced:g} W as requested" + (" and wanted" if wanted else "")
    return CHECK.result(
        "PASS" if max(abs(requested - limit), abs(enforced - requested)) <= TOLERANCE_W else "FAIL",
        address,
        reason,
        measured=measured,
        limit=limit,
        unit="W",
        source=source,
    )


def _watts(gpu: Gpu, wanted: str) -> float:
    if not is_share(wanted):
        return limit_w(wanted, 0.0)
    return limit_w(wanted, gpu.power.default_w.require(f"the default power limit of GPU {gpu.pci_address}"))


def _range(gpu: Gpu, limit: float) -> str:
    """Why the wanted limit cannot be had, when the board's own range says so."""
    low, high = gpu.power.min_w.value, gpu.power.max_w.value
    if low is None or high is None or low <= limit <= high:
        return ""
    return f", which is outside the board's range of {low:g} W to {high:g} W"


CHECK = Check(
    id="power_limit",
    title="power limit requested = enforced = wanted",
    phase="static",
    evaluate=evaluate,
    explains=("probe_power", "probe_performance"),
    tolerates={
        "nvml/gpus/*/power/requested_w": "older drivers lack field 192; the management limit stands in for it"
    },
)
