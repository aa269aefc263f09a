"""Which events belong together and why, one causal rule a file."""

from __future__ import annotations

from nodeprep.diagnose.rule import Rule
from nodeprep.registry import discover

__all__ = ["all_rules"]


def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order in which they look.

    Raises:
        NodeprepError: A module of this folder defines no RULE, or one with another id.
        ImportError: A module does not import.
    """
    rules: dict[str, Rule] = discover(__name__, "RULE")
    return tuple(sorted(rules.values(), key=lambda rule: (rule.rank, rule.id)))
