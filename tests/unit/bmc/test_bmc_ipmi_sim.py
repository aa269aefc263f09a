"""Power and event log against a real BMC simulator."""

from __future__ import annotations

import dataclasses
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeprep.bmc import (
    BmcLoginRefused,
    BmcRefused,
    BmcTarget,
    BmcUnreachable,
    ConsoleLog,
    Evidence,
    Marks,
    OutOfBand,
    connect,
    for_all,
    gather,
    power_cycle_to_recover,
    set_marks,
)
from nodeprep.bmc.ipmi.session import IpmiSession
from nodeprep.bmc.password import ENVIRONMENT
from nodeprep.errors import ApplyFailed, Interrupted
from nodeprep.model.codec import decode, encode
from tests.unit.bmc.ipmi_sim import PASSWORD, Bmc, Relay

Conversations = Callable[[], list[str]]


def test_power_on_and_off(bmc: Bmc) -> None:
    with connect(bmc.target) as controller:
        assert not controller.power_state().on
        assert controller.set_power("on")
        assert bmc.host_runs()
        assert controller.power_state().on
        assert controller.set_power("off")
        end = time.monotonic() + 10
        while controller.power_state().on and time.monotonic() < end:
            time.sleep(0.2)
        assert not controller.power_state().on


def test_a_cycle_gives_another_host_process_and_is_sent_once(bmc: Bmc) -> None:
    bmc.ipmitool("chassis", "power", "on")
    first = bmc.host_runs()
    recovery = power_cycle_to_recover(bmc.target)
    assert recovery.was_on
    assert recovery.actions == ("cycle",)
    assert recovery.acknowledged
    assert bmc.host_runs() not in (0, first)
    assert len(bmc.starts()) == 2


def test_recovery_switches_on_what_is_off(bmc: Bmc) -> None:
    recovery = power_cycle_to_recover(bmc.target)
    assert not recovery.was_on
    assert recovery.actions == ("on",)
    assert len(bmc.starts()) == 1
    assert str(recovery).startswith("power was off; power on; on after ")


def test_recovery_goes_by_off_and_on_where_the_bmc_refuses_the_action(bmc: Bmc) -> None:
    # ipmi_sim refuses a reset as long as no machine is on its serial line.
    bmc.ipmitool("chassis", "power", "on")
    first = bmc.host_runs()
    recovery = power_cycle_to_recover(bmc.target, method="reset")
    assert recovery.actions == ("off", "on")
    assert recovery.seen_off
    assert bmc.host_runs() not in (0, first)


def test_recovery_that_is_not_verified_fails_and_says_what_it_saw(
    bmc: Bmc, monkeypatch: pytest.MonkeyPatch
) -> None:
    bmc.ipmitool("chassis", "power", "on")
    assert bmc.host_runs()
    send = IpmiSession.command_once

    def send_and_die(session: IpmiSession, netfn: int, command: int, data: list[int]) -> bool:
        acknowledged = send(session, netfn, command, data)
        bmc.freeze()
        return acknowledged

    monkeypatch.setattr(IpmiSession, "command_once", send_and_die)
    with pytest.raises(ApplyFailed, match=r"was not seen on within 2 s \(sent: cycle; last seen: .*answer"):
        power_cycle_to_recover(bmc.target, verify_s=2.0)


