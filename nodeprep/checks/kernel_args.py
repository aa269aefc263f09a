"""The running kernel was started with the arguments the policy wants, and without those it bans."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.model.kernel_cmdline import Argument, parse, parse_word
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result: all that is wrong with /proc/cmdline at once."""
    wanted = context.spec.policy.kernel_args
    if not wanted.present and not wanted.absent:
        yield CHECK.result("SKIPPED", "node", "the policy asks for no kernel arguments")
        return
    cmdline = context.before.boot.cmdline.require("the kernel command line (/proc/cmdline)")
    given = parse(cmdline)
    wrong = [
        problem for word in wanted.present for each in parse_word(word) for problem in _present(each, given)
    ]
    wrong += [
        problem for word in wanted.absent for each in parse_word(word) for problem in _absent(each, given)
    ]
    yield CHECK.result(
        "FAIL" if wrong else "PASS",
        "node",
        "; ".join(wrong) if wrong else "the command line has what is wanted and nothing that is banned",
        measured=cmdline,
        limit=" ".join([*wanted.present, *(f"no:{argument}" for argument in wanted.absent)]),
        source="policy kernel_args",
        evidence=("facts.before#/boot/cmdline",),
    )


def _present(wanted: Argument, given: tuple[Argument, ...]) -> Iterator[str]:
    count = given.count(wanted)
    if count == 0:
        yield f"{wanted} is missing"
    elif count > 1:
        yield f"{wanted} is there {count} times, once wanted"
    against = sorted({str(other) for other in given if other.contradicts(wanted)})
    if against:
        yield f"{', '.join(against)} contradicts {wanted}: the last one wins"


def _absent(banned: Argument, given: tuple[Argument, ...]) -> Iterator[str]:
    for found in dict.fromkeys(each for each in given if each.matches(banned)):
        yield f"{found} must not be there"


CHECK = Check(
    id="kernel_args",
    title="the kernel was started with the wanted arguments",
    phase="static",
    evaluate=evaluate,
)
