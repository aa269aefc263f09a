"""TLS to a BMC: whom it is believed to be."""

from __future__ import annotations

import functools
import hashlib
import ssl

from nodeprep.bmc.redfish.errors import NotTrusted
from nodeprep.bmc.target import TlsTrust
from nodeprep.errors import UsageError


@functools.cache
def tls_context(trust: TlsTrust) -> ssl.SSLContext:
    """A context for all BMCs of the same trust: reading a machine's authorities costs 15 ms each time.

    Raises:
        UsageError: The file of certificates cannot be read.
    """
    if trust.insecure or trust.fingerprint:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if trust.ca is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=str(trust.ca))
    except OSError as error:
        # Covers ssl.SSLError: a file that holds no certificate.
        reason = error.strerror or str(error)
        raise UsageError(
            f"cannot read certificates from {trust.ca}: {reason}", hint="a file in PEM format"
        ) from error


def check_fingerprint(pinned: str, certificate: bytes | None, who: str) -> None:
    """Compares the certificate that was shown with the pinned one, before anything is sent.

    Args:
        pinned: SHA-256 in 64 lower-case hexadecimal digits; "" pins nothing.
        certificate: In DER.

    Raises:
        NotTrusted: It is another one.
    """
    if not pinned:
        return
    shown = hashlib.sha256(certificate or b"").hexdigest()
    if certificate is None or shown != pinned:
        raise NotTrusted(
            f"the {who} shows a certificate other than the pinned one: SHA-256 {shown}",
            hint="was its certificate renewed? Compare on the BMC itself before you pin the new one",
        )
