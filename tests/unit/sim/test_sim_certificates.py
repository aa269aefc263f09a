"""Certificates of simulated BMCs that several servers share."""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path

_MAKE = "import sys, pathlib; from nodeprep.sim.certificates import tls_in; tls_in(pathlib.Path(sys.argv[1]))"


def test_servers_that_start_at_once_share_one_authority(tmp_path: Path) -> None:
    started = [subprocess.Popen([sys.executable, "-c", _MAKE, str(tmp_path)]) for _ in range(4)]
    assert [one.wait(60) for one in started] == [0, 0, 0, 0]
    trusted = ssl.create_default_context(cafile=str(tmp_path / "bmc-ca.pem"))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "bmc-server.pem")
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusted.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    host = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (client, host):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.getpeercert()["issuer"] == ((("commonName", "nodeprep simulated BMCs"),),)  # type: ignore[index]
