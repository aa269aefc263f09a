"""All that is known of one BIOS over Redfish, as the knobs want to see it."""

from __future__ import annotations

from dataclasses import dataclass

from nodeprep.bmc.bios.attributes import BiosView
from nodeprep.bmc.redfish.bios import BiosSettings, read_bios
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.registry import Registry
from nodeprep.bmc.redfish.registry_finder import find_registry
from nodeprep.bmc.redfish.service import Service, read_service
from nodeprep.bmc.redfish.view import bios_view
from nodeprep.model.bios import BiosMachine


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosReading:
    """One BIOS at one moment.

    Attributes:
        view: Settings and registry together.
    """

    service: Service
    settings: BiosSettings
    registry: Registry
    view: BiosView

    @property
    def machine(self) -> BiosMachine:
        """Whose BIOS it is."""
        return machine_of(self.service)

    @property
    def logical_cpus(self) -> int | None:
        """As the BMC counts them; None where it does not."""
        summary = self.service.system.body.get("ProcessorSummary")
        count = summary.get("LogicalProcessorCount") if isinstance(summary, dict) else None
        return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else None


def read_all(connection: Connection, service: Service | None = None) -> BiosReading:
    """The BIOS as it is now.

    Raises:
        Missing: The BMC has no BIOS settings over Redfish.
        Malformed: It has, and they cannot be read.
        BmcUnreachable: No answer.
    """
    service = service or read_service(connection)
    settings = read_bios(connection, service)
    return reading_of(service, settings, find_registry(connection, settings))


def read_again(connection: Connection, before: BiosReading) -> BiosReading:
    """The same BIOS with its present settings; the registry stays as it was read.

    Raises:
        As `read_all`.
    """
    return reading_of(before.service, read_bios(connection, before.service), before.registry)


def reading_of(service: Service, settings: BiosSettings, registry: Registry) -> BiosReading:
    """Settings and registry, put together."""
    return BiosReading(
        service=service, settings=settings, registry=registry, view=bios_view(settings, registry)
    )


def machine_of(service: Service) -> BiosMachine:
    """Who it is, as documents have it."""
    who = service.identity
    return BiosMachine(vendor=who.vendor, model=who.model, bios=who.bios, bmc_firmware=who.bmc_firmware)
