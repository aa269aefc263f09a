"""What `bios plan` and `bios show` print of several machines; of one they print its own document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodeprep.model.bios import BiosPlan, BiosState
from nodeprep.model.outputs import ErrorDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosPlanList:
    """`nodeprep.bios_plan_list/1`; each host that was asked for is in `hosts` or in `errors`.

    Attributes:
        errors: By host: why there is no plan, with the exit code that this alone would have had.
    """

    hosts: Mapping[str, BiosPlan]
    errors: Mapping[str, ErrorDocument]
    schema: Literal["nodeprep.bios_plan_list/1"] = field(default="nodeprep.bios_plan_list/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosStateList:
    """`nodeprep.bios_list/1`: as BiosPlanList."""

    hosts: Mapping[str, BiosState]
    errors: Mapping[str, ErrorDocument]
    schema: Literal["nodeprep.bios_list/1"] = field(default="nodeprep.bios_list/1")
