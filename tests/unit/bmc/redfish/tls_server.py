"""A TLS server on the loopback that does what a test says, connection by connection."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import ipaddress
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nodeprep.bmc.target import BmcTarget, TlsTrust

Behaviour = Callable[["Peer", int], None]
ROOT = b'{"RedfishVersion": "1.15.0", "Systems": {"@odata.id": "/redfish/v1/Systems"}}'


@dataclass
class Peer:
    """The server's end of one connection."""

    stream: ssl.SSLSocket
    heard: list[bytes]

    def request(self) -> bytes:
        """One request without its body; empty at the end."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = self.stream.recv(65536)
            if not piece:
                return b""
            data += piece
        self.heard.append(data)
        return data

    def answer(self, body: bytes = b"{}", head: bytes = b"") -> None:
        length = f"Content-Length: {len(body)}\r\n".encode()
        self.stream.sendall(b"HTTP/1.1 200 OK\r\n" + length + head + b"\r\n" + body)

    def serve(self) -> None:
        """Answers with the service root until the end."""
        while self.request():
            self.answer(ROOT)

    def reset(self) -> None:
        """Ends the connection with RST."""
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket.close(self.stream)


@dataclass
class TlsServer:
    port: int
    certificate: Path
    fingerprint: str
    heard: list[bytes]

    def target(self, **trust: object) -> BmcTarget:
        return BmcTarget("node01", "redfish", "127.0.0.1", self.port, "admin", "s", TlsTrust(**trust))  # type: ignore[arg-type]


@contextlib.contextmanager
def serving(folder: Path, behave: Behaviour = lambda peer, _: peer.serve()) -> Iterator[TlsServer]:
    """A server; `behave` gets each connection and its number, from 0."""
    certificate, key, fingerprint = _certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            for number in range(1000):
                try:
                    raw, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(raw, number), daemon=True).start()

        def one(raw: socket.socket, number: int) -> None:
            with (
                contextlib.suppress(OSError, ValueError),
                context.wrap_socket(raw, server_side=True) as stream,
            ):
                behave(Peer(stream, heard), number)

        threading.Thread(target=accept, daemon=True).start()
        yield TlsServer(listener.getsockname()[1], certificate, fingerprint, heard)


def _certificate(folder: Path) -> tuple[Path, Path, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bmc")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "bmc.pem", folder / "bmc.key"
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    digest = hashlib.sha256(signed.public_bytes(serialization.Encoding.DER)).hexdigest()
    return certificate, private, digest
