"""A first form of the Redfish service of one machine's BMC: power, and BIOS settings that wait for a reset.

    python -m nodeprep.sim.vm.redfish FOLDER

HTTPS with the rack's certificate, basic authentication with the BMC's user and password. Settings sent to
Bios/Settings wait; the chassis puts them into force at the next power-on or reset, as firmware does.
"""

from __future__ import annotations

import base64
import hmac
import json
import ssl
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from nodeprep.sim.certificates import SERVER
from nodeprep.sim.vm import chassis
from nodeprep.sim.vm.bios import Bios
from nodeprep.sim.vm.bmc import USER, ipmi
from nodeprep.sim.vm.layout import Layout, Machine, read_machine
from nodeprep.sim.vm.programs import VmError

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/1"
BIOS = f"{SYSTEM}/Bios"
SETTINGS = f"{BIOS}/Settings"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
# Redfish's words for IPMI's.
_RESETS = {
    "On": "on",
    "ForceOff": "off",
    "GracefulShutdown": "soft",
    "ForceRestart": "reset",
    "PowerCycle": "cycle",
}
_MAX_BODY_BYTES = 64 * 1024
# A client that opens a connection and says nothing must not hold a thread for ever.
_CLIENT_S = 30

Answer = tuple[HTTPStatus, dict[str, Any]]


class Refused(Exception):
    """A request that gets a Redfish error.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Service:
    """What the resources say and do.

    Args:
        layout: Files of the machine.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._machine: Machine = read_machine(layout)
        self._bios = Bios(layout.folder)
        password = layout.password.read_text().strip()
        self._authorization = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()

    def allowed(self, header: str | None) -> bool:
        """Whether an Authorization header opens this BMC."""
        return hmac.compare_digest((header or "").encode(), self._authorization.encode())

    def get(self, path: str) -> Answer:
        """A resource.

        Raises:
            Refused: There is none.
            VmError: The BMC behind it does not answer.
        """
        resources: dict[str, Callable[[], dict[str, Any]]] = {
            ROOT: self._root,
            f"{ROOT}/Systems": self._systems,
            SYSTEM: self._system,
            BIOS: self._settings_in_force,
            SETTINGS: self._settings_waiting,
        }
        if path not in resources:
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no {path}")
        return HTTPStatus.OK, {"@odata.id": path, **resources[path]()}

    def patch(self, path: str, body: dict[str, Any]) -> Answer:
        """Stage BIOS settings.

        Raises:
            Refused: Another resource, or settings this BIOS does not have.
        """
        if path != SETTINGS:
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} is read only; use {SETTINGS}")
        attributes = body.get("Attributes")
        if not isinstance(attributes, dict) or not attributes:
            raise Refused(HTTPStatus.BAD_REQUEST, "the body has no Attributes")
        problem = self._bios.problem(attributes)
        if problem:
            raise Refused(HTTPStatus.BAD_REQUEST, problem)
        self._bios.stage(attributes)
        chassis.arm(self._layout)
        return HTTPStatus.OK, {"@odata.id": SETTINGS, **self._settings_waiting()}

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        """Reset or switch the machine.

        Raises:
            Refused: Another action, or an unknown kind of reset.
            VmError: The BMC behind it does not answer.
        """
        if path != RESET:
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no action {path}")
        kind = body.get("ResetType")
        if kind not in _RESETS:
            raise Refused(HTTPStatus.BAD_REQUEST, f"ResetType is one of {', '.join(_RESETS)}, not {kind!r}")
        ipmi(self._layout, self._machine, "chassis", "power", _RESETS[kind])
        return HTTPStatus.NO_CONTENT, {}

    def _root(self) -> dict[str, Any]:
        return {
            "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
            "Id": "RootService",
            "Name": "nodeprep virtual rack",
            "RedfishVersion": "1.15.0",
            "Systems": {"@odata.id": f"{ROOT}/Systems"},
        }

    def _systems(self) -> dict[str, Any]:
        return {
            "@odata.type": "#ComputerSystemCollection.ComputerSystemCollection",
            "Name": "Systems",
            "Members@odata.count": 1,
            "Members": [{"@odata.id": SYSTEM}],
        }

    def _system(self) -> dict[str, Any]:
        status = ipmi(self._layout, self._machine, "chassis", "power", "status")
        return {
            "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
            "Id": "1",
            "Name": self._machine.name,
            "SystemType": "Physical",
            "Manufacturer": "QEMU",
            "Model": "vm",
            "SerialNumber": self._machine.name,
            "PowerState": "On" if status.strip().endswith("is on") else "Off",
            "Bios": {"@odata.id": BIOS},
            "Actions": {
                "#ComputerSystem.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": list(_RESETS)}
            },
        }

    def _settings_in_force(self) -> dict[str, Any]:
        return {
            "@odata.type": "#Bios.v1_2_0.Bios",
            "Id": "Bios",
            "Name": "BIOS settings in force",
            "Attributes": self._bios.current(),
            "@Redfish.Settings": {
                "@odata.type": "#Settings.v1_3_0.Settings",
                "SettingsObject": {"@odata.id": SETTINGS},
                "SupportedApplyTimes": ["OnReset"],
            },
        }

    def _settings_waiting(self) -> dict[str, Any]:
        return {
            "@odata.type": "#Bios.v1_2_0.Bios",
            "Id": "Settings",
            "Name": "BIOS settings that wait for a reset",
            "Attributes": self._bios.staged(),
        }


