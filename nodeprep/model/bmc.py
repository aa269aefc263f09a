"""`nodeprep.bmc_sensors/1`: what a BMC measures of its machine: evidence beside the node's own word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

SensorPlace = Literal["inlet", "outlet", "cpu", "memory", "gpu", "vrm", "psu", "fan", "board", "other"]
SensorKind = Literal[
    "temperature_c", "margin_c", "power_w", "voltage_v", "current_a", "fan_rpm", "fan_percent"
]
SensorState = Literal["ok", "health_only", "absent", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcSensor:
    """One sensor.

    Attributes:
        place: What it is at, told from its name, else from what the BMC says of its place.
        kind: What it measures, with the unit. margin_c is a distance to a limit and no temperature
            (Intel's "DTS").
        state: health_only = a line that is good or not, of which the BMC tells the health and has no value
            (Dell's power-good voltages); absent = there is no such part (an empty bay); unreadable = there
            is, and no value came.
        value: None unless the state is ok. Never 0 for what was not read.
        upper_critical: The BMC's own limit, in the same unit; None when it has none.
        health: OK, Warning, Critical; "" when the BMC does not say.
        detail: Why there is no value.
    """

    name: str
    place: SensorPlace
    kind: SensorKind
    state: SensorState
    value: float | None = None
    upper_critical: float | None = None
    health: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcPcieLink:
    """The link of one PCIe device as the BMC tells it.

    A hint only: many BMCs tell none, or tell the slot's highest as the device's. The host's word counts.

    Attributes:
        generation, max_generation, lanes, max_lanes: None when the BMC does not say.
    """

    device: str
    name: str
    generation: int | None
    max_generation: int | None
    lanes: int | None
    max_lanes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcSensors:
    """All that a BMC measures.

    Attributes:
        source: How it was asked.
        notes: What could not be read: no sensor of such a place is then not the same as none there.
    """

    source: Literal["redfish", "ipmi"]
    sensors: tuple[BmcSensor, ...]
    links: tuple[BmcPcieLink, ...] = ()
    notes: tuple[str, ...] = ()
    simulated: bool = False
    schema: Literal["nodeprep.bmc_sensors/1"] = field(default="nodeprep.bmc_sensors/1")

    def of(self, place: SensorPlace, kind: SensorKind) -> Iterator[BmcSensor]:
        """The sensors of a place that measure the same thing."""
        return (one for one in self.sensors if one.place == place and one.kind == kind)
