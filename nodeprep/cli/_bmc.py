"""The options that name one BMC on the command line, for every command that speaks to one."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints
from urllib.parse import urlsplit

import typer

from nodeprep.bmc.target import BmcTarget
from nodeprep.bmc.target_url import redfish_target
from nodeprep.cli import _options
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode, UsageError

Bmc = Annotated[str, typer.Option("--bmc", metavar="URL", help="The BMC: https://ADDRESS[:PORT].")]
User = Annotated[
    str,
    typer.Option(
        "--user",
        envvar="NODEPREP_BMC_USER",
        help="User of the BMC; the password is in the environment or a file.",
    ),
]
Ca = Annotated[Path | None, typer.Option("--ca", help="PEM file of the authorities that vouch for the BMC.")]
Fingerprint = Annotated[
    str, typer.Option("--fingerprint", metavar="SHA256", help="SHA-256 of the BMC's one certificate.")
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Take any certificate; every document then says so.")
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--bmc-password-file", help="File with the password, where NODEPREP_BMC_PASSWORD is not set."
    ),
]


System = Annotated[
    str,
    typer.Option("--system", metavar="ID", help="The system that is meant, where the BMC has several."),
]


@dataclass(frozen=True, slots=True)
class Access:
    """The BMC as the options name it; `url` is empty where none was."""

    url: str
    user: str
    ca: Path | None
    fingerprint: str
    insecure: bool
    password_file: Path | None
    system: str = ""

    def target(self) -> BmcTarget:
        """The BMC, with its password.

        Raises:
            UsageError: It cannot be meant so.
        """
        if not self.url:
            raise UsageError("no BMC is named", hint="--bmc https://ADDRESS[:PORT]")
        if urlsplit(self.url).scheme.startswith("ipmi"):
            raise UsageError(
                "IPMI has no path to BIOS attributes: it switches power, picks the boot device, reads events",
                hint="name the same BMC as https://ADDRESS (Redfish); without Redfish the vendor's tool does "
                "it: racadm (Dell), ilorest (HPE), OneCLI (Lenovo), SUM or SAA (Supermicro), SCELNX (AMI), "
                "syscfg (Intel)",
            )
        return redfish_target(
            self.url,
            self.user,
            os.environ,
            password_file=self.password_file,
            ca=self.ca,
            fingerprint=self.fingerprint,
            insecure=self.insecure,
            system=self.system,
            by_options=True,
        )


def of_a_bmc(command: Callable[..., ExitCode]) -> Callable[..., ExitCode]:
    """Gives a command the options that name a BMC, and those of every command.

    The command takes `access: Access` and `out: Output` first, then arguments and options of its own.
    """
    own = list(inspect.signature(command).parameters.values())[2:]
    hints = get_type_hints(command, include_extras=True)
    shared = inspect.signature(_shared).parameters.values()
    shared_hints = get_type_hints(_shared, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY

    @functools.wraps(command)
    def run(**given: Any) -> ExitCode:
        mine = {parameter.name: given.pop(parameter.name) for parameter in own}
        out = Output(json=given.pop("json"), quiet=given.pop("quiet"), verbose=given.pop("verbose"))
        access = Access(
            given["bmc"],
            given["user"],
            given["ca"],
            given["fingerprint"],
            given["insecure"],
            given["bmc_password_file"],
            given["system"],
        )
        return command(access, out, **mine)

    parameters = [
        *(parameter.replace(kind=keyword, annotation=hints[parameter.name]) for parameter in own),
        *(parameter.replace(kind=keyword, annotation=shared_hints[parameter.name]) for parameter in shared),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _shared(
    bmc: Bmc = "",
    user: User = "admin",
    ca: Ca = None,
    fingerprint: Fingerprint = "",
    insecure: Insecure = False,
    bmc_password_file: PasswordFile = None,
    system: System = "",
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> None:
    """The options themselves; only its signature is used."""
