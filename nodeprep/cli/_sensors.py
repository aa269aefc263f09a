"""What a BMC measures in a few rows: of each place the worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nodeprep.model.bmc import BmcSensor, BmcSensors, SensorKind, SensorPlace

UNITS: Mapping[SensorKind, str] = {
    "temperature_c": "°C",
    "margin_c": "°C to its limit",
    "power_w": "W",
    "voltage_v": "V",
    "current_a": "A",
    "fan_rpm": "rpm",
    "fan_percent": "%",
}
COLUMNS = ("sensors at", "worst", "limit", "read", "health")
_PLACES: Mapping[SensorPlace, str] = {
    "inlet": "inlet",
    "gpu": "GPU",
    "vrm": "voltage regulators",
    "psu": "supplies",
    "fan": "fans",
}
_HIGH_IS_BAD: Sequence[SensorKind] = ("temperature_c", "power_w")
_LOW_IS_BAD: Sequence[SensorKind] = ("margin_c", "fan_rpm", "fan_percent")
# Source: DSP0268, Status.Health; one word that is none of these is told rather than taken for good.
_GOOD = ("", "ok")


def worst_rows(found: BmcSensors) -> Iterator[tuple[str, ...]]:
    """A row for each place and kind that is measured there; voltages have no worst end and are left out."""
    for place, word in _PLACES.items():
        for kind in (*_HIGH_IS_BAD, *_LOW_IS_BAD):
            sensors = [one for one in found.of(place, kind) if one.state != "absent"]
            if sensors:
                yield _row(word, kind, sensors)


def _row(place: str, kind: SensorKind, sensors: Sequence[BmcSensor]) -> tuple[str, ...]:
    read = [(one.value, one) for one in sensors if one.value is not None]
    counted = f"{len(read)} of {len(sensors)}"
    ill = ", ".join(f"{one.name} {one.health}" for one in sensors if one.health.lower() not in _GOOD)
    if not read:
        return place, "unreadable", "", counted, ill
    pick = max if kind in _HIGH_IS_BAD else min
    value, worst = pick(read, key=lambda pair: pair[0])
    limit = "" if worst.upper_critical is None else f"{worst.upper_critical:g} {UNITS[kind]}"
    return place, f"{value:g} {UNITS[kind]} ({worst.name})", limit, counted, ill or worst.health
