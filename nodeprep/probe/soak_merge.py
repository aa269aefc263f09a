"""One result from those of a soak's legs.

Counts add up, of rates the worst counts, and what was unreadable in one leg stays so.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence

from ..node import reading
from . import soak_peers
from .digests import KEPT
from .phases.hbm_walk import FAULTS_KEPT

Document = Dict[str, Any]
Readings = Sequence[Document]
_ORDER = ("completed", "interrupted", "failed")


def merged(legs: Sequence[Document], starts_s: Sequence[float], account: Document) -> Document:
    """The soak's result.

    Args:
        legs: Their results, oldest first, at least one.
        starts_s: When each began, seconds of the soak.
        account: The soak's own part: what was wanted, and the gaps.
    """
    last = legs[-1]
    worst = max(legs, key=lambda leg: _ORDER.index(leg["state"]))
    addresses = dict.fromkeys(gpu["pci_address"] for leg in legs for gpu in leg["gpus"])
    return {
        **last,
        "state": worst["state"],
        "error": worst["error"],
        "hint": worst["hint"],
        "started_at": legs[0]["started_at"],
        "duration_s": round(sum(leg["duration_s"] for leg in legs), 3),
        "gpus": [_gpu(address, legs, starts_s) for address in addresses],
        "peers": soak_peers.merge([leg["peers"] for leg in legs]),
        "soak": reading.ok(account),
    }


def _gpu(address: str, legs: Sequence[Document], starts_s: Sequence[float]) -> Document:
    runs = [
        (gpu, starts_s[number])
        for number, leg in enumerate(legs)
        for gpu in leg["gpus"]
        if gpu["pci_address"] == address
    ]
    gpus = [gpu for gpu, _ in runs]
    worst = max(gpus, key=lambda gpu: _ORDER.index(gpu["state"]))
    return {
        **gpus[-1],
        "state": worst["state"],
        "error": worst["error"],
        "iterations": sum(gpu["iterations"] for gpu in gpus),
        "iteration_s": _all(gpus, "iteration_s", _stats),
        "achieved_tflops": _all(gpus, "achieved_tflops", min),
        "ceiling_tflops": _all(gpus, "ceiling_tflops", min),
        "digests": _all(gpus, "digests", _digests),
        "non_finite_values": _all(gpus, "non_finite_values", sum),
        "subnormal_values": _all(gpus, "subnormal_values", sum),
        "copies": _copies([gpu["copies"] for gpu in gpus]),
        "telemetry": _telemetry([gpu["telemetry"] for gpu in gpus]),
        "phases": [_shifted(phase, start) for gpu, start in runs for phase in gpu["phases"]],
        "hbm_bandwidth": _all(gpus, "hbm_bandwidth", _rates),
        "hbm_walk": _all(gpus, "hbm_walk", _walks),
        "transients": _all(gpus, "transients", _transients),
        "memory_pool": _all(gpus, "memory_pool", _pools),
        "xid_events": _all(gpus, "xid_events", lambda lists: [event for each in lists for event in each]),
        "aer_path": _all(gpus, "aer_path", _hops),
    }


def _shifted(phase: Document, by_s: float) -> Document:
    """In the soak's time."""
    moved = {name: round(phase[name] + by_s, 3) for name in ("start_s", "end_s")}
    return {**phase, **moved}


def _all(documents: Sequence[Document], key: str, merge: Callable[[List[Any]], Any]) -> Document:
    return _merge_readings([document[key] for document in documents], merge)


def _merge_readings(readings: Readings, merge: Callable[[List[Any]], Any]) -> Document:
    """One that is missing in any leg is missing in the soak: the rest may have hidden what it was."""
    unread: Optional[Document] = next((one for one in readings if one["state"] == "error"), None)
    unread = unread or next((one for one in readings if one["state"] != "ok"), None)
    return unread or reading.ok(merge([one["value"] for one in readings]))


def _stats(series: List[Document]) -> Document:
    """Median and 95th percentile are means over the legs, weighted by their counts."""
    count = sum(one["count"] for one in series)

    def weighted(name: str) -> float:
        return float(sum(one[name] * one["count"] for one in series) / count)

    return {
        "count": count,
        "min": min(one["min"] for one in series),
        "max": max(one["max"] for one in series),
        **{name: weighted(name) for name in ("mean", "median", "p95")},
    }


