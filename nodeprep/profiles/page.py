"""The manual page of a profile, from its data: `python -m nodeprep.profiles.page docs/profiles`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from nodeprep.model.spec import Limit, Profile
from nodeprep.profiles.catalog import GENERIC, ProfilePage, load_page, profile_ids

_FIGURES = {
    "has_fabric": "registers with the NVLink fabric",
    "pcie_gen": "PCIe generation under load",
    "pcie_width_lanes": "PCIe width under load",
    "temperature_margin_c": "least distance to the slowdown temperature under load",
    "replays_per_lane_minute": "PCIe replays, at most",
    "power_of_limit_fraction": "mean power during compute, at least",
    "probe_tflops": "throughput of the default workload in fp16, at least",
    "ceiling_tflops": "16384^3 matrix product of the same run in fp16 or bf16, at least",
    "probe_of_ceiling_fraction": "throughput against the matrix-product ceiling of the same run, at least",
    "copy_h2d_gbps": "pinned copies to the GPU alone, at least",
    "copy_d2h_gbps": "pinned copies from the GPU alone, at least",
    "p2p_nvlink_gbps": "copies to another GPU, for each NVLink between them, at least",
    "all_reduce_gbps": "bus bandwidth of an all-reduce of 1 GiB over NVSwitches, at least",
    "hbm_copy_gbps": "copies within device memory, read and written, at least",
    "hbm_of_peak_fraction": "the same, of what the memory's clock and width allow, at least",
    "transient_peak_fraction": "instantaneous power at steps of load, up to at least",
    "transient_trough_fraction": "instantaneous power at steps of load, down to at most",
    "spread_fraction": "distance to the best GPU of the node, at most",
}


def render(page: ProfilePage) -> str:
    """The page of one profile, as Markdown."""
    return "\n".join(_lines(page)) + "\n"


def _lines(page: ProfilePage) -> Iterator[str]:
    profile = page.profile
    yield f"# {profile.title} (`{profile.id}`)"
    yield ""
    if profile.id == GENERIC:
        yield "Taken when no other profile names the node's GPUs, or NVML names none."
    else:
        names = ", ".join(f"`{name}`" for name in profile.match_names)
        yield f"Taken by `nodeprep_profile: auto` when NVML names the node's GPUs {names}."
    yield ""
    yield "| Figure | Value | Where it comes from |"
    yield "|---|---|---|"
    for name in _FIGURES:
        yield _row(page, name)
    yield ""
    yield "A figure that is not known is not guessed: the check that would need it says so. Without any"
    yield "absolute figure for throughput a node stays inconclusive, since a whole rack can be slow alike."


def _row(page: ProfilePage, name: str) -> str:
    value = getattr(page.profile, name)
    if value is None:
        return f"| {_FIGURES[name]} | not known | {page.unknown[name].strip()} |"
    if isinstance(value, Limit):
        return f"| {_FIGURES[name]} | {value.value:g} {value.unit} | {value.source} |"
    return f"| {_FIGURES[name]} | {'yes' if value else 'no'} | the part |"


def main(folder: Path) -> None:
    """Writes all pages anew."""
    shown = {field.name for field in fields(Profile)} - {"id", "title", "match_names"}
    if shown != set(_FIGURES):
        raise SystemExit(f"figures without words: {sorted(shown ^ set(_FIGURES))}")
    for profile_id in profile_ids():
        (folder / f"{profile_id}.md").write_text(render(load_page(profile_id)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
