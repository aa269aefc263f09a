"""Whether the tool told each node of a simulated rack right."""

from __future__ import annotations

from collections.abc import Mapping

from nodeprep.model.certificate import Certificate
from nodeprep.model.outputs import Story
from nodeprep.model.result import CheckResult
from nodeprep.sim.conclusion import Conclusion, disagreements
from nodeprep.sim.rack import RackInventory, RackNode

_SHOWN = 3


def check_stories(rack: RackInventory, certificates: Mapping[str, Certificate]) -> tuple[Story, ...]:
    """One story a node, told right only by the right verdict for the right reason and no other.

    Args:
        rack: The rack as it was built.
        certificates: By node name. A node without one is a story told wrong.
    """
    return tuple(_story(node, certificates.get(node.name)) for node in rack.nodes)


def _story(node: RackNode, certificate: Certificate | None) -> Story:
    if certificate is None:
        wrong: tuple[str, ...] = ("there is no certificate for this node",)
    elif certificate.host != node.name:
        wrong = (f"the certificate is about {certificate.host}",)
    else:
        wrong = disagreements(node.conclusion, certificate)
    return Story(
        host=node.name,
        fault=node.title,
        expected=_expected(node.conclusion),
        verdict=certificate.verdict if certificate else "none",
        told_right=not wrong,
        detail=_in_brief(wrong) if wrong or certificate is None else _why(node.conclusion, certificate),
    )


def _in_brief(wrong: tuple[str, ...]) -> str:
    shown = "; ".join(wrong[:_SHOWN])
    return shown if len(wrong) <= _SHOWN else f"{shown}; and {len(wrong) - _SHOWN} more"


def _expected(conclusion: Conclusion) -> str:
    reasons = [str(cause) for cause in conclusion.causes if cause.required]
    return f"{conclusion.verdict}: {'; '.join(reasons)}" if reasons else conclusion.verdict


def _why(conclusion: Conclusion, certificate: Certificate) -> str:
    """The tool's own words on the first reason."""
    for cause in conclusion.causes:
        for result in certificate.checks:
            if cause.required and cause.explains(result):
                return _words(result)
    passed = sum(result.status == "PASS" for result in certificate.checks)
    return f"{passed} results passed, none failed"


def _words(result: CheckResult) -> str:
    return f"{result.id}: {result.reason}"
