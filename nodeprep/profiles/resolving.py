"""Policy + Profile + facts -> NodeSpec: what one node should be. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase

from nodeprep.errors import PolicyError, Problem
from nodeprep.model.codec import digest
from nodeprep.model.facts import Gpu, NodeFacts
from nodeprep.model.policy import Policy, Waiver
from nodeprep.model.spec import Limit, NodeSpec, Profile
from nodeprep.node.kernel_cmdline import Argument, parse_word
from nodeprep.profiles.catalog import GENERIC, link_figures, load_profile, match
from nodeprep.profiles.settings import AUTO, SiteSettings

# Below this fraction of the default power limit the throughput floors have not been measured.
_FLOOR_HOLDS_FROM = 0.9

_ASPM_OFF = Argument("pcie_aspm", "off")
_NATIVE = Argument("pcie_ports", "native")


def resolve(host: str, settings: SiteSettings, facts: NodeFacts, *, today: date) -> NodeSpec:
    """What a node should be.

    Args:
        host: Inventory name, which waivers speak of.
        settings: What the site wants.
        facts: What the node is; its GPUs choose the profile where the settings say "auto".
        today: A waiver holds through its last day.

    Raises:
        PolicyError: The profile is "auto" and the node has GPUs of different models.
    """
    policy = settings.policy
    base = load_profile(settings.profile) if settings.profile != AUTO else select_profile(facts)
    gen, width = _wanted_link(policy, base)
    mine = [waiver for waiver in policy.waivers if fnmatchcase(host, waiver.host)]
    return NodeSpec(
        host=host,
        policy=_taking_aer(policy, facts),
        policy_digest=digest(policy),
        profile=_as_asked(base, policy, facts, gen, width),
        pcie_gen=gen,
        pcie_width_lanes=width,
        waivers=tuple(waiver for waiver in mine if _holds(waiver, today)),
        expired_waivers=tuple(waiver for waiver in mine if not _holds(waiver, today)),
    )


def select_profile(facts: NodeFacts) -> Profile:
    """The profile for the GPUs a node has.

    Where NVML names no GPU (no driver, a hung driver), the answer is `generic`: the checks that
    need NVML then say what could not be read.

    Raises:
        PolicyError: The GPUs are of different models.
    """
    names = sorted({gpu.name.value for gpu in facts.nvml.gpus.value or () if gpu.name.value is not None})
    if not names:
        return load_profile(GENERIC)
    if len(names) > 1:
        raise PolicyError(
            f"profile of {facts.host or facts.hostname}",
            [
                Problem(
                    "nodeprep_profile",
                    f"the node has different GPUs: {', '.join(names)}",
                    "name a profile for this host (generic fits any mixture), or remove the odd one out",
                )
            ],
        )
    return match(names[0])


def _holds(waiver: Waiver, today: date) -> bool:
    return today <= waiver.until


def _taking_aer(policy: Policy, facts: NodeFacts) -> Policy:
    """The policy with pcie_ports=native where pcie_aspm=off alone would leave AER to nobody."""
    asked = policy.kernel_args
    words = [argument for word in (*asked.present, *asked.replace) for argument in parse_word(word)]
    # Where firmware handles errors first, or that is not known, taking them from it could lose them.
    wanted = asked.aer_ownership == "auto" and facts.aer_ownership.firmware_first.value is False
    if not wanted or _ASPM_OFF not in words or any(word.key == _NATIVE.key for word in words):
        return policy
    return replace(policy, kernel_args=replace(asked, present=(*asked.present, str(_NATIVE))))


def _wanted_link(policy: Policy, profile: Profile) -> tuple[Limit | None, Limit | None]:
    asked = policy.pcie_link
    gen, width = profile.pcie_gen, profile.pcie_width_lanes
    if asked.gen is not None:
        gen = Limit(value=asked.gen, unit="generation", source="policy: pcie_link.gen")
    if asked.width_lanes is not None:
        width = Limit(value=asked.width_lanes, unit="lanes", source="policy: pcie_link.width_lanes")
    return gen, width


def _as_asked(
    profile: Profile, policy: Policy, facts: NodeFacts, gen: Limit | None, width: Limit | None
) -> Profile:
    """The profile's figures as they apply to a link that is pinned, and GPUs that are capped."""
    result = profile
    if gen is not None and (policy.pcie_link.gen is not None or policy.pcie_link.width_lanes is not None):
        result = _at_link(result, int(gen.value), width)
    if any(fraction < _FLOOR_HOLDS_FROM for fraction in _limit_fractions(policy, facts)):
        result = replace(result, probe_tflops=None, ceiling_tflops=None)
    return result


def _at_link(profile: Profile, gen: int, width: Limit | None) -> Profile:
    own_gen = profile.pcie_gen.value if profile.pcie_gen else None
    own_width = profile.pcie_width_lanes.value if profile.pcie_width_lanes else None
    if own_gen == gen and (width is None or width.value == own_width):
        return profile
    figures = link_figures(gen)
    copy = figures.copy_x16_gbps
    if copy is not None and width is not None and width.value != 16:
        copy = Limit(
            value=round(copy.value * width.value / 16, 2),
            unit=copy.unit,
            source=f"{copy.source}; {width.value:g} of 16 lanes",
        )
    # A profile without copy floors of its own does not get any by being pinned.
    has_floor = profile.copy_h2d_gbps is not None
    return replace(
        profile,
        replays_per_lane_minute=figures.replays_per_lane_minute,
        copy_h2d_gbps=copy if has_floor else None,
        copy_d2h_gbps=copy if has_floor else None,
    )


def _limit_fractions(policy: Policy, facts: NodeFacts) -> Iterator[float]:
    asked = policy.gpu.power_limit
    if asked is None:
        return
    number = float(asked.rstrip("%W ").strip())
    if asked.endswith("%"):
        yield number / 100
        return
    gpus: tuple[Gpu, ...] = facts.nvml.gpus.value or ()
    for gpu in gpus:
        if gpu.power.default_w.value:
            yield number / gpu.power.default_w.value
