"""The next boot makes GPU power and persistence what the policy wants, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import facts, latest
from nodeprep.model.facts import Driver, GpuPowerUnit
from nodeprep.model.result import CheckResult

SOURCE = "policy gpu.power_limit and gpu.persistence"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for the node. A limit in effect now says nothing of the next boot, either way."""
    gpu, which = context.spec.policy.gpu, latest(context)
    driver = facts(context, which).driver
    nothing_wanted = gpu.power_limit is None and not gpu.persistence
    if nothing_wanted and driver.gpu_power_unit.state == "not_supported":
        yield CHECK.result("SKIPPED", "node", _NOTHING)
        return
    unit = driver.gpu_power_unit.require("what sets GPU power at boot")
    if nothing_wanted and not (unit.enabled and unit.limit):
        yield CHECK.result("SKIPPED", "node", _NOTHING)
        return
    # At boot the unit sets limits through NVML; where that does not answer now, nothing is shown.
    facts(context, which).nvml.gpus.require("the GPU list of NVML")
    yield _judge(unit, driver, _plain(gpu.power_limit), gpu.persistence, which)


_NOTHING = "the policy names no power limit and asks for no persistence, so a reboot loses nothing"


def _judge(unit: GpuPowerUnit, driver: Driver, limit: str, persistence: bool, which: str) -> CheckResult:
    wrong = [_limit_fault(unit, limit), _persistence_fault(unit, driver) if persistence else ""]
    faults = "; ".join(fault for fault in wrong if fault)
    sets = _plain(unit.limit) if unit.enabled else ""
    return CHECK.result(
        "FAIL" if faults else "PASS",
        "node",
        faults or f"every boot sets {_words(limit, persistence)}",
        measured=_words(sets, _persistent(unit, driver)),
        limit=_words(limit, persistence),
        source=SOURCE,
        evidence=(f"facts.{which}#/driver/gpu_power_unit",),
    )


def _limit_fault(unit: GpuPowerUnit, wanted: str) -> str:
    sets = _plain(unit.limit) if unit.enabled else ""
    if sets == wanted:
        return ""
    if not wanted:
        return f"the next boot sets the limit {sets} although the policy names none"
    if not unit.enabled:
        return f"nothing sets the limit {wanted} at boot: the next reboot loses it"
    return f"the next boot sets {'the limit ' + sets if sets else 'no limit'}, not {wanted}"


def _persistence_fault(unit: GpuPowerUnit, driver: Driver) -> str:
    if _persistent(unit, driver):
        return ""
    return (
        "nothing turns persistence on at boot: neither nodeprep's unit nor an nvidia-persistenced without "
        "--no-persistence-mode"
    )


def _persistent(unit: GpuPowerUnit, driver: Driver) -> bool:
    if unit.enabled and unit.persistence:
        return True
    if not driver.persistenced_running.require("whether nvidia-persistenced runs"):
        return False
    return not driver.persistenced_no_persistence_mode.require("the command line of nvidia-persistenced")


def _plain(limit: str | None) -> str:
    # "650 W" and "650W" are one limit.
    return (limit or "").replace(" ", "")


def _words(limit: str, persistence: bool) -> str:
    return f"{'limit ' + limit if limit else 'no limit'}{', persistence' if persistence else ''}"


CHECK = Check(
    id="power_boot", title="power settings come back after a reboot", phase="static", evaluate=evaluate
)
