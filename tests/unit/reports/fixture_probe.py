"""Probe results and telemetry of a fixture run: noise that is the same in every run."""

from __future__ import annotations

import math

from fixture_facts import LIMIT_W, address, uuid

from nodeprep.model.probe import (
    Copies,
    Digests,
    GpuRun,
    Mismatch,
    Phase,
    ProbeResult,
    Stats,
    Telemetry,
    Workload,
)
from nodeprep.model.reading import Reading
from nodeprep.model.run import TelemetrySeries

ok = Reading.ok

PHASES = (
    Phase(name="warm-up", start_s=0.0, end_s=8.0),
    Phase(name="copies alone", start_s=8.0, end_s=14.0),
    Phase(name="compute", start_s=14.0, end_s=68.0),
    Phase(name="cool-down", start_s=68.0, end_s=75.0),
)


def wobble(*parts: float) -> float:
    """Noise in -1..1 that is the same in every run."""
    seed = sum((index + 1) * 12.9898 * part for index, part in enumerate(parts))
    return 2 * (math.sin(seed) * 43758.5453 % 1) - 1


def stats(mean: float, spread: float = 0.01, count: int = 108) -> Reading[Stats]:
    """A summary around a mean."""
    low, high = mean * (1 - spread), mean * (1 + spread)
    return ok(Stats(count=count, min=low, mean=mean, median=mean, p95=high, max=high))


def telemetry(
    host: int, gpu: int, *, samples: int = 150, slow: bool = False, narrow: bool = False
) -> TelemetrySeries:
    """One GPU's samples over the four phases. `slow`: throttled; `narrow`: x8 under load."""
    columns: dict[str, list[float | None]] = {
        name: []
        for name in (
            "t_s",
            "power_w",
            "temperature_c",
            "sm_mhz",
            "pcie_rx_gbps",
            "pcie_tx_gbps",
            "link_gen",
            "link_width_lanes",
            "replays",
        )
    }
    warmth = 33.0 + host % 3 + gpu % 4
    for index in range(samples):
        at = 75.0 * index / samples
        phase = next((phase.name for phase in PHASES if phase.start_s <= at < phase.end_s), "cool-down")
        busy, copying = phase in ("warm-up", "compute"), phase in ("copies alone", "compute")
        noise = wobble(host, gpu, index)
        power = (640.0 if busy else 185.0 if copying else 110.0) * (0.78 if slow and busy else 1) + 6 * noise
        warmth += ((68.0 + gpu % 4 if busy else 42.0) + (9 if slow else 0) - warmth) * 0.045
        rate = (12.6 if narrow else 24.2) if copying else 0.1
        row = {
            "t_s": round(at + 0.004 * gpu, 3),
            "power_w": round(power, 1),
            "temperature_c": round(warmth + 0.3 * noise),
            "sm_mhz": round((1395 if slow else 1710) + 22 * noise) if busy else 1980 if copying else 345,
            "pcie_rx_gbps": round(rate * (1 + 0.03 * noise), 3),
            "pcie_tx_gbps": round(rate * (0.97 - 0.03 * noise), 3),
            "link_gen": 4,
            "link_width_lanes": 8 if narrow and busy else 16,
            "replays": 0,
        }
        for name, value in row.items():
            columns[name].append(value)
    if samples > 90:
        columns["power_w"][80] = None
    return TelemetrySeries(
        gpu=address(gpu),
        simulated=True,
        period_ms=500.0,
        columns={name: tuple(values) for name, values in columns.items()},
        phases=PHASES,
    )


def gpu_run(gpu: int, *, slow: bool = False, narrow: bool = False, flipped: bool = False) -> GpuRun:
    """What one GPU did."""
    tflops = 447.0 if slow else 561.0
    copies = 12.7 if narrow else 24.6
    return GpuRun(
        pci_address=address(gpu),
        uuid=uuid(gpu),
        name="NVIDIA H200",
        state="completed",
        iterations=51,
        iteration_s=stats(593.2 / tflops),
        achieved_tflops=ok(tflops),
        ceiling_tflops=ok(648.0),
        digests=ok(
            Digests(
                reference=tuple(f"{block:02x}c1f7a2d94be0" for block in range(17)),
                iterations_compared=50,
                mismatch_count=23 if flipped else 0,
                mismatches=tuple(
                    Mismatch(
                        iteration=iteration,
                        block=7,
                        expected="9f2ac11d40b7e365",
                        got="9f2ac11d40b7e364",
                        confirmed=True,
                    )
                    for iteration in (range(28, 31) if flipped else ())
                ),
            )
        ),
        non_finite_values=ok(0),
        copies=Copies(
            alone_h2d_gbps=ok(copies),
            alone_d2h_gbps=ok(copies * 1.01),
            during_h2d_gbps=ok(copies * 0.95),
            during_d2h_gbps=ok(copies * 0.94),
            bytes_h2d=1_290_000_000_000,
            bytes_d2h=1_280_000_000_000,
            content_errors=0,
            content_checks=4800,
        ),
        telemetry=Telemetry(
            file=f"telemetry-{address(gpu).replace(':', '-').replace('.', '-')}.json",
            period_ms=500.0,
            samples=150,
            errors=1,
            longest_gap_ms=612.0,
            power_w=stats(500.0 if slow else 641.0),
            power_instant_w=stats(760.0, 0.2),
            temperature_c=stats(78.0 if slow else 69.0, 0.02),
            memory_temperature_c=stats(74.0, 0.02),
            margin_c=stats(19.0, 0.1),
            sm_mhz=stats(1395.0 if slow else 1710.0),
            utilization_percent=stats(99.0, 0.0),
            pcie_rx_gbps=stats(copies * 0.95),
            pcie_tx_gbps=stats(copies * 0.94),
            link_gen=stats(4.0, 0.0),
            link_width_lanes=stats(8.0 if narrow else 16.0, 0.0),
            event_reasons_union=ok(0x44 if slow else 0x4),
            event_reason_samples={"0x4": 108, "0x40": 61} if slow else {"0x4": 108},
            enforced_limit_w=ok(LIMIT_W),
        ),
        phases=PHASES,
    )


def probe(host: str, runs: tuple[GpuRun, ...], *, injected: str = "") -> ProbeResult:
    """A whole result."""
    return ProbeResult(
        host=host,
        simulated=True,
        backend="numpy",
        state="completed",
        error="",
        hint="",
        level="standard",
        workload=Workload(
            name="vit-g",
            digest="5d" * 32,
            width=4096,
            depth=16,
            heads=32,
            ffn=16384,
            patch=16,
            image_height=1536,
            image_width=2048,
            batch=5,
            dtype="float16",
            seed=20261130,
        ),
        injected=injected,
        probe_digest="ab" * 32,
        versions={"python": "3.11.9", "numpy": "2.3.5"},
        started_at="2026-11-30T10:02:10Z",
        duration_s=75.2,
        gpus=runs,
    )
