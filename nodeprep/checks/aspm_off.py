"""ASPM is off at both ends of every link on the way to a GPU, where the policy asks for that."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._asked import asked_argument
from nodeprep.checks._check import Check, Context
from nodeprep.checks._hops import LinkEnds, Way, each_link
from nodeprep.model.policy import Policy
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

_ARGUMENTS = ("pcie_aspm=off", "pcie_aspm.policy=performance")


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a link.

    LnkCtl is the effect. `pcie_aspm=off` on the command line is not: it tells the kernel to leave
    ASPM as firmware set it, which may well be on.
    """
    source = _asked(context.spec.policy)
    if not source:
        yield CHECK.result("SKIPPED", "node", "the policy does not ask for ASPM to be off")
        return

    def judge(link: LinkEnds, found: Way) -> CheckResult:
        states = {
            end.address: end.device.link.aspm_enabled.require(f"LnkCtl (ASPM control) of {end.address}")
            for end in link.ends
        }
        enabled = [f"{'+'.join(on)} at {address}" for address, on in states.items() if on]
        if link.upper is None and not enabled:
            raise Unreadable(
                f"ASPM is off at the GPU's own end, but {found.out_of_sight}: LnkCtl of that end is unknown"
            )
        between = " and ".join(states)
        return CHECK.result(
            "FAIL" if enabled else "PASS",
            link.lower.address,
            f"ASPM is on above {link.name}: {', '.join(enabled)}" if enabled else f"ASPM is off at {between}",
            measured=", ".join(enabled) or "off",
            limit="off",
            source=source,
            evidence=tuple(f"{end.where}/link/aspm_enabled" for end in link.ends),
        )

    yield from each_link(CHECK, context, judge)


def _asked(policy: Policy) -> str:
    by_bios = "policy bios.aspm" if policy.bios.aspm == "disabled" else ""
    return asked_argument(policy, _ARGUMENTS) or by_bios


CHECK = Check(
    id="aspm_off",
    title="ASPM is off at both ends of each link",
    phase="static",
    evaluate=evaluate,
)
