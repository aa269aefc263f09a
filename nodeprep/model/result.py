"""CheckResult: one check's answer about one subject, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nodeprep.model.policy import Waiver

Status = Literal["PASS", "FAIL", "SKIPPED", "ERROR"]
Verdict = Literal["certified", "rejected", "inconclusive"]
Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check found.

    Attributes:
        id: The check, which is also its file and its page in docs/checks/.
        subject: "node", or the PCI address of the GPU or hop it speaks of.
        reason: One sentence a person can act on. For SKIPPED the named reason why it does not
            apply; for ERROR what could not be read.
        evidence: Where the figures stand, for example "facts.before#/nvml/gpus/0/ecc".
        waiver: Set when somebody answers for it; status is then SKIPPED and `waived_status` what it was.
    """

    id: str
    subject: str
    status: Status
    reason: str
    measured: Scalar | None = None
    limit: Scalar | None = None
    unit: str = ""
    source: str = ""
    evidence: tuple[str, ...] = ()
    waiver: Waiver | None = None
    waived_status: Status | None = None


Effect = Literal["in_effect", "not_in_effect", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """`nodeprep.verification/1`: the effect checks of one node, without load.

    It never says "certified": that word is for nodes that were loaded.
    """

    host: str
    simulated: bool
    profile: str
    policy_digest: str
    outcome: Effect
    checks: tuple[CheckResult, ...]
    schema: Literal["nodeprep.verification/1"] = field(default="nodeprep.verification/1")
