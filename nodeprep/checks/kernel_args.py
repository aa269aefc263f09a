"""The running kernel has the arguments the policy wants, and the next boot will have them too."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.model.facts import NodeFacts
from nodeprep.model.policy import KernelArgs
from nodeprep.model.result import CheckResult
from nodeprep.node.kernel_cmdline import Argument, parse, parse_word


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result: all that is wrong at once, with this boot and with the next."""
    wanted = context.spec.policy.kernel_args
    if not wanted.present and not wanted.absent and not wanted.replace:
        yield CHECK.result("SKIPPED", "node", "the policy asks for no kernel arguments")
        return
    cmdline = context.before.boot.cmdline.require("the kernel command line (/proc/cmdline)")
    wrong = list(_wrong(wanted, cmdline))
    trial = context.before.boot_loader.trial
    if trial.state != "not_supported":
        under_way = trial.require("whether a trial boot is under way")
        wrong.append(
            f"a trial boot ({under_way.id}) is {under_way.phase} and was not ended: apply settles it"
        )
    # What is wrong now is a finding whether or not the boot loader can be read.
    if not wrong:
        permanent = _permanent(context.before)
        wrong = (
            [] if permanent is None else [f"after the next boot {one}" for one in _wrong(wanted, permanent)]
        )
    yield CHECK.result(
        "FAIL" if wrong else "PASS",
        "node",
        "; ".join(wrong)
        if wrong
        else "this boot has what is wanted and nothing that is banned, and so will the next",
        measured=cmdline,
        limit=" ".join([*wanted.present, *wanted.replace, *(f"no:{argument}" for argument in wanted.absent)]),
        source="policy kernel_args",
        evidence=("facts.before#/boot/cmdline", "facts.before#/boot_loader/cmdline"),
    )


def _permanent(facts: NodeFacts) -> str | None:
    """Arguments of the next boot; None where they are kept outside the node, by what serves its boot."""
    if facts.boot_loader.id.state == "not_supported":
        return None
    facts.boot_loader.id.require("the boot loader")
    return facts.boot_loader.cmdline.require("the permanent kernel arguments")


def _wrong(wanted: KernelArgs, cmdline: str) -> Iterator[str]:
    given = parse(cmdline)
    for argument in _arguments(wanted.present):
        yield from _present(argument, given)
    for argument in _arguments(wanted.replace):
        yield from _present(argument, given)
        others = sorted({str(each) for each in given if each.key == argument.key and each != argument})
        if others:
            yield f"{', '.join(others)} is there beside {argument}, which is to be alone"
    for banned in _arguments(wanted.absent):
        for found in dict.fromkeys(each for each in given if each.matches(banned)):
            yield f"{found} must not be there"


def _arguments(words: tuple[str, ...]) -> tuple[Argument, ...]:
    return tuple(argument for word in words for argument in parse_word(word))


def _present(wanted: Argument, given: tuple[Argument, ...]) -> Iterator[str]:
    count = given.count(wanted)
    if count == 0:
        yield f"{wanted} is missing"
    elif count > 1:
        yield f"{wanted} is there {count} times, once wanted"
    against = sorted({str(other) for other in given if other.contradicts(wanted)})
    if against:
        yield f"{', '.join(against)} contradicts {wanted}: the last one wins"
    elif count == 1:
        later = given[given.index(wanted) + 1 :]
        yield from (
            f"{other}, coming later, takes {wanted} away" for other in later if other.overrides(wanted)
        )


CHECK = Check(
    id="kernel_args",
    title="the kernel was started with the wanted arguments",
    phase="static",
    evaluate=evaluate,
    tolerates={
        "boot_loader/trial": "no trial boot is under way, as it should be",
        "boot_loader/id": "where a boot server or an image holds the arguments, this boot speaks for all",
    },
)
