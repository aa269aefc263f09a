"""TLS of simulated BMCs: an authority and one server certificate in a folder, made on first use."""

from __future__ import annotations

import hashlib
import ssl
from dataclasses import dataclass
from pathlib import Path

from nodeprep.sim.vm.certificates import AUTHORITY, SERVER, write_certificates


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
    if not (folder / SERVER).exists():
        write_certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder / SERVER)
    der = ssl.PEM_cert_to_DER_cert(_first_certificate((folder / SERVER).read_text()))
    return Tls(folder / AUTHORITY, hashlib.sha256(der).hexdigest(), context)


def _first_certificate(pem: str) -> str:
    end = "-----END CERTIFICATE-----"
    return pem[: pem.index(end) + len(end)]
