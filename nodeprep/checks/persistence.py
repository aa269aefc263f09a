"""Persistence mode is on, and no daemon was told to keep it off."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu, facts, latest
from nodeprep.model.facts import Driver, Gpu
from nodeprep.model.result import CheckResult

SOURCE = "policy gpu.persistence"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU, and one for the daemon."""
    if not context.spec.policy.gpu.persistence:
        yield CHECK.result("SKIPPED", "node", "the policy does not ask for persistence")
        return
    yield from each_gpu(CHECK, context, "persistence", _judge_gpu)
    which = latest(context)
    yield CHECK.on("node", f"facts.{which}#/driver", _judge_daemon, facts(context, which).driver)


def _judge_gpu(gpu: Gpu) -> CheckResult:
    on = gpu.persistence.require(f"the persistence mode of GPU {gpu.pci_address}")
    return CHECK.result(
        "PASS" if on else "FAIL",
        gpu.pci_address,
        f"persistence mode of GPU {gpu.pci_address} is {'on' if on else 'off'}"
        + ("" if on else ": its power limit is lost when the last client closes it"),
        measured=on,
        limit=True,
        source=SOURCE,
    )


def _judge_daemon(driver: Driver) -> CheckResult:
    running = driver.persistenced_running.require("whether nvidia-persistenced runs")
    if not running:
        return CHECK.result(
            "PASS",
            "node",
            "nvidia-persistenced does not run: persistence is the legacy mode, to be set at each boot",
            measured="no daemon",
            limit="no daemon with --no-persistence-mode",
            source=SOURCE,
        )
    disabled = driver.persistenced_no_persistence_mode.require("the command line of nvidia-persistenced")
    return CHECK.result(
        "FAIL" if disabled else "PASS",
        "node",
        "nvidia-persistenced runs with --no-persistence-mode (Ubuntu's packaged unit does that): it is "
        "active and persistence is off; replace its ExecStart"
        if disabled
        else "nvidia-persistenced runs and holds persistence mode",
        measured="with --no-persistence-mode" if disabled else "holds persistence mode",
        limit="no daemon with --no-persistence-mode",
        source=SOURCE,
    )


CHECK = Check(
    id="persistence",
    title="persistence is truly on",
    phase="static",
    evaluate=evaluate,
)
