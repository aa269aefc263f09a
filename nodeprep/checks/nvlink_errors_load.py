"""No NVLink went down or counted an error while data went over it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._counters import growth_where_counted
from nodeprep.checks._peers import links_of, of_peers, without_nvlink
from nodeprep.model.probe_peers import Peers
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

LIMIT = 0
SOURCE = "nodeprep: an accepted link is quiet (see the page)"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU."""
    return of_peers(CHECK, context, _each)


def _each(found: Peers) -> Iterator[CheckResult]:
    for address in found.gpus:
        places = [number for number, around in enumerate(found.nvlinks) if around.gpu == address]
        evidence = "probe#/peers/value/nvlinks" + "".join(f"/{number}" for number in places)
        yield CHECK.on(address, evidence, _judge, found, address)


def _judge(found: Peers, address: str) -> CheckResult:
    around = links_of(found, address)
    if without_nvlink(around):
        return CHECK.result("SKIPPED", address, f"no NVLink of GPU {address} is up")
    before = around.before.require(f"the NVLinks of GPU {address} before they were used")
    after = around.after.require(f"the NVLinks of GPU {address} after they were used")
    up = before.active.require(f"the state of the NVLinks of GPU {address} before they were used")
    still_up = after.active.require(f"the state of the NVLinks of GPU {address} after they were used")
    if still_up < up:
        lost = up - still_up
        return _result(False, address, f"{lost} of {up} NVLinks of GPU {address} went down", lost, "links")
    then = {counter.name: counter.count for counter in before.counters}
    now = {counter.name: counter.count for counter in after.counters}
    if then.keys() != now.keys():
        raise Unreadable(f"the NVLink counters of GPU {address} are not the same as before")
    growths = {
        name: growth_where_counted(then[name], now[name], f"the NVLink counter {name} of GPU {address}")
        for name in then
    }
    counted = {name: growth for name, growth in growths.items() if growth is not None}
    if not counted:
        return CHECK.result(
            "SKIPPED", address, f"the driver has none of the NVLink error counters for GPU {address}"
        )
    grown = {name: growth for name, growth in counted.items() if growth}
    words = ", ".join(f"{growth} {name.replace('_', ' ')}" for name, growth in grown.items())
    return _result(
        not grown,
        address,
        f"the NVLinks of GPU {address} counted {words} while data went over them"
        if grown
        else f"none of {len(counted)} error counters of {up} NVLinks of GPU {address} moved",
        sum(grown.values()),
        "errors",
    )


def _result(good: bool, address: str, reason: str, measured: int, unit: str) -> CheckResult:
    return CHECK.result(
        "PASS" if good else "FAIL", address, reason, measured=measured, limit=LIMIT, unit=unit, source=SOURCE
    )


CHECK = Check(
    id="nvlink_errors_load",
    title="no NVLink errors while data goes over them",
    phase="load",
    explains=("nvlinks_load",),
    evaluate=evaluate,
    tolerates={
        "peers/nvlinks/*/count": "no part has all counters; before and after must agree on which it has",
    },
)
