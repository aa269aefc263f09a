"""A certificate authority for simulated BMCs, and a server certificate for their web services."""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import ipaddress
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAYS = 365
AUTHORITY = "bmc-ca.pem"
SERVER = "bmc-server.pem"


@dataclass(frozen=True, slots=True)
class Tls:
    """What a client needs to trust a simulated BMC, and the server to be one.

    Attributes:
        ca: File with the authority's certificate.
        fingerprint: SHA-256 of the server's certificate, in lower-case hexadecimal digits.
    """

    ca: Path
    fingerprint: str
    context: ssl.SSLContext


def tls_in(folder: Path) -> Tls:
    """The certificates in a folder; made when there are none, with mode 0600 for the key."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Several servers that start at once must not mix one's authority with another's certificate.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if not (folder / SERVER).exists():
            write_certificates(folder)
    finally:
        os.close(descriptor)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder / SERVER)
    der = ssl.PEM_cert_to_DER_cert(_first_certificate((folder / SERVER).read_text()))
    return Tls(folder / AUTHORITY, hashlib.sha256(der).hexdigest(), context)


def write_certificates(folder: Path) -> None:
    """Write the authority's certificate, and the server's certificate and key (mode 0600) in one file.

    The authority's key is thrown away: it signs once.
    """
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("nodeprep simulated BMCs")
    authority = (
        _certificate(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    server = (
        _certificate(_name("127.0.0.1"), authority_name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / AUTHORITY).write_bytes(authority.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    descriptor = os.open(folder / SERVER, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as made:
        made.write(server.public_bytes(pem) + private)


def _first_certificate(pem: str) -> str:
    end = "-----END CERTIFICATE-----"
    return pem[: pem.index(end) + len(end)]


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
