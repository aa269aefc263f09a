"""Simulated BMCs on real sockets: TLS, keep-alive, and connections that break."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sim_bmc_client import BIOS, PASSWORD, REGISTRY, RESET, ROOT, SYSTEM, USER, tree

from nodeprep.cli.main import invoke
from nodeprep.errors import ExitCode, UsageError
from nodeprep.sim.bmc import FAULTS, Dump, Served, SimulatedBmc, Tls, serve_many, serving, tls_in
from nodeprep.sim.bmc.server import listen


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return tls_in(tmp_path_factory.mktemp("tls"))


@contextmanager
def client(served: Served, tls: Tls, **options: object) -> Iterator[httpx.Client]:
    trust = ssl.create_default_context(cafile=tls.ca)
    with httpx.Client(base_url=served.url, auth=(USER, PASSWORD), verify=trust, timeout=5, **options) as made:  # type: ignore[arg-type]
        yield made


@contextmanager
def one(tls: Tls, *faults: str, post_s: float = 0.0) -> Iterator[tuple[httpx.Client, SimulatedBmc]]:
    bmc = SimulatedBmc(Dump(tree()), user=USER, password=PASSWORD, faults=faults, post_s=post_s)
    with serving([bmc], tls=tls) as (served,), client(served, tls) as spoken:
        yield spoken, bmc


def test_a_change_over_tls(tls: Tls) -> None:
    with one(tls) as (spoken, _bmc):
        assert spoken.get(ROOT).json()["Oem"]["Nodeprep"]["Simulated"] is True
        staged = spoken.patch(f"{BIOS}/Settings", json={"Attributes": {"Iommu": "Disabled"}})
        assert staged.status_code == 200
        assert spoken.post(RESET, json={"ResetType": "ForceRestart"}).status_code == 204
        assert spoken.get(BIOS).json()["Attributes"]["Iommu"] == "Disabled"
        assert spoken.head(BIOS).text == ""


def test_nobody_is_trusted_without_the_authority(tls: Tls) -> None:
    with one(tls) as (spoken, _bmc), pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"{spoken.base_url}{ROOT}")


def test_the_fingerprint_is_the_one_of_the_served_certificate(tls: Tls) -> None:
    import hashlib

    with one(tls) as (spoken, _bmc):
        port = spoken.base_url.port
        assert port is not None
        pem = ssl.get_server_certificate(("127.0.0.1", port))
        assert hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest() == tls.fingerprint


def test_certificates_stay_the_same_in_their_folder(tls: Tls) -> None:
    again = tls_in(tls.ca.parent)
    assert (again.fingerprint, again.ca.read_bytes()) == (tls.fingerprint, tls.ca.read_bytes())


def test_one_connection_carries_many_requests(tls: Tls) -> None:
    with one(tls) as (spoken, _bmc):
        streams = [spoken.get(SYSTEM).extensions["network_stream"] for _ in range(5)]
        assert len({stream.get_extra_info("client_addr") for stream in streams}) == 1


def test_compressed_registries_can_be_read(tls: Tls) -> None:
    with one(tls, "gzip") as (spoken, _bmc):
        answer = spoken.get(REGISTRY, headers={"Accept-Encoding": "identity"})
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.json()["RegistryEntries"]


def test_rst_at_the_second_request(tls: Tls) -> None:
    with one(tls, "rst") as (spoken, _bmc):
        assert spoken.get(SYSTEM).status_code == 200
        with pytest.raises(httpx.TransportError):
            spoken.get(SYSTEM)
        assert spoken.get(SYSTEM).status_code == 200


def test_rst_is_one_and_not_a_close() -> None:
    # Without TLS, whose library hides which of the two it was.
    bmc = SimulatedBmc(Dump(tree()), user=USER, password=PASSWORD, faults=("rst",))
    request = f"GET {ROOT} HTTP/1.1\r\n\r\n".encode()
    with serving([bmc], tls=None) as (served,), socket.create_connection(("127.0.0.1", served.port)) as raw:
        raw.sendall(request)
        assert raw.recv(100_000).startswith(b"HTTP/1.1 200")
        raw.sendall(request)
        with pytest.raises(ConnectionResetError):
            raw.recv(1)


def test_dropped_half_and_closed(tls: Tls) -> None:
    with one(tls, "drop") as (spoken, _bmc):
        spoken.get(SYSTEM)
        spoken.get(SYSTEM)
        with pytest.raises(httpx.RemoteProtocolError):
            spoken.get(SYSTEM)
    with one(tls, "half") as (spoken, _bmc):
        spoken.get(SYSTEM)
        spoken.get(SYSTEM)
        with pytest.raises(httpx.RemoteProtocolError, match="without sending complete"):
            spoken.get(SYSTEM)
    with one(tls, "close") as (spoken, _bmc):
        assert spoken.get(SYSTEM).headers["Connection"] == "close"


def test_hang_and_slow(tls: Tls) -> None:
    with one(tls, "hang") as (spoken, _bmc), pytest.raises(httpx.ReadTimeout):
        spoken.get(ROOT, timeout=0.3)
    with one(tls, "slow") as (spoken, _bmc):
        before = time.monotonic()
        assert spoken.get(ROOT).status_code == 200
        assert time.monotonic() - before >= 2


def test_quotes_twice_survive_the_wire(tls: Tls) -> None:
    with one(tls, "etag_double") as (spoken, _bmc):
        assert spoken.get(f"{BIOS}/Settings").headers["ETag"] == '""100""'


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /" + b"x" * 40_000,
    ],
)
def test_what_is_no_request_is_refused_and_hurts_nobody(sent: bytes) -> None:
    bmc = SimulatedBmc(Dump(tree()), user=USER, password=PASSWORD)
    with serving([bmc], tls=None) as (served,):
        with socket.create_connection(("127.0.0.1", served.port), timeout=5) as raw:
            raw.sendall(sent)
            assert raw.recv(100).startswith(b"HTTP/1.1 ")
        assert httpx.get(f"{served.url}{ROOT}").status_code == 200


def test_requests_in_pieces_and_two_at_once() -> None:
    bmc = SimulatedBmc(Dump(tree()), user=USER, password=PASSWORD)
    request = f"GET {ROOT} HTTP/1.1\r\nHost: bmc\r\n\r\n".encode()
    with serving([bmc], tls=None) as (served,), socket.create_connection(("127.0.0.1", served.port)) as raw:
        raw.settimeout(5)
        raw.sendall(request[:10])
        time.sleep(0.05)
        raw.sendall(request[10:] + request)
        found = b""
        while found.count(b"HTTP/1.1 200 OK") < 2:
            found += raw.recv(100_000)


def test_many_bmcs_share_a_dump_and_keep_to_themselves(tls: Tls) -> None:
    with serve_many([Dump(tree())], 40, tls=tls, user=USER, password=PASSWORD) as served:
        assert len({one.port for one in served}) == 40

        def stage(number: int) -> str:
            with client(served[number], tls) as spoken:
                spoken.patch(f"{BIOS}/Settings", json={"Attributes": {"BusNumber": number}})
                return str(spoken.get(SYSTEM).json()["SerialNumber"])

        with ThreadPoolExecutor(4) as pool:
            serials = list(pool.map(stage, range(0, 40, 4)))
        assert serials == [f"SIM{number:05d}" for number in range(0, 40, 4)]
        waiting = [one.bmc.state.settings.waiting.get("BusNumber") for one in served]
        # 7 is in force already.
        assert waiting == [number if number % 4 == 0 else None for number in range(40)]


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port}"):
            listen(1, port)


# ---- the command ------------------------------------------------------------------------------------


def start(folder: Path, *options: str, password: str | None = PASSWORD) -> subprocess.Popen[str]:
    dump = folder / "dump.json"
    dump.write_text(json.dumps(tree()))
    environment = {name: value for name, value in os.environ.items() if name != "NODEPREP_BMC_PASSWORD"}
    if password:
        environment["NODEPREP_BMC_PASSWORD"] = password
    command = [sys.executable, "-m", "nodeprep.cli", "sim", "bmc", "--dump", str(dump), *options]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def test_the_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["sim", "bmc", "--list-faults"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(FAULTS)
    assert invoke(["sim", "bmc", "--list-faults", "--json"]) == ExitCode.OK
    assert set(json.loads(capsys.readouterr().out)["faults"]) == set(FAULTS)


@pytest.mark.parametrize(
    "arguments", [[], ["--dump", "/nonexistent"], ["--dump", __file__], ["--dump", "DUMP", "--fault", "drpo"]]
)
def test_what_cannot_be_served_is_refused(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(tree()))
    given = [str(dump) if word == "DUMP" else word for word in arguments]
    assert invoke(["sim", "bmc", *given]) == ExitCode.USAGE
    assert "hint:" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_says_where_and_ends_when_told(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, "--tls-folder", str(tmp_path / "tls"), "--fault", "etag_star")
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert (ready["user"], ready["faults"], ready["simulated"]) == ("admin", ["etag_star"], True)
        assert ready["ca"] == str(tmp_path / "tls" / "bmc-ca.pem")
        trust = ssl.create_default_context(cafile=ready["ca"])
        with httpx.Client(verify=trust, auth=(USER, PASSWORD)) as spoken:
            assert spoken.get(f"{ready['url']}{SYSTEM}").status_code == 200
            # With a connection open. It takes 0.3 s; a machine that is busy with other things takes its time.
            busy = os.getloadavg()[0] > (os.cpu_count() or 1)
            process.send_signal(number)
            assert process.wait(timeout=60.0 if busy else 2.0) == 130
    finally:
        process.kill()
        out, err = process.communicate()
    assert (out, err) == ("", "")


def test_a_password_is_made_up_and_shown_once(tmp_path: Path) -> None:
    process = start(tmp_path, "--json", "--quiet", "--plain-http", password=None)
    try:
        assert process.stderr is not None
        password = process.stderr.readline().removeprefix("password: ").strip()
        assert len(password) >= 12
        assert process.stdout is not None
        document = "".join(iter(process.stdout.readline, "}\n")) + "}"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    finally:
        process.kill()
    assert json.loads(document)["ca"] == ""
    assert (out, err) == ("", "")
    assert password not in document