def test_recovery_does_not_repeat_a_refused_login(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    logins: list[BmcTarget] = []

    def connect_once(target: BmcTarget, **options: Any) -> Any:
        logins.append(target)
        wrong = dataclasses.replace(target, password="changed")
        return connect(target if len(logins) == 1 else wrong, **options)

    monkeypatch.setattr("nodeprep.bmc.recovery.connect", connect_once)
    with pytest.raises(ApplyFailed, match=r"refused the password .* \(sent: on; "):
        power_cycle_to_recover(bmc.target)
    assert len(logins) == 2


@pytest.mark.parametrize("action", ["cycle", "reset"])
def test_cycle_and_reset_of_a_host_that_is_off_are_refused(bmc: Bmc, action: str) -> None:
    with connect(bmc.target) as controller, pytest.raises(BmcRefused, match="power is off"):
        controller.set_power(action)  # type: ignore[arg-type]
    assert bmc.starts() == []


def test_a_command_that_the_bmc_refuses_is_told_with_its_code(bmc: Bmc) -> None:
    bmc.ipmitool("chassis", "power", "on")
    with connect(bmc.target) as controller, pytest.raises(BmcRefused, match="Invalid data field") as caught:
        controller.set_power("reset")
    assert caught.value.code == 0xCC


def test_identity(bmc: Bmc) -> None:
    with connect(bmc.target) as controller:
        identity = controller.identity()
    assert identity.maker == 0x1291
    assert identity.product == 0x0F02
    assert identity.firmware == "9.08"
    assert identity.guid == "a1234567-89ab-cdef-a123-456789abcdef"


def test_wrong_password(bmc: Bmc) -> None:
    wrong = dataclasses.replace(bmc.target, password="not-the-one")
    with (
        pytest.raises(BmcLoginRefused, match="refused the password of user 'admin'") as caught,
        connect(wrong),
    ):
        pass
    assert "not-the-one" not in f"{caught.value!r} {caught.value.hint} {caught.value.__cause__!r}"


def test_wrong_user(bmc: Bmc) -> None:
    wrong = dataclasses.replace(bmc.target, user="nobody")
    with pytest.raises(BmcLoginRefused, match="has no user 'nobody'"), connect(wrong):
        pass


def test_the_password_is_in_no_argument_and_no_environment(
    bmc: Bmc, conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, PASSWORD)
    with connect(bmc.target) as controller:
        assert controller.power_state() is not None
        (one,) = conversations()
        assert PASSWORD not in one
        assert ENVIRONMENT not in one
    assert conversations() == []


def test_a_port_where_nobody_listens() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        free = taken.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(BmcUnreachable, match="does not answer"), connect(_nobody(free)):
        pass
    assert time.monotonic() - began < 20


def test_a_silent_port_costs_no_more_than_the_connect_time(silent_port: int) -> None:
    began = time.monotonic()
    with (
        pytest.raises(BmcUnreachable, match="lost at login: no answer in time"),
        connect(_nobody(silent_port), connect_s=1.0),
    ):
        pass
    assert time.monotonic() - began < 10


def test_a_bmc_that_stops_answering_costs_no_more_than_the_operation_time(
    bmc: Bmc, conversations: Conversations
) -> None:
    with connect(bmc.target, operation_s=2.0) as controller:
        assert not controller.power_state().on
        bmc.freeze()
        began = time.monotonic()
        with pytest.raises(BmcUnreachable, match="no answer in time"):
            controller.power_state()
        assert time.monotonic() - began < 9
        assert conversations() == []
        with pytest.raises(BmcUnreachable, match="the session is over"):
            controller.power_state()


def test_a_question_is_repeated_when_its_packet_is_lost_and_a_power_command_is_not(
    bmc: Bmc, relay: Relay
) -> None:
    target = dataclasses.replace(bmc.target, port=relay.port)
    sent = {}
    for kind in ("once", "repeated"):
        with IpmiSession(target, operation_s=3.0) as session:
            relay.lose, relay.sent = True, 0
            if kind == "once":
                assert session.command_once(0x00, 0x02, [1]) is False
            with pytest.raises(BmcUnreachable):
                session.command(0x00, 0x01)
            sent[kind] = relay.sent
        relay.lose = False
    assert sent["once"] == 1
    assert sent["repeated"] > 1
    assert bmc.starts() == []


def test_a_cycle_that_was_lost_on_the_way_is_sent_again(
    bmc: Bmc, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = dataclasses.replace(bmc.target, port=relay.port)
    bmc.ipmitool("chassis", "power", "on")
    first = bmc.host_runs()
    send = IpmiSession.command_once
    lost: list[int] = []

    def lose_the_first(session: IpmiSession, netfn: int, command: int, data: list[int]) -> bool:
        relay.lose = not lost
        lost.append(command)
        acknowledged = send(session, netfn, command, data)
        relay.lose = False
        return acknowledged

    monkeypatch.setattr("nodeprep.bmc.ipmi.session.ONCE_S", 1.0)
    monkeypatch.setattr(IpmiSession, "command_once", lose_the_first)
    recovery = power_cycle_to_recover(target)
    assert recovery.actions == ("cycle", "cycle")
    assert not recovery.acknowledged
    assert bmc.host_runs() not in (0, first)
    assert len(bmc.starts()) == 2


def test_breaking_off_from_another_thread(bmc: Bmc, conversations: Conversations) -> None:
    cancelled = threading.Event()
    with connect(bmc.target, cancelled=cancelled) as controller:
        bmc.freeze()
        threading.Timer(0.5, cancelled.set).start()
        began = time.monotonic()
        with pytest.raises(Interrupted):
            controller.power_state()
        assert time.monotonic() - began < 9
    assert conversations() == []


def test_ctrl_c_ends_many_conversations_at_once(silent_port: int) -> None:
    program = textwrap.dedent(f"""
        from nodeprep.bmc import BmcTarget, connect, for_all
        def ask(target, cancelled):
            with connect(target, cancelled=cancelled) as bmc:
                return bmc.power_state()
        target = BmcTarget("dead", "ipmi", "127.0.0.1", {silent_port}, "a", "b")
        print("begun", flush=True)
        for_all(dict.fromkeys(range(6), target), ask, workers=3)
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(1.0)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_a_controller_that_is_killed_leaves_no_conversation(bmc: Bmc) -> None:
    program = textwrap.dedent(f"""
        import time
        from nodeprep.bmc.ipmi.session import IpmiSession
        from nodeprep.bmc import BmcTarget
        import sys
        target = BmcTarget("n", "ipmi", "127.0.0.1", {bmc.port}, "admin", sys.stdin.readline().rstrip())
        with IpmiSession(target) as session:
            print(session._process.pid, flush=True)
            time.sleep(60)
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(PASSWORD + "\n")
    process.stdin.flush()
    child = int(process.stdout.readline())
    assert Path(f"/proc/{child}").exists()
    process.kill()
    process.wait()
    end = time.monotonic() + 5
    while _runs(child) and time.monotonic() < end:
        time.sleep(0.1)
    assert not _runs(child)


def test_many_at_once_and_a_dead_one_among_them(bmc: Bmc, silent_port: int) -> None:
    targets = {f"node{number:02}": bmc.target for number in range(4)} | {"dead": _nobody(silent_port)}

    def ask(target: BmcTarget, cancelled: threading.Event) -> bool:
        with connect(target, cancelled=cancelled, connect_s=3.0) as controller:
            return controller.power_state().on

    answers = for_all(targets, ask)
    assert list(answers) == list(targets)
    dead = answers.pop("dead")
    assert isinstance(dead, BmcUnreachable)
    assert set(answers.values()) == {False}


def test_the_event_log_since_a_mark(bmc: Bmc) -> None:
    with connect(bmc.target) as controller:
        empty = controller.log_mark()
        assert controller.log_since(empty).entries == ()
        bmc.add_event("0xa7 0x01 0x08")
        mark = controller.log_mark()
        assert controller.log_since(mark).entries == ()
        bmc.add_event()
        news = controller.log_since(mark)
        assert len(controller.log_since(empty).entries) == 2
    (entry,) = news.entries
    assert news.note == ""
    assert entry.text == "Critical interrupt 0x02: Bus fatal error (asserted, data aa 03 00)"
    assert entry.time.endswith("s after the BMC's start")
    assert entry.raw.endswith("20000413026faa0300")


def test_an_event_log_that_was_cleared_after_the_mark_says_so(bmc: Bmc) -> None:
    bmc.add_event("0xa7 0x01 0x08")
    with connect(bmc.target) as controller:
        mark = controller.log_mark()
        bmc.add_event("0xa8 0x01 0x08")
        # The BMC's clock counts seconds, also for the time of the last erasure.
        time.sleep(1.1)
        bmc.ipmitool("sel", "clear")
        cleared = controller.log_since(mark)
        bmc.add_event()
        refilled = controller.log_since(mark)
    assert cleared.entries == ()
    assert cleared.note == "the log was cleared after the mark; what it recorded before that is lost"
    assert [entry.text for entry in refilled.entries] == [
        "Critical interrupt 0x02: Bus fatal error (asserted, data aa 03 00)"
    ]
    assert refilled.note == cleared.note


def test_an_event_log_that_is_full_says_so(make_bmc: Callable[..., Bmc]) -> None:
    bmc = make_bmc(log_entries=2)
    with connect(bmc.target) as controller:
        mark = controller.log_mark()
        bmc.add_event()
        bmc.add_event()
        with pytest.raises(AssertionError):
            bmc.add_event()
        news = controller.log_since(mark)
    assert len(news.entries) == 2
    assert news.note == "the log is full and the BMC drops new entries"


def test_evidence_of_a_node_that_hangs(bmc: Bmc, tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text("old boot\n")
    ways = OutOfBand(bmc.target, ConsoleLog(log))
    bmc.ipmitool("chassis", "power", "on")
    assert bmc.host_runs()
    marks = set_marks(ways)
    bmc.add_event()
    with log.open("a") as file:
        file.write("Kernel panic - not syncing: No working init found.\r\n")
    evidence = gather(ways, decode(encode(marks), Marks, source="marks"))
    assert decode(encode(evidence), Evidence, source="evidence") == evidence
    assert evidence.power.require("power").on
    (entry,) = evidence.log.require("log").entries
    assert str(entry).endswith("Bus fatal error (asserted, data aa 03 00)")
    said = evidence.console.require("console").text
    assert said == "Kernel panic - not syncing: No working init found."


def test_evidence_when_the_bmc_is_dead_and_there_is_no_console(silent_port: int) -> None:
    ways = OutOfBand(_nobody(silent_port), None)
    marks = set_marks(ways)
    assert marks.log.state == "error"
    evidence = gather(ways, marks)
    assert evidence.power.state == evidence.log.state == "error"
    assert "does not answer" in evidence.power.detail
    assert evidence.console.state == "not_supported"
    assert evidence.console.detail == "not configured: nodeprep_console_log names no console log"


def _nobody(port: int) -> BmcTarget:
    return BmcTarget("dead", "ipmi", "127.0.0.1", port, "admin", "x")


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
