"""A kernel argument stands in the defaults file, and the boot entries never got it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._boot import missing, wanted
from nodeprep.diagnose.rules._words import arguments, listed


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host."""
    for host in evidence.hosts:
        running = evidence.seen("boot.cmdline", host=host)
        variables = evidence.open("boot.grub_variable", host=host)
        if not running or not variables:
            continue
        kept, _ = wanted(variables)
        lost = missing(kept, running[-1])
        if not lost:
            continue
        entries = evidence.seen("boot.entry", host=host)
        told = [event for event in variables if set(lost) & set(event.data["args"])]
        bls = _is_bls(evidence, host)
        other = not _is_of_grub(running[-1])
        run = evidence.seen("boot.mkconfig_run", "boot.update_grub_run", host=host)
        yield Finding(
            layer="config",
            severity="warning",
            summary=f"{arguments(lost)} in the defaults file and not in effect",
            why=_why(lost, bls, other, run, entries),
            events=(*told, *run, *evidence.seen("boot.bls_on", host=host), *entries, running[-1]),
            action="fix_config",
            then=(
                "write_to_kernel_cmdline"
                if other
                else "write_with_grubby_or_update_bls_cmdline"
                if bls
                else "run_update_grub",
                "verify_proc_cmdline_after_reboot",
            ),
            root_event="boot.grub_variable",
            count=1,
        )


def _is_bls(evidence: Evidence, host: str) -> bool:
    """Whether boot entries live in files of their own, as on RHEL from 9.3 and Fedora."""
    if evidence.seen("boot.bls_on", "boot.entry", host=host):
        return True
    return any(
        name in str(event.data["value"])
        for event in evidence.seen("os.release", host=host)
        for name in ("Red Hat", "Rocky", "AlmaLinux", "CentOS", "Oracle", "Fedora")
    )


def _is_of_grub(running: Event) -> bool:
    """Whether GRUB started this kernel: another loader names the initrd by its EFI path."""
    words = [str(word) for word in running.data["args"]]
    return any(word.startswith("BOOT_IMAGE=") for word in words) or not any(
        word.startswith("initrd=\\") for word in words
    )


def _why(lost: list[str], bls: bool, other: bool, run: list[Event], entries: list[Event]) -> str:
    parts = [f"/proc/cmdline lacks {listed(lost)}, which the defaults file has."]
    if other:
        parts.append(
            "The machine does not boot through GRUB but through systemd-boot or the EFI stub, which read "
            "/etc/kernel/cmdline; update-grub changes nothing there."
        )
    elif bls:
        parts.append(
            "From RHEL 9.3 on grub2-mkconfig leaves the boot loader entries alone"
            + (", so running it changed nothing and another reboot changes nothing." if run else ".")
        )
        if entries and not any(set(lost) & set(event.data["args"]) for event in entries):
            parts.append("The boot entry itself does not have it.")
    else:
        parts.append("The boot configuration was not made anew after the edit, or another file undoes it.")
    return " ".join(parts)


RULE = Rule(id="boot_entry_stale", rank=67, explain=explain)