def _digests(legs: List[Document]) -> Document:
    """Every leg takes a reference of its own; one that differs from the first leg's is a mismatch as well."""
    first = legs[0]
    others = [leg for leg in legs if leg["reference"] != first["reference"]]
    told = [_other_reference(first["reference"], leg["reference"]) for leg in others]
    mismatches = [*told, *(one for leg in legs for one in leg["mismatches"])]
    return {
        **first,
        "iterations_compared": sum(leg["iterations_compared"] for leg in legs) + len(legs) - 1,
        "mismatch_count": sum(leg["mismatch_count"] for leg in legs) + len(others),
        "mismatches": mismatches[:KEPT],
    }


def _other_reference(expected: Sequence[str], got: Sequence[str]) -> Document:
    place = next(index for index, digest in enumerate(expected) if got[index] != digest)
    return {
        "iteration": 1,
        "block": place,
        "expected": expected[place],
        "got": got[place],
        "confirmed": None,
    }


def _copies(legs: Readings) -> Document:
    rates = ("alone_h2d_gbps", "alone_d2h_gbps", "during_h2d_gbps", "during_d2h_gbps")
    counts = ("bytes_h2d", "bytes_d2h", "content_errors", "content_checks")
    return {
        **{name: _all(legs, name, min) for name in rates},
        **{name: sum(leg[name] for leg in legs) for name in counts},
    }


def _telemetry(legs: Readings) -> Document:
    last = dict(legs[-1])
    for name, value in last.items():
        if isinstance(value, dict) and value.get("state") == "ok" and isinstance(value["value"], dict):
            last[name] = _all(legs, name, _stats)
    bits: Dict[str, int] = {}
    for leg in legs:
        for bit, count in leg["event_reason_samples"].items():
            bits[bit] = bits.get(bit, 0) + count
    troubles = [leg["trouble"] for leg in legs if leg["trouble"]]
    return {
        **last,
        "samples": sum(leg["samples"] for leg in legs),
        "errors": sum(leg["errors"] for leg in legs),
        "longest_gap_ms": max(leg["longest_gap_ms"] for leg in legs),
        "event_reasons_union": _all(legs, "event_reasons_union", _union),
        "event_reason_samples": bits,
        "enforced_limit_w": _all(legs, "enforced_limit_w", min),
        "cpu_of_run_fraction": _all(legs, "cpu_of_run_fraction", max),
        "trouble": troubles[0] if troubles else "",
    }


def _union(masks: List[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _rates(legs: List[Document]) -> Document:
    return {name: _all(legs, name, min) for name in legs[0]}


def _walks(legs: List[Document]) -> Document:
    largest = max(legs, key=lambda leg: leg["walked_bytes"])
    return {
        **largest,
        "walks": sum(leg["walks"] for leg in legs),
        "patterns": {
            name: {
                "passes": sum(leg["patterns"][name]["passes"] for leg in legs),
                "gbps": min(leg["patterns"][name]["gbps"] for leg in legs),
            }
            for name in largest["patterns"]
        },
        "errors": sum(leg["errors"] for leg in legs),
        "faults": [fault for leg in legs for fault in leg["faults"]][:FAULTS_KEPT],
    }


def _transients(legs: List[Document]) -> Document:
    """A period that a short last leg left out is taken from the others."""
    found: Dict[float, List[Document]] = {}
    for leg in legs:
        for period in leg["periods"]:
            found.setdefault(period["period_s"], []).append(period)
    return {
        "periods": [
            {
                **periods[0],
                "bursts": sum(period["bursts"] for period in periods),
                "power": _all(periods, "power", _powers),
            }
            for _, periods in sorted(found.items(), reverse=True)
        ],
        "bursts_compared": sum(leg["bursts_compared"] for leg in legs),
        "mismatch_count": sum(leg["mismatch_count"] for leg in legs),
    }


def _powers(legs: List[Document]) -> Document:
    samples = sum(leg["samples"] for leg in legs)
    return {
        "samples": samples,
        "mean_w": sum(leg["mean_w"] * leg["samples"] for leg in legs) / samples,
        **{name: max(leg[name] for leg in legs) for name in ("peak_w", "peak_of_limit")},
        **{name: min(leg[name] for leg in legs) for name in ("trough_w", "trough_of_limit")},
    }


def _pools(legs: List[Document]) -> Document:
    return {
        "reserved_bytes": max(leg["reserved_bytes"] for leg in legs),
        "reserved_of_used": _stats([leg["reserved_of_used"] for leg in legs]),
    }


def _hops(legs: List[List[Document]]) -> List[Document]:
    """Each leg counts from its own start."""
    kinds = ("correctable", "non_fatal", "fatal")
    found: List[Document] = []
    for hop in legs[-1]:
        same = [other for leg in legs for other in leg if other["address"] == hop["address"]]
        found.append({"address": hop["address"], **{kind: _all(same, kind, sum) for kind in kinds}})
    return found
