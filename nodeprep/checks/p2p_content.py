"""What a GPU writes into another one's memory is what arrives there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._peers import from_source, of_peers
from nodeprep.model.probe_peers import Peers
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU: the copies that it sent."""
    return of_peers(CHECK, context, _each)


def _each(found: Peers) -> Iterator[CheckResult]:
    for address in found.gpus:
        yield CHECK.on(address, "probe#/peers/value/pairs", partial(_judge, found), address)


def _judge(found: Peers, address: str) -> CheckResult:
    pairs = from_source(found, address)
    unseen = [pair.target for pair in pairs if pair.content_checks == 0]
    changed = [pair for pair in pairs if pair.content_errors]
    if unseen and not changed:
        raise Unreadable(f"no copy from GPU {address} to {', '.join(unseen)} was compared with what was sent")
    errors = sum(pair.content_errors for pair in changed)
    checks = sum(pair.content_checks for pair in pairs)
    to = ", ".join(f"{pair.target} ({pair.content_errors} of {pair.content_checks})" for pair in changed)
    return CHECK.result(
        "FAIL" if changed else "PASS",
        address,
        f"copies from GPU {address} arrived changed at {to}: a link or a GPU's memory alters data"
        if changed
        else f"all {checks} compared copies from GPU {address} to {len(pairs)} others arrived as sent",
        measured=errors,
        limit=0,
        unit="changed copies",
        source="nodeprep: no silent corruption is acceptable",
    )


CHECK = Check(
    id="p2p_content",
    title="copies between GPUs arrive unchanged",
    phase="load",
    evaluate=evaluate,
)
