"""Real sockets and real TLS: whom a BMC is believed to be, and how long it is waited for."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest
from tls_server import ROOT, Peer, serving

from nodeprep.bmc import BmcTarget, BmcUnreachable
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import AnswerLost, NotTrusted
from nodeprep.bmc.target import TlsTrust
from nodeprep.errors import Interrupted, UsageError

URI = "/redfish/v1/"


def talk(target: BmcTarget, **options: object) -> Connection:
    return Connection(target, login="basic", **options)  # type: ignore[arg-type]


def test_by_default_an_unknown_certificate_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with (
        serving(tmp_path) as server,
        pytest.raises(NotTrusted, match="cannot be believed") as caught,
        talk(server.target()),
    ):
        pass
    assert server.heard == []
    assert "fingerprint" in caught.value.hint


def test_a_certificate_that_the_named_authority_vouches_for(tmp_path: Path) -> None:
    with serving(tmp_path) as server, talk(server.target(ca=server.certificate)) as connection:
        assert connection.root.get(str, "RedfishVersion") == "1.15.0"
        assert connection.trust == f"certificate verified by {server.certificate}"


def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        named = BmcTarget("n", "redfish", "localhost", server.port, "a", "s", TlsTrust(ca=server.certificate))
        with pytest.raises(NotTrusted), talk(named):
            pass
    assert server.heard == []


def test_the_pinned_certificate_and_no_other(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with talk(server.target(fingerprint=server.fingerprint)) as connection:
            assert connection.trust == f"pinned certificate {server.fingerprint}"
        heard = len(server.heard)
        with pytest.raises(NotTrusted, match=server.fingerprint), talk(server.target(fingerprint="0" * 64)):
            pass
        assert len(server.heard) == heard


def test_insecure_is_said(tmp_path: Path) -> None:
    with serving(tmp_path) as server, talk(server.target(insecure=True)) as connection:
        assert "insecure" in connection.trust


def test_a_file_without_certificates_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    for name in ("empty.pem", "none.pem"):
        target = BmcTarget("n", "redfish", "127.0.0.1", 1, "a", "s", TlsTrust(ca=tmp_path / name))
        with pytest.raises(UsageError, match="cannot read certificates"), talk(target):
            pass


def test_bug_35_a_reset_on_the_second_use_is_tried_again(tmp_path: Path) -> None:
    def behave(peer: Peer, number: int) -> None:
        peer.request()
        peer.answer(ROOT)
        peer.request()
        if number == 0:
            peer.reset()
            return
        peer.answer()

    with serving(tmp_path, behave) as server, talk(server.target(insecure=True)) as connection:
        told = connection.patch("/redfish/v1/x", {"a": 1})
    assert told.after_lost_answer
    assert [data.split(b" ", 1)[0] for data in server.heard] == [b"GET", b"PATCH", b"PATCH"]


def test_one_connection_is_kept_for_all_requests_and_an_action_gets_its_own(tmp_path: Path) -> None:
    numbers: list[int] = []

    def behave(peer: Peer, number: int) -> None:
        while peer.request():
            numbers.append(number)
            peer.answer(ROOT)

    with serving(tmp_path, behave) as server, talk(server.target(insecure=True)) as connection:
        connection.get(URI)
        connection.get(URI)
        connection.post("/redfish/v1/Actions/x", {})
        connection.get(URI)
    assert numbers == [0, 0, 0, 1, 1]


def test_an_action_whose_answer_is_lost_is_not_repeated(tmp_path: Path) -> None:
    def behave(peer: Peer, number: int) -> None:
        while data := peer.request():
            if data.startswith(b"POST"):
                peer.reset()
                return
            peer.answer(ROOT)

    with (
        serving(tmp_path, behave) as server,
        talk(server.target(insecure=True)) as connection,
        pytest.raises(AnswerLost),
    ):
        connection.post("/redfish/v1/Actions/x", {})
    assert sum(data.startswith(b"POST") for data in server.heard) == 1


def test_a_silent_bmc_is_given_up_when_the_time_is_over(tmp_path: Path) -> None:
    def behave(peer: Peer, _: int) -> None:
        peer.request()
        peer.answer(ROOT)
        peer.request()
        time.sleep(30)

    with serving(tmp_path, behave) as server, talk(server.target(insecure=True)) as connection:
        begun = time.monotonic()
        with pytest.raises(BmcUnreachable):
            connection.get(URI, patience_s=1)
        assert time.monotonic() - begun < 15


def test_a_bmc_that_drips_is_given_up_too(tmp_path: Path) -> None:
    def behave(peer: Peer, _: int) -> None:
        peer.request()
        peer.answer(ROOT)
        peer.request()
        peer.stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(300):
            peer.stream.sendall(b" ")
            time.sleep(0.1)

    with serving(tmp_path, behave) as server, talk(server.target(insecure=True)) as connection:
        begun = time.monotonic()
        with pytest.raises(BmcUnreachable):
            connection.get(URI, patience_s=1)
        assert time.monotonic() - begun < 15


@pytest.mark.parametrize("where", ["connect", "handshake", "answer"])
def test_ctrl_c_ends_a_wait_within_a_second(tmp_path: Path, where: str) -> None:
    cancelled = threading.Event()

    def behave(peer: Peer, _: int) -> None:
        peer.request()
        time.sleep(30)

    with serving(tmp_path, behave) as server, socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        target = server.target(insecure=True)
        if where != "answer":
            port = deaf.getsockname()[1]
            target = BmcTarget("n", "redfish", "127.0.0.1", port, "a", "s", TlsTrust(insecure=True))
        fillers = [socket.socket() for _ in range(8 if where == "connect" else 0)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", target.port))
        threading.Timer(0.5, cancelled.set).start()
        begun = time.monotonic()
        with pytest.raises(Interrupted), talk(target, cancelled=cancelled):
            pass
        assert 0.3 < time.monotonic() - begun < 9
        for filler in fillers:
            filler.close()


def test_a_port_where_nobody_listens_is_unreachable(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    target = BmcTarget("n", "redfish", "127.0.0.1", port, "a", "s", TlsTrust(insecure=True))
    with pytest.raises(BmcUnreachable, match="refused"), talk(target, patience_s=1):
        pass


def test_a_name_that_is_none_is_unreachable() -> None:
    target = BmcTarget("n", "redfish", "no-such-bmc.invalid", 443, "a", "s", TlsTrust(insecure=True))
    with pytest.raises(BmcUnreachable, match=r"no-such-bmc\.invalid"), talk(target, patience_s=1):
        pass


def test_what_does_not_speak_tls_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def answer() -> None:
            while True:
                try:
                    peer, _ = plain.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(1000)
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        port = plain.getsockname()[1]
        target = BmcTarget("n", "redfish", "127.0.0.1", port, "a", "s", TlsTrust(insecure=True))
        with pytest.raises(BmcUnreachable, match="no TLS"), talk(target, patience_s=1):
            pass


def test_bug_25_the_logout_goes_out_even_after_ctrl_c(tmp_path: Path) -> None:
    cancelled = threading.Event()

    def behave(peer: Peer, _: int) -> None:
        while data := peer.request():
            login = b"X-Auth-Token: t\r\nLocation: /redfish/v1/SessionService/Sessions/1\r\n"
            peer.answer(ROOT, login if data.startswith(b"POST") else b"")

    def converse(target: BmcTarget) -> None:
        with Connection(target, cancelled=cancelled) as connection:
            cancelled.set()
            connection.get(URI)

    with serving(tmp_path, behave) as server, pytest.raises(Interrupted):
        converse(server.target(insecure=True))
    assert server.heard[-1].startswith(b"DELETE /redfish/v1/SessionService/Sessions/1 ")
