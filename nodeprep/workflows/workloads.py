"""Reading `--workload NAME|FILE` on the controller; the probe on the node checks it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nodeprep.errors import UsageError

SHIPPED = ("vit-g", "tiny")


def load_workload(asked: str) -> str | Mapping[str, Any]:
    """A shipped workload's name as it is, or the mapping in a YAML file.

    Raises:
        UsageError: Neither a known name nor a readable YAML mapping with a name.
    """
    if asked in SHIPPED:
        return asked
    path = Path(asked)
    if not path.suffix and not path.exists():
        raise UsageError(
            f"unknown workload {asked!r}", hint=f"shipped: {', '.join(SHIPPED)}; or name a YAML file"
        )
    try:
        data = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the workload {path}: {error}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise UsageError(
            f"{path}: a workload is a mapping with a name",
            hint="see docs/probe.md for the keys",
        )
    if data["name"] in SHIPPED:
        raise UsageError(
            f"{path}: {data['name']!r} is the name of a shipped workload",
            hint="give yours a name of its own: certificates name the workload they were issued for",
        )
    return data
