"""The catalogue's manual pages, from its data: `python -m nodeprep.diagnose.pages docs/diagnose`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from nodeprep.diagnose import catalog
from nodeprep.diagnose.rules import all_rules

_ROLES = {
    "fault": "",
    "notice": "for information",
    "consequence": "follows another error and weighs nothing",
    "recovery": "its number decides",
    "nvlink5": "its sub-code decides",
    "unknown": "no meaning published: shown raw",
}


def render(name: str) -> str:
    """One page, as Markdown."""
    return "\n".join(PAGES[name]()) + "\n"


def _xid() -> Iterator[str]:
    yield "# Xid"
    yield ""
    yield (
        "What the driver's error codes mean, in this project's words. Layer, severity and the "
        "first thing to do hold for a code"
    )
    yield (
        "that is seen alone; `nodeprep diagnose` weighs what goes with it. A code that is not "
        "here is shown raw and reported."
    )
    yield ""
    yield "| Code | Meaning | Layer | Severity | First | Remarks |"
    yield "|---|---|---|---|---|---|"
    unknown: list[int] = []
    for entry in catalog.all_xid().values():
        if entry.role == "unknown":
            unknown.append(entry.code)
            continue
        remarks = "; ".join(
            words for words in (_ROLES[entry.role], entry.since and f"since {entry.since}") if words
        )
        remarks = f"{remarks}. {entry.advice}" if remarks and entry.advice else remarks or entry.advice
        yield (
            f"| {entry.code} | {entry.meaning} | {entry.layer} | {entry.severity} | {entry.action} "
            f"| {remarks} |"
        )
    yield ""
    yield "Listed by the vendor without a meaning, and shown raw: " + ", ".join(map(str, unknown)) + "."
    yield from _sources("xid", {name for entry in catalog.all_xid().values() for name in entry.sources})


def _sxid() -> Iterator[str]:
    yield "# SXid"
    yield ""
    yield (
        "Errors of NVSwitches up to Hopper. The driver prints whether one is fatal; listed here "
        "are those for which that word"
    )
    yield (
        "misleads or needs more. For all others the line itself counts: fatal is critical, "
        "non-fatal a warning."
    )
    yield ""
    yield "| Code | Meaning | Layer | Severity | First |"
    yield "|---|---|---|---|---|"
    for entry in catalog.all_sxid():
        code = str(entry.first) if entry.first == entry.last else f"{entry.first}-{entry.last}"
        yield f"| {code} | {entry.meaning} | {entry.layer} | {entry.severity} | {entry.action} |"
    yield from _sources("sxid", {name for entry in catalog.all_sxid() for name in entry.sources})


def _aer() -> Iterator[str]:
    yield "# PCI Express errors (AER)"
    yield ""
    yield (
        "The names differ between kernels; the bit does not. What an error points at: signal = "
        "the electrical link, lost = the"
    )
    yield (
        "link itself went away, silent = the other end no longer answered, config = software or "
        "settings, data = a broken packet,"
    )
    yield "internal = the device reports on itself."
    yield ""
    yield "| Id | Class | Bit | Names | Meaning | Points at |"
    yield "|---|---|---|---|---|---|"
    for entry in catalog.all_aer().values():
        names = ", ".join(f"`{name}`" for name in entry.names)
        yield (
            f"| {entry.id} | {entry.error_class} | {entry.bit} | {names} | {entry.meaning} | "
            f"{entry.reading} |"
        )
    yield from _sources("aer", {name for entry in catalog.all_aer().values() for name in entry.sources})


def _cuda() -> Iterator[str]:
    yield "# CUDA errors"
    yield ""
    yield "What a program is told, and which Xid the kernel log of the node should show beside it."
    yield ""
    yield "| Code | Printed as | Meaning | Layer | Severity | First | Xid beside it |"
    yield "|---|---|---|---|---|---|---|"
    for entry in catalog.all_cuda().values():
        beside = ", ".join(map(str, entry.xids)) or "none"
        yield (
            f"| {entry.code} | {entry.text} | {entry.meaning} | {entry.layer} | {entry.severity} | "
            f"{entry.action} | {beside} |"
        )
    yield from _sources("cuda", {name for entry in catalog.all_cuda().values() for name in entry.sources})


def _recovery() -> Iterator[str]:
    yield "# Recovery actions"
    yield ""
    yield (
        "What Xid 154, NVML field 230 and `nvidia-smi -q` ask for. The last one is the state; 0 "
        "means that the GPU has recovered."
    )
    yield ""
    yield "| Number | Words of the driver | Meaning | Severity | First | Since |"
    yield "|---|---|---|---|---|---|"
    for entry in catalog.all_recovery().values():
        yield (
            f"| {entry.code} | {', '.join(entry.words)} | {entry.meaning} | {entry.severity} | "
            f"{entry.action} | {entry.since} |"
        )
    yield from _sources(
        "recovery", {name for entry in catalog.all_recovery().values() for name in entry.sources}
    )


def _event_log() -> Iterator[str]:
    yield "# Event logs of BMCs"
    yield ""
    yield (
        "What entries of SEL, IML, lifecycle log and their like mean. An entry over Redfish is known "
        "by the maker's message id,"
    )
    yield (
        "else by its words; one that is neither is shown raw: a critical one as a warning, a warning as "
        "information. One over IPMI"
    )
    yield (
        "is known by its words; what none fit is shown raw as information, but for what the standard knows "
        "to be no trouble"
    )
    yield (
        "(parts that are present, states that are well, boots, buttons, power states, the log itself). "
        "What a later entry of the"
    )
    yield "same sensor ends is a step less grave. Entries that the BMC calls OK are no trouble."
    yield ""
    yield "| Kind | Meaning | Layer | Severity | First |"
    yield "|---|---|---|---|---|"
    for kind in catalog.event_log_kinds().values():
        yield f"| `{kind.id}` | {kind.summary} | {kind.layer} | {kind.severity} | {kind.action} |"
    yield ""
    yield "Kinds of memory and CPU errors are judged together with what the kernel says of them."
    yield ""
    yield "| Message ids | Say | Kind |"
    yield "|---|---|---|"
    for entry in catalog.event_log().messages:
        kind_of = f"`{entry.kind}`" if entry.kind else "no trouble"
        yield f"| {', '.join(entry.ids)} | {entry.meaning} | {kind_of} |"
    sources = [entry.sources for entry in catalog.event_log().messages]
    sources += [entry.sources for entry in catalog.event_log().words]
    yield from _sources("event_log", {name for each in sources for name in each})


def _nvlink5() -> Iterator[str]:
    yield "# NVLink 5 (Xid 144 to 150)"
    yield ""
    yield (
        "Severity and action come from the unit, the first word and the error status in the line, "
        "not from the Xid."
    )
    yield "The layout of the first word changed with driver R575."
    yield ""
    yield "| Xid | Unit | Error status | Fatal | First | Then | Caused by |"
    yield "|---|---|---|---|---|---|---|"
    for rule in catalog.nvlink5_rules():
        yield (
            f"| {rule.xid} | {rule.unit} | {rule.status_bit:#010x} | {rule.fatal} | "
            f"{rule.immediate.replace('_', ' ')} | "
            f"{rule.investigate.replace('_', ' ')} | {rule.cause.replace('_', ', ')} |"
        )
    yield from _sources("nvlink5", {"nvidia_sheet"})


def _rules() -> Iterator[str]:
    yield "# Rules"
    yield ""
    yield (
        "In the order in which they look. What one explains, no later one explains again, so "
        "causes come before consequences."
    )
    yield ""
    yield "| Rule | What it looks for |"
    yield "|---|---|"
    for rule in all_rules():
        words = (sys.modules[rule.explain.__module__].__doc__ or "").strip().splitlines()[0]
        yield f"| `{rule.id}` | {words} |"


def _sources(family: str, names: Iterable[str]) -> Iterator[str]:
    yield ""
    yield "Sources:"
    yield ""
    for source in catalog.sources(family, sorted(names)):
        yield f"- {source}"


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "aer": _aer,
    "cuda": _cuda,
    "event_log": _event_log,
    "nvlink5": _nvlink5,
    "recovery": _recovery,
    "rules": _rules,
    "sxid": _sxid,
    "xid": _xid,
}


def main(folder: Path) -> None:
    """Writes all pages."""
    for name in PAGES:
        (folder / f"{name}.md").write_text(render(name), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
