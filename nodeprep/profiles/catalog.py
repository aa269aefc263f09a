"""The profiles in the package: one YAML file a GPU generation, read strictly.

Every figure has a source, and every figure that is not known has a reason: a null without one is
refused, so that "nobody looked" cannot pass for "there is none".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from nodeprep.errors import PolicyError, Problem, UsageError
from nodeprep.model.codec import decode_strict
from nodeprep.model.spec import Limit, Profile
from nodeprep.profiles import _yaml
from nodeprep.profiles._hints import with_hints

GENERIC = "generic"
_PACKAGE = "nodeprep.profiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePage:
    """A profile with the reasons for what it does not know.

    Attributes:
        unknown: Field name to why there is no figure.
    """

    profile: Profile
    unknown: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFigures:
    """What holds for a PCIe generation whatever the GPU.

    Attributes:
        replays_per_lane_minute: Replays to expect at the bit error rate PCIe allows.
        copy_x16_gbps: Floor of lone pinned copies over 16 lanes, GB/s (decimal), each direction.
    """

    replays_per_lane_minute: Limit | None
    copy_x16_gbps: Limit | None


@cache
def profile_ids() -> tuple[str, ...]:
    """Ids of all profiles, sorted; `generic` is the last to be asked, see `match`."""
    names = (entry.name for entry in resources.files(_PACKAGE).iterdir())
    return tuple(
        sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml") and name[0] != "_")
    )


@cache
def load_page(profile_id: str) -> ProfilePage:
    """One profile with its reasons.

    Raises:
        UsageError: There is no such profile.
        PolicyError: The file does not hold together.
    """
    if profile_id not in profile_ids():
        raise UsageError(f"there is no profile {profile_id!r}", hint=f"profiles: {', '.join(profile_ids())}")
    text = (resources.files(_PACKAGE) / f"{profile_id}.yaml").read_text(encoding="utf-8")
    return parse_page(text, profile_id=profile_id)


def parse_page(text: str, *, profile_id: str) -> ProfilePage:
    """A profile file's text; see `load_page`.

    Raises:
        PolicyError: The file does not hold together.
    """
    source = f"profile {profile_id}"
    data = _yaml.read(text, source=source)
    if not isinstance(data, dict):
        raise PolicyError(source, [Problem("(top)", "expected a mapping", "see docs/profiles/")])
    unknown = data.pop("unknown", {})
    problems = list(_reason_problems(data, unknown))
    try:
        profile = decode_strict(data, Profile, source=source)
    except PolicyError as error:
        problems += with_hints(error.problems, data, Profile, "")
    else:
        problems += _value_problems(profile, profile_id)
    if problems:
        raise PolicyError(source, problems)
    return ProfilePage(profile=profile, unknown=unknown)


def load_profile(profile_id: str) -> Profile:
    """One profile.

    Raises:
        UsageError: There is no such profile.
    """
    return load_page(profile_id).profile


def match(gpu_name: str) -> Profile:
    """The profile for a GPU by its NVML product name; `generic` when none names it."""
    for profile_id in profile_ids():
        profile = load_profile(profile_id)
        if profile_id != GENERIC and any(fnmatchcase(gpu_name, name) for name in profile.match_names):
            return profile
    return load_profile(GENERIC)


@cache
def link_figures(gen: int) -> LinkFigures:
    """Figures of a PCIe generation (1 to 6).

    Raises:
        PolicyError: The file does not hold together.
        KeyError: No such generation.
    """
    source = "_pcie_generations.yaml"
    text = (resources.files(_PACKAGE) / source).read_text(encoding="utf-8")
    data = _yaml.read(text, source=source)
    return decode_strict(data[gen], LinkFigures, source=source, root=str(gen))


def _reason_problems(data: Mapping[str, Any], unknown: Any) -> Iterator[Problem]:
    if not isinstance(unknown, dict):
        yield Problem("unknown", "expected a mapping", "figure: why it is not known")
        return
    for field in fields(Profile):
        is_null = field.name in data and data[field.name] is None
        reason = unknown.get(field.name)
        if is_null and not (isinstance(reason, str) and reason.strip()):
            yield Problem(field.name, "is null without a reason", f"say why under unknown.{field.name}")
        if not is_null and field.name in unknown:
            yield Problem(f"unknown.{field.name}", "the figure is known", "remove the reason")
    known = {field.name for field in fields(Profile)}
    for name in unknown:
        if name not in known:
            yield Problem(f"unknown.{name}", "unknown key", "name a figure of the profile")


def _value_problems(profile: Profile, profile_id: str) -> Iterator[Problem]:
    if profile.id != profile_id:
        yield Problem("id", f"is {profile.id!r} in the file {profile_id}.yaml", "the id is the file's name")
    if not profile.match_names:
        yield Problem("match_names", "is empty", "a shell pattern on the NVML product name")
    for field in fields(Profile):
        limit = getattr(profile, field.name)
        if isinstance(limit, Limit) and not limit.source.strip():
            yield Problem(f"{field.name}.source", "is empty", "say where the figure comes from")
