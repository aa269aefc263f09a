"""The running kernel was started with the arguments the policy wants, and without those it bans."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from nodeprep.checks._check import Check, Context
from nodeprep.model.result import CheckResult

# Keys whose repetition with other values is normal; for the rest the last one wins, silently.
_REPEATABLE = frozenset({"console", "earlycon", "hugepages", "hugepagesz", "module_blacklist", "pci"})


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result: all that is wrong with /proc/cmdline at once."""
    wanted = context.spec.policy.kernel_args
    if not wanted.present and not wanted.absent:
        yield CHECK.result("SKIPPED", "node", "the policy asks for no kernel arguments")
        return
    cmdline = context.before.boot.cmdline.require("the kernel command line (/proc/cmdline)")
    given = _arguments(cmdline)
    wrong = [problem for argument in wanted.present for problem in _present(argument, given)]
    wrong += [f"{argument} must not be there" for argument in wanted.absent if argument in given]
    yield CHECK.result(
        "FAIL" if wrong else "PASS",
        "node",
        "; ".join(wrong) if wrong else "the command line has what is wanted and nothing that is banned",
        measured=cmdline,
        limit=" ".join([*wanted.present, *(f"no:{argument}" for argument in wanted.absent)]),
        source="policy kernel_args",
        evidence=("facts.before#/boot/cmdline",),
    )


def _arguments(cmdline: str) -> list[str]:
    """The kernel's arguments. What follows "--" is for init; `pci=a,b` counts as `pci=a pci=b` too."""
    given: list[str] = []
    for argument in takewhile(lambda word: word != "--", cmdline.split()):
        given.append(argument)
        key, _, value = argument.partition("=")
        if key == "pci" and "," in value:
            given += [f"pci={option}" for option in value.split(",")]
    return given


def _present(argument: str, given: list[str]) -> Iterator[str]:
    count = given.count(argument)
    if count == 0:
        yield f"{argument} is missing"
    elif count > 1:
        yield f"{argument} is there {count} times, once wanted"
    key, equals, _ = argument.partition("=")
    if equals and key not in _REPEATABLE:
        others = sorted({other for other in given if other.startswith(f"{key}=") and other != argument})
        if others:
            yield f"{', '.join(others)} contradicts {argument}: the last one wins"


CHECK = Check(
    id="kernel_args",
    title="the kernel was started with the wanted arguments",
    phase="static",
    evaluate=evaluate,
)
