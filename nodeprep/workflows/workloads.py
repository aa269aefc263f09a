"""Reading `--workload NAME|FILE` on the controller; the probe on the node checks it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nodeprep.errors import PolicyError, Problem, UsageError
from nodeprep.node.workload_file import ABOUT, SHIPPED, closest, faults, name_fault

_KEYS_HINT = "docs/workloads.md has the keys"


def load_workload(asked: str) -> str | Mapping[str, Any]:
    """A shipped workload's name as it is, or what a YAML file says.

    Raises:
        UsageError: No such workload, or an unreadable file.
        PolicyError: A file that is no workload, with all its faults.
    """
    if asked in SHIPPED:
        return asked
    path = Path(asked)
    if not path.suffix and not path.exists():
        close = closest(asked)
        raise UsageError(
            f"unknown workload {asked!r}",
            hint=f"did you mean {close}?" if close else f"shipped: {', '.join(SHIPPED)}; or name a YAML file",
        )
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"cannot read the workload {path}: {error.strerror}", hint=f"shipped: {', '.join(SHIPPED)}"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read the workload {path}: {error}", hint="it must be UTF-8") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {error}", hint=_KEYS_HINT) from error
    found = faults(data)
    if found:
        raise PolicyError(str(path), [_problem(fault) for fault in found])
    taken = name_fault(data)
    if taken:
        raise UsageError(
            f"{path}: {taken}",
            hint="give yours a name of its own: certificates name the workload they were issued for",
        )
    return {key: value for key, value in data.items() if key != ABOUT}


def _problem(fault: str) -> Problem:
    """A line such as "width: missing" as a path and what is wrong there."""
    key, colon, message = fault.partition(": ")
    return Problem(key, message, _KEYS_HINT) if colon else Problem("(top)", fault, _KEYS_HINT)