def _handler(service: Service) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _CLIENT_S

        def do_GET(self) -> None:
            self._answer(lambda path, _body: service.get(path))

        def do_PATCH(self) -> None:
            self._answer(service.patch)

        def do_POST(self) -> None:
            self._answer(service.post)

        def _answer(self, call: Callable[[str, dict[str, Any]], Answer]) -> None:
            path = self.path.split("?")[0].rstrip("/")
            try:
                body = self._body()
                # Redfish opens the service root to everybody.
                if path != ROOT and not service.allowed(self.headers.get("Authorization")):
                    raise Refused(HTTPStatus.UNAUTHORIZED, "user or password is wrong")
                status, document = call(path, body)
            except Refused as refused:
                status, document = refused.status, _error(str(refused))
            except (VmError, OSError) as error:
                status, document = HTTPStatus.SERVICE_UNAVAILABLE, _error(str(error))
            self._send(status, document)

        def _body(self) -> dict[str, Any]:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 <= length <= _MAX_BODY_BYTES:
                raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {_MAX_BODY_BYTES} bytes")
            if length == 0:
                return {}
            try:
                found = json.loads(self.rfile.read(length))
            except ValueError:
                raise Refused(HTTPStatus.BAD_REQUEST, "the body is no JSON") from None
            if not isinstance(found, dict):
                raise Refused(HTTPStatus.BAD_REQUEST, "the body is no JSON object")
            return found

        def _send(self, status: HTTPStatus, document: dict[str, Any]) -> None:
            data = b"" if status == HTTPStatus.NO_CONTENT else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("OData-Version", "4.0")
            self.send_header("Content-Length", str(len(data)))
            if status == HTTPStatus.UNAUTHORIZED:
                self.send_header("WWW-Authenticate", 'Basic realm="BMC"')
            self.end_headers()
            self.wfile.write(data)

    return Handler


def _error(message: str) -> dict[str, Any]:
    return {"error": {"code": "Base.1.15.GeneralError", "message": message}}


def main(folder: Path) -> None:
    """Serve until the process is ended."""
    layout = Layout(folder)
    machine = read_machine(layout)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder.parent / SERVER)
    server = ThreadingHTTPServer(("127.0.0.1", machine.redfish_port), _handler(Service(layout)))
    server.daemon_threads = True
    # The handshake is made in the thread of the request: a silent client must not stop the others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
