"""Site settings: `nodeprep_profile` and `nodeprep_policy`, from a file or from inventory variables.

Strict: nothing is ignored, and all faults come at once, each with its path and a hint.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodeprep.errors import PolicyError, Problem, UsageError
from nodeprep.model.codec import decode_strict
from nodeprep.model.policy import Policy
from nodeprep.profiles import _yaml
from nodeprep.profiles._hints import with_hints
from nodeprep.profiles._rules import rule_problems
from nodeprep.profiles.catalog import profile_ids
from nodeprep.registry import discover

AUTO = "auto"
_PROFILE = "nodeprep_profile"
_POLICY = "nodeprep_policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSettings:
    """What the owner of a site wants for a node.

    Attributes:
        profile: Profile id, or "auto": by the name of the node's GPUs.
    """

    profile: str = AUTO
    policy: Policy = field(default_factory=Policy)


def load_settings_file(path: Path, *, known_checks: Collection[str] | None = None) -> SiteSettings:
    """Settings from a YAML file with the top keys nodeprep_profile and nodeprep_policy.

    Args:
        path: The file.
        known_checks: Check ids a waiver may name; None takes those of the package.

    Raises:
        UsageError: The file cannot be read.
        PolicyError: It does not hold together.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"the policy file {path} cannot be read: {error.strerror}",
            hint="name a YAML file with the keys nodeprep_profile and nodeprep_policy",
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the policy file {path} is not text: {error}", hint="save it as UTF-8") from error
    return settings_from_text(text, source=str(path), known_checks=known_checks)


def settings_from_text(
    text: str, *, source: str, known_checks: Collection[str] | None = None
) -> SiteSettings:
    """Settings from the text of a policy file; see `load_settings_file`.

    Raises:
        PolicyError: It does not hold together.
    """
    data = _yaml.read(text, source=source)
    if data is None:
        data = {}
    if not isinstance(data, dict):
        hint = f"the top of the file is a mapping with the keys {_PROFILE} and {_POLICY}"
        raise PolicyError(source, [Problem("(top)", f"expected a mapping, got {type(data).__name__}", hint)])
    stray = [
        Problem(str(key), "unknown key", _stray_hint(str(key)))
        for key in data
        if key not in (_PROFILE, _POLICY)
    ]
    return _settings(data, source=source, known_checks=known_checks, problems=stray)


def settings_from_variables(
    variables: Mapping[str, Any], *, source: str, known_checks: Collection[str] | None = None
) -> SiteSettings:
    """Settings from one host's inventory variables; variables of others are left alone.

    Args:
        variables: All variables of the host.
        source: The host's name, for messages.
        known_checks: Check ids a waiver may name; None takes those of the package.

    Raises:
        PolicyError: The two variables do not hold together, or one of them is misspelt.
    """
    misspelt = []
    for name in variables:
        if name in (_PROFILE, _POLICY) or not str(name).startswith("node"):
            continue
        close = difflib.get_close_matches(str(name), (_PROFILE, _POLICY), n=1, cutoff=0.85)
        if close:
            misspelt.append(Problem(str(name), "unknown variable", f"did you mean {close[0]!r}?"))
    return _settings(variables, source=source, known_checks=known_checks, problems=misspelt)


def _settings(
    data: Mapping[str, Any],
    *,
    source: str,
    known_checks: Collection[str] | None,
    problems: Sequence[Problem],
) -> SiteSettings:
    checks = discover("nodeprep.checks", "CHECK") if known_checks is None else known_checks
    found = list(problems)
    profile = _plain(data.get(_PROFILE, AUTO))
    found.extend(_profile_problems(profile))
    raw = _plain(data.get(_POLICY, {}))
    policy = Policy()
    try:
        policy = decode_strict(raw, Policy, source=source, root=_POLICY)
    except PolicyError as error:
        found.extend(with_hints(error.problems, raw, Policy, _POLICY))
    found.extend(rule_problems(raw, _POLICY, checks))
    if found:
        raise PolicyError(source, found)
    return SiteSettings(profile=profile, policy=policy)


def _profile_problems(profile: Any) -> Iterator[Problem]:
    known = (AUTO, *profile_ids())
    if isinstance(profile, str) and profile in known:
        return
    close = difflib.get_close_matches(str(profile).lower(), known, n=1)
    listed = ", ".join(known)
    hint = f"did you mean {close[0]!r}? known: {listed}" if close else f"known: {listed}"
    yield Problem(_PROFILE, f"there is no profile {profile!r}", hint)


def _stray_hint(key: str) -> str:
    close = difflib.get_close_matches(key, (_PROFILE, _POLICY), n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if key in Policy.__dataclass_fields__:
        return f"put it under {_POLICY}:"
    return f"known keys: {_PROFILE}, {_POLICY}"


def _plain(value: Any) -> Any:
    """Plain containers and texts: Ansible hands out subclasses that carry where a value came from."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return str(value)
    return value
