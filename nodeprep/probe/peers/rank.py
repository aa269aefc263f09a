"""A rank: the process of one GPU that does what the parent asks, one command at a time."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from typing import Any, Callable, Dict

from ...node import reading
from ..child import Reporter, die_with_parent, explain, stay_near
from ..problem import ProbeError
from .device import Device


def main() -> None:
    """Reads its part from the first line of standard input, commands from the others; never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    spec = json.loads(sys.stdin.readline())
    die_with_parent(spec["parent"])
    reporter = Reporter(spec["descriptor"])
    try:
        _serve(spec, reporter)
    except BrokenPipeError:
        print("the parent is gone", file=sys.stderr)
    # The driver cleans up after a process; the libraries' own teardown can hang on a broken GPU.
    os._exit(0)


def _serve(spec: Dict[str, Any], reporter: Reporter) -> None:
    """Answers every command with a reading, until standard input ends."""
    if spec["backend"] == "torch":
        stay_near(spec["address"])
    device: Any = None
    for line in sys.stdin:
        command = json.loads(line)
        name = command.pop("do")
        try:
            if device is None:
                device = _open(spec, reporter.send)
            answer = reading.ok(_commands(device)[name](**command))
        except ProbeError as error:
            answer = reading.error(error.message)
        except Exception as error:  # whatever it is belongs to this command, and the next may still work
            traceback.print_exc()
            answer = reading.error(explain(error)["error"])
        reporter.send(kind="answer", reading=answer)


def _commands(device: Device) -> Dict[str, Callable[..., Any]]:
    return {
        "open": device.about,
        "host_copies": device.host_copies,
        "pair": device.pair,
        "join": device.join,
        "all_reduce": device.all_reduce,
    }


def _open(spec: Dict[str, Any], tell: Callable[..., None]) -> Device:
    if spec["backend"] == "torch":
        from .cuda import CudaDevice  # noqa: PLC0415 - seconds to import

        return CudaDevice(spec, tell)
    from .simulated import SimulatedDevice  # noqa: PLC0415

    return SimulatedDevice(spec, tell)


if __name__ == "__main__":
    main()
