"""docs/workloads.md: its example is a workload, and its table has every key."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from nodeprep.node.workload_file import ABOUT, KEYS, SHIPPED, faults

PAGE = (Path(__file__).parents[2] / "docs" / "workloads.md").read_text(encoding="utf-8")


def test_the_example_is_a_workload() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert faults(yaml.safe_load(example)) == []


def test_every_key_and_every_shipped_workload_is_described() -> None:
    rows = re.findall(r"^\| ((?:`[\w-]+` ?)+)\|", PAGE, re.MULTILINE)
    described = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert {*KEYS, ABOUT, *SHIPPED} <= described
