"""What commands print with `--json`, beyond the documents of one node.

For several hosts a command prints a *_list document; with exactly one host asked for, that host's
own document (docs/adr/0020).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nodeprep.errors import Problem
from nodeprep.model.bios import BiosApplication
from nodeprep.model.diagnosis import Diagnosis
from nodeprep.model.facts import NodeFacts
from nodeprep.model.golden import Standing
from nodeprep.model.plan import Plan
from nodeprep.model.result import Verdict, Verification
from nodeprep.model.run import Run
from nodeprep.model.trial import TrialReport


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsList:
    """`inspect` of several hosts; hosts without facts are in `run.hosts` with their error."""

    run: Run
    hosts: Mapping[str, NodeFacts]
    schema: Literal["nodeprep.facts_list/1"] = field(default="nodeprep.facts_list/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisList:
    """`diagnose --host` of several hosts."""

    run: Run
    hosts: Mapping[str, Diagnosis]
    schema: Literal["nodeprep.diagnosis_list/1"] = field(default="nodeprep.diagnosis_list/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanList:
    """`plan` of several hosts."""

    run: Run
    hosts: Mapping[str, Plan]
    schema: Literal["nodeprep.plan_list/1"] = field(default="nodeprep.plan_list/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """`nodeprep.apply/1`: what `apply` found, did and found afterwards on one host."""

    host: str
    simulated: bool
    state: Literal["unchanged", "applied", "armed", "failed", "skipped"]
    """armed: what was written waits for the next boot, and none was to be caused."""
    before: Plan
    after: Plan | None
    trial: TrialReport | None = None
    """The trial boot of new kernel arguments; None when none was due."""
    bios: tuple[BiosApplication, ...] = ()
    """What was done to the BIOS, in its order: staged, in effect, and taken back where that failed."""
    error: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()
    """What an operator should know, such as a limit that will not survive a reboot."""
    schema: Literal["nodeprep.apply/1"] = field(default="nodeprep.apply/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationList:
    """`apply` of several hosts."""

    run: Run
    hosts: Mapping[str, Application]
    schema: Literal["nodeprep.apply_list/1"] = field(default="nodeprep.apply_list/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """`nodeprep.rollback/1`: what `rollback` took back on one host."""

    host: str
    simulated: bool
    state: Literal["nothing", "restored", "reboot_needed", "failed"]
    """nothing: nodeprep has changed nothing here that could be taken back."""
    restored: tuple[str, ...]
    """Groups of settings that are as before nodeprep: kernel_args, gpu_power, pcie_link, bios."""
    cmdline_before: str
    cmdline_after: str
    """Kernel arguments of the running kernel, as read after the roll-back; "" when they were not read."""
    bios: tuple[BiosApplication, ...] = ()
    """What was done to the BIOS, in its order."""
    error: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()
    schema: Literal["nodeprep.rollback/1"] = field(default="nodeprep.rollback/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackList:
    """`rollback` of several hosts."""

    run: Run
    hosts: Mapping[str, Rollback]
    schema: Literal["nodeprep.rollback_list/1"] = field(default="nodeprep.rollback_list/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationList:
    """`verify` of several hosts."""

    run: Run
    hosts: Mapping[str, Verification]
    schema: Literal["nodeprep.verification_list/1"] = field(default="nodeprep.verification_list/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateList:
    """`certify` of several hosts: a DSSE envelope each."""

    run: Run
    hosts: Mapping[str, Mapping[str, Any]]
    schema: Literal["nodeprep.certificate_list/1"] = field(default="nodeprep.certificate_list/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDocument:
    """What `--json` prints when a command ends with an error and has nothing else to say."""

    exit_code: int
    error: str
    hint: str = ""
    problems: tuple[Problem, ...] = ()
    schema: Literal["nodeprep.error/1"] = field(default="nodeprep.error/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateCheck:
    """What `cert verify` found: the signature and the verdict it vouches for are two questions."""

    file: str
    accepted: bool
    signature_valid: bool
    problem: str
    """Short name of what is wrong: "" when accepted; for example "wrong_key", "expired"."""
    message: str
    host: str = ""
    verdict: str = ""
    simulated: bool | None = None
    expires: str = ""
    key_id: str = ""
    waivers: tuple[str, ...] = ()
    """What the verdict leaves out because somebody answers for it: one line a waiver that was used."""
    schema: Literal["nodeprep.certificate_check/1"] = field(default="nodeprep.certificate_check/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One fact of a certificate that is no longer so."""

    key: str
    certified: str
    now: str
    kind: Literal["changed", "missing", "added", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What `cert drift` found: whether the certificate holds, and how the node differs from it."""

    host: str
    certificate: str
    simulated: bool
    """The certificate or the node is simulated."""
    verdict: Verdict
    """Of the certificate."""
    valid: bool
    """It certifies the node today. "No differences" from one that does not is no good news."""
    problem: str
    """Why it is not valid, as `cert verify` names it: "rejected", "expired", ...; "" when it is."""
    message: str
    expires: str
    expired: bool
    drifted: bool
    comparable: bool
    """False when something could not be read now: no answer, not "no drift"."""
    differences: tuple[Difference, ...]
    schema: Literal["nodeprep.drift/1"] = field(default="nodeprep.drift/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One thing a controller needs."""

    name: str
    status: Literal["ok", "warning", "missing"]
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """What `doctor` found."""

    ready: bool
    findings: tuple[DoctorFinding, ...]
    schema: Literal["nodeprep.doctor/1"] = field(default="nodeprep.doctor/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """What `init` and `sim rack` wrote."""

    folder: str
    files: tuple[str, ...]
    next: str
    """The command to try next."""
    schema: Literal["nodeprep.created/1"] = field(default="nodeprep.created/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One demo node: what was broken on it, and whether nodeprep told it right."""

    host: str
    fault: str
    expected: str
    verdict: str
    told_right: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """What `demo` did."""

    folder: str
    report: str
    all_told_right: bool
    stories: tuple[Story, ...]
    duration_s: float
    schema: Literal["nodeprep.demo/1"] = field(default="nodeprep.demo/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWritten:
    """What `report` wrote."""

    run: str
    format: str
    file: str
    schema: Literal["nodeprep.report/1"] = field(default="nodeprep.report/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyBmc:
    """One BMC that can be spoken to."""

    url: str
    dump: str
    vendor: str
    """Whose BMC it behaves like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyBmcs:
    """`nodeprep.sim_bmc/1`: the BMCs that `sim bmc` serves."""

    url: str
    """Of the first one."""
    ca: str
    """File of the authority; "" without TLS."""
    fingerprint: str
    """SHA-256 of the server's certificate; "" without TLS."""
    user: str
    faults: tuple[str, ...]
    bmcs: tuple[ReadyBmc, ...]
    simulated: bool = True
    schema: Literal["nodeprep.sim_bmc/1"] = field(default="nodeprep.sim_bmc/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenAnswer:
    """Bits that some nodes gave; `digest` names them."""

    digest: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenEntry:
    """What is known of one GPU model, build and workload."""

    key: str
    model: str
    build: str
    workload: str
    workload_digest: str
    standing: Standing
    vouched_why: str
    answers: tuple[GoldenAnswer, ...]
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenList:
    """`golden show`, `learn` and `forget`: all that the site knows."""

    file: str
    entries: tuple[GoldenEntry, ...]
    damaged_lines: int
    trouble: str
    """Why the file could not be read; "" when it was."""
    schema: Literal["nodeprep.golden_list/1"] = field(default="nodeprep.golden_list/1")
