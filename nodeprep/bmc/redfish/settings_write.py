"""Writing staged settings where this BMC takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodeprep.bmc.redfish.answers import Answer
from nodeprep.bmc.redfish.bios import BiosSettings
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import Missing, RedfishError

_NO_SUCH_METHOD = 405


def write_settings(
    connection: Connection,
    bios: BiosSettings,
    body: Mapping[str, Any],
    *,
    extra_headers: Mapping[str, str] | None = None,
    patience_s: float | None = None,
) -> Answer:
    """Sends a body of `BiosSettings.body` to the first place that takes it.

    If-Match comes from the settings resource (stmcginnis/gofish#174), never from Bios. A place that is not
    there (404) or has no PATCH (405) leads to the next; old AMI firmware has PUT instead.

    Raises:
        Missing: No place takes settings.
        PreconditionFailed: They were changed since they were read, or no form of the ETag is taken.
        RedfishError: Refused.
        NotReady, BmcUnreachable, Interrupted: As `Connection.patch`.
    """
    refused: RedfishError | None = None
    for uri in bios.write_uris:
        read = bios.settings if bios.settings is not None and bios.settings.uri == uri else None
        try:
            return connection.patch(
                uri, body, etag_from=read, extra_headers=extra_headers, patience_s=patience_s
            )
        except Missing as error:
            refused = refused or error
        except RedfishError as error:
            if error.status != _NO_SUCH_METHOD:
                raise
            refused = error
            if "PUT" in error.methods:
                return connection.put(uri, body, patience_s=patience_s)
    raise Missing(
        f"the {connection.target} takes BIOS settings at none of {', '.join(bios.write_uris)}",
        uri=bios.write_uris[0],
        status=refused.status if refused is not None else 0,
        messages=refused.messages if refused is not None else (),
    )
