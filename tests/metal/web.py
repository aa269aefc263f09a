"""Requests to the Redfish service of a machine, checked against the rack's certificate authority."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from nodeprep.sim.certificates import AUTHORITY
from nodeprep.sim.vm import Vm
from nodeprep.sim.vm.bmc import USER


def request(vm: Vm, method: str, path: str, body: Any = None, *, password: str = "") -> tuple[int, Any]:
    """Status and document; `password` overrides the right one."""
    secret = password or vm.layout.password.read_text().strip()
    asked = urllib.request.Request(
        f"https://127.0.0.1:{vm.machine.redfish_port}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Basic " + base64.b64encode(f"{USER}:{secret}".encode()).decode()},
    )
    context = ssl.create_default_context(cafile=str(vm.rack / AUTHORITY))
    try:
        with urllib.request.urlopen(asked, context=context, timeout=30) as answer:  # noqa: S310
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
