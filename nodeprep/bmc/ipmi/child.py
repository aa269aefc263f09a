"""The process that speaks IPMI: one BMC, one session, orders in and answers out as lines of JSON.

Run by path with a bare interpreter, not imported: `python -P child.py`. Only this file knows pyghmi.
A process of its own, since pyghmi has one event loop for all sessions of a process, retries for half a
minute against a BMC that went silent, and cannot be told to stop. The first order is the login (the
password comes through the pipe; it is in no argument and no environment), each other one a command.
The end of standard input ends the process at once, also in the middle of a command: an owner that was
killed leaves no conversation behind.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from typing import Any

Order = dict[str, Any]
Answer = dict[str, Any]


def main() -> None:
    """Serves one conversation."""
    # pyghmi prints some of its troubles; standard output is for answers alone.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()
    session, answer = _log_in(orders.get())
    _tell(answers, answer)
    while session is not None:
        order = orders.get()
        if order.get("end"):
            session.logout()
            break
        _tell(answers, _sensors(session) if order.get("sensors") else _carry_out(session, order))
    # Not sys.exit: pyghmi's thread would be waited for.
    os._exit(0)


def _listen(orders: queue.SimpleQueue[Order]) -> None:
    for line in sys.stdin.buffer:
        orders.put(json.loads(line))
    os._exit(0)


def _tell(answers: Any, answer: Answer) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _log_in(order: Order) -> tuple[Any, Answer]:
    try:
        from pyghmi.ipmi.private.session import Session  # noqa: PLC0415
    except ImportError as error:
        return None, {"failed": "import", "words": str(error)}
    try:
        session = Session(
            bmc=order["address"], userid=order["user"], password=order["password"], port=order["port"]
        )
    # pyghmi raises what it meets: IpmiException without a text when nothing answers, errors of socket
    # and struct, KeyError on a malformed packet.
    except Exception as error:
        return None, {"failed": "login", "words": _words(error)}
    if not session.logged:
        return None, {"failed": "login", "words": "no session"}
    return session, {}


def _carry_out(session: Any, order: Order) -> Answer:
    ask = _send_once if order["once"] else _ask
    try:
        response = ask(session, order)
    except Exception as error:
        return {"failed": "command", "words": _words(error)}
    if response is None:
        return {"failed": "unanswered", "words": ""}
    if response.get("code") == 0xFFFF:
        return {"failed": "command", "words": str(response.get("error", "timeout"))}
    code = response["code"]
    return {"code": code, "words": _code_words(response), "data": bytes(response["data"]).hex()}


def _ask(session: Any, order: Order) -> Any:
    return session.raw_command(netfn=order["netfn"], command=order["command"], data=order["data"])


def _sensors(session: Any) -> Answer:
    """Every sensor of the BMC's repository (SDR), as pyghmi reads it, over the session that is open."""
    from pyghmi.ipmi.command import Command  # noqa: PLC0415

    class Asker(Command):  # type: ignore[misc]
        def __init__(self) -> None:
            self.ipmi_session = session
            self.bmc = session.bmc
            self._sdr = self._oem = self._sdrcachedir = None
            self._oemknown = False

    asker: Any = Asker()
    found = []
    try:
        asker.init_sdr()
        for number in asker._sdr.get_sensor_numbers():
            found.append(_sensor(asker, asker._sdr.sensors[number]))
    except Exception as error:
        return {"failed": "command", "words": _words(error)}
    return {"sensors": found}


def _sensor(asker: Any, sensor: Any) -> Answer:
    about = {"name": sensor.sensor_name, "type": str(sensor.sensor_type)}
    got = asker.raw_command(netfn=4, command=0x2D, rslun=sensor.sensor_lun, data=(sensor.sensor_number,))
    if "error" in got:
        return {**about, "code": got.get("code", 0xFFFF), "words": str(got["error"])}
    reading = sensor.decode_sensor_reading(asker, got["data"])
    return {
        **about,
        "value": reading.value,
        "units": str(reading.units or ""),
        "unavailable": bool(reading.unavailable),
        "health": int(reading.health or 0),
    }


def _send_once(session: Any, order: Order) -> Any:
    """One packet and no second: a power cycle whose answer is late would be repeated by a retry."""
    got: list[Any] = []

    def told(response: Any) -> None:
        got.append(response)
        # What raw_command does at its end when there is no callback.
        session.incommand = False
        while session.evq:
            session.evq.popleft().set()

    session.raw_command(
        netfn=order["netfn"], command=order["command"], data=order["data"], retry=False, callback=told
    )
    end = time.monotonic() + order["seconds"]
    while not got and time.monotonic() < end:
        session.wait_for_rsp(timeout=max(0.0, end - time.monotonic()))
    return got[0] if got else None


def _code_words(response: Any) -> str:
    from pyghmi.ipmi.private.util import get_ipmi_error  # noqa: PLC0415

    return str(get_ipmi_error(response) or "")


def _words(error: Exception) -> str:
    text = str(error)
    # IpmiException(None) is pyghmi's way to say that nothing answered.
    if text in ("", "None"):
        return ""
    return text if type(error).__name__ == "IpmiException" else f"{type(error).__name__}: {text}"


if __name__ == "__main__":
    main()
