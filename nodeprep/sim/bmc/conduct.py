"""How a BMC behaves: everything that differs from vendor to vendor, or that a fault changes.

A vendor is a value (vendors.py), a fault changes one value into another (faults.py), and the rest of the
simulator only reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConduct:
    """The connection, below Redfish. Numbers count requests; 0 is never.

    Attributes:
        drop_every: Every n-th request loses its connection before the answer.
        reset_after: A connection is reset (TCP RST) at the request after n answered ones.
        half_every: The answer to every n-th GET is cut in the middle.
        close_each: Every answer closes its connection.
        lost_answers: So many changing requests are carried out, and their answers are lost.
        hang: No request gets an answer.
        delay_s: Seconds before each answer.
    """

    drop_every: int = 0
    reset_after: int = 0
    half_every: int = 0
    close_each: bool = False
    lost_answers: int = 0
    hang: bool = False
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyConduct:
    """Whether the service answers at all.

    Attributes:
        busy_every: Every n-th request gets 503; 1 is all of them.
        retry_after: The Retry-After header of a 503; "date" is the HTTP date of the next second, "" none.
        not_ready_s: Seconds after the start, and after a reset of the host, in which nothing but the
            service root is ready.
        not_ready_status: HTTP status of that answer.
    """

    busy_every: int = 0
    retry_after: str = "1"
    not_ready_s: float = 0.0
    not_ready_status: int = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginConduct:
    """Who is let in.

    Attributes:
        session_limit: Sessions at a time.
        sessions_taken: All of them belong to somebody else.
        session_requests: A session ends after so many requests; 0 is never.
        open: Nobody is asked for a login.
    """

    basic: bool = True
    sessions: bool = True
    session_limit: int = 16
    sessions_taken: bool = False
    session_requests: int = 0
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeConduct:
    """The shape of the tree, apart from what the dump says.

    Attributes:
        any_case: Upper and lower case in URIs are the same.
        slash_redirect: 308 to the form with a slash at the end, where a resource calls itself so.
        redirect_abroad: BIOS resources redirect to another host.
        gzip_registries: Registries come compressed, asked for or not.
        bios: False: the system has no BIOS resource.
        settings: False: nothing takes BIOS settings.
        registry: False: the attribute registry is nowhere.
        settings_object: False: @Redfish.Settings names no resource.
        reset_types: False: nothing says which types of reset there are.
        null_attributes: So many attributes read null.
        attributes_list: Attributes is a list, which no schema allows.
        errors: How errors are told: with extended information, with a bare HTTP reason, or as a page.
    """

    any_case: bool = False
    slash_redirect: bool = False
    redirect_abroad: bool = False
    gzip_registries: bool = False
    bios: bool = True
    settings: bool = True
    registry: bool = True
    settings_object: bool = True
    reset_types: bool = True
    null_attributes: int = 0
    attributes_list: bool = False
    errors: Literal["extended", "bare", "html"] = "extended"


IfMatch = Literal["ignored", "checked", "required", "star", "strong"]
EtagForm = Literal["dump", "none", "weak", "strong", "double", "dummy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EtagConduct:
    """ETags of the settings resource.

    Attributes:
        if_match: ignored; checked (must fit where given); required as well; star (only `*` gets through);
            strong (a weak one never fits).
        form: How the ETag header is written; "dump" as the dump has it.
        races: So many requests find that somebody else changed the settings in between.
    """

    if_match: IfMatch = "checked"
    form: EtagForm = "dump"
    races: int = 0


ApplyTime = Literal["ignored", "job", "refused"]
Checks = Literal["when_sent", "after_post", "types_only"]
Refusal = Literal["", "licence", "lockdown", "bios_password"]
Drop = Literal["none", "grayed", "first", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingConduct:
    """What happens to settings that are sent.

    Attributes:
        methods: HTTP methods that change the settings resource.
        on_current: Settings may also be sent to the Bios resource itself.
        status: HTTP status of success.
        absent_when_empty: GET of the settings resource is 404 while nothing waits.
        omits_empty: Without waiting settings it has no Attributes.
        apply_time: What `@Redfish.SettingsApplyTime` does: nothing, a job, a refusal.
        checks: When values are judged.
        unknown_is_value: An attribute that does not exist is told as a value that is not in a list.
        partial: Good attributes of a batch are taken when others are refused.
        refused_in_post: Nothing is taken while the host is in POST.
        refuses: Why nothing is ever taken.
        drops: Which accepted settings never come into force: none, those that the registry grays out,
            the first of a batch, all.
        messages: Results stand in @Redfish.Settings of the Bios resource after POST.
        early: The Bios resource shows new values when POST begins, whatever becomes of them.
    """

    methods: tuple[str, ...] = ("PATCH",)
    on_current: bool = False
    status: int = 200
    absent_when_empty: bool = False
    omits_empty: bool = False
    apply_time: ApplyTime = "ignored"
    checks: Checks = "when_sent"
    unknown_is_value: bool = False
    partial: bool = False
    refused_in_post: bool = False
    refuses: Refusal = ""
    drops: Drop = "none"
    messages: bool = False
    early: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConduct:
    """Jobs of BMCs that have them.

    Attributes:
        new_s: Seconds before a job is scheduled; a boot in between does not run it.
        stuck: A job stays New.
        result: How it ends.
        foreign: A job of somebody else: none, a waiting one for BIOS settings, or for a RAID controller.
        locked: No job can be made: another one holds the lock.
        location: Whether the answer names the job.
    """

    new_s: float = 0.0
    stuck: bool = False
    result: Literal["Completed", "Failed", "CompletedWithErrors"] = "Completed"
    foreign: Literal["", "bios", "raid"] = ""
    locked: bool = False
    location: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerConduct:
    """The host behind the BMC. Seconds.

    Attributes:
        post_s: Length of POST; None is the time that the caller of the simulator chose.
        off_s: From ForceOff until the host is off.
        off_wait_s: An On sooner than this after the host went off is accepted and lost.
        graceful_s: From a graceful request until the host is off.
        graceful: False: the operating system never answers.
        restart: False: ForceRestart and GracefulRestart leave the host hanging in POST.
        post_ends: False: POST never ends.
        refused: Resets are refused.
    """

    post_s: float | None = None
    off_s: float = 0.0
    off_wait_s: float = 0.0
    graceful_s: float = 0.5
    graceful: bool = True
    restart: bool = True
    post_ends: bool = True
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """All of it.

    Attributes:
        vendor: Whose BMC it behaves like.
        base: Prefix of DMTF's messages, with version.
        oem: Prefix of the vendor's own.
    """

    vendor: str
    base: str = "Base.1.8"
    oem: str = ""
    link: LinkConduct = field(default_factory=LinkConduct)
    ready: ReadyConduct = field(default_factory=ReadyConduct)
    login: LoginConduct = field(default_factory=LoginConduct)
    tree: TreeConduct = field(default_factory=TreeConduct)
    etag: EtagConduct = field(default_factory=EtagConduct)
    staging: StagingConduct = field(default_factory=StagingConduct)
    jobs: JobConduct = field(default_factory=JobConduct)
    power: PowerConduct = field(default_factory=PowerConduct)
