"""Is the node still what its certificate says? Names exactly what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from nodeprep.certify.configuration import COUNT_OF_GROUP, configuration_of, same
from nodeprep.certify.identity import identity_of, is_readable
from nodeprep.errors import ExitCode, worst
from nodeprep.model.certificate import Certificate, Identity
from nodeprep.model.facts import NodeFacts
from nodeprep.model.outputs import CertificateCheck, Difference, Drift

_ABSENT = "absent"


# A certificate refused for another reason is none: there is nothing to compare with.
_STILL_COMPARED = frozenset({"", "rejected", "inconclusive", "expired", "not_yet_valid"})


def can_compare(check: CertificateCheck) -> bool:
    """Whether a certificate says what a node was like, be it certified, rejected or expired.

    Args:
        check: From `verify`, with simulated certificates allowed: that of a simulated node is
            compared with that node, and one kind with the other is a difference.
    """
    return check.problem in _STILL_COMPARED and check.signature_valid


def compare(certificate: Certificate, facts: NodeFacts, check: CertificateCheck, *, now: datetime) -> Drift:
    """What of a certificate is no longer so, and whether the certificate holds at all.

    What the certificate itself could not read it does not vouch for, so that is not compared. What
    it vouches for and cannot be read now is "unreadable": no answer, and not "no drift".

    Args:
        certificate: As verified.
        facts: The node as it is now.
        check: What `verify` said of the certificate.
        now: The present time, with a time zone.
    """
    found = tuple(_differences(certificate, facts))
    return Drift(
        host=facts.host,
        certificate=check.file,
        simulated=certificate.simulated or facts.simulated,
        verdict=certificate.verdict,
        valid=check.accepted,
        problem=check.problem,
        message=check.message,
        expires=certificate.expires,
        expired=now >= datetime.fromisoformat(certificate.expires),
        drifted=any(each.kind != "unreadable" for each in found),
        comparable=all(each.kind != "unreadable" for each in found),
        differences=found,
    )


def exit_code(drift: Drift) -> ExitCode:
    """0 as certified, 10 drifted, 20 the certificate does not hold, 21 it or the comparison is open."""
    undecided = drift.problem == "inconclusive" or not drift.comparable
    return worst(
        [
            ExitCode.OK if drift.valid or drift.problem == "inconclusive" else ExitCode.REJECTED,
            ExitCode.INCONCLUSIVE if undecided else ExitCode.OK,
            ExitCode.DRIFT if drift.drifted else ExitCode.OK,
        ]
    )


def _differences(certificate: Certificate, facts: NodeFacts) -> Iterator[Difference]:
    if certificate.simulated != facts.simulated:
        yield Difference(
            key="simulated", certified=str(certificate.simulated), now=str(facts.simulated), kind="changed"
        )
    certified = {**_flat(certificate.identity), **certificate.configuration.values}
    now = {**_flat(identity_of(facts)), **configuration_of(facts).values}
    hidden = dict(_hidden(facts))
    unvouched = tuple(_unvouched(certified))
    for prefix, why in hidden.items():
        if any(key.startswith(prefix) and is_readable(text) for key, text in certified.items()):
            yield Difference(key=prefix.rstrip("."), certified="readable", now=why, kind="unreadable")
    for key in sorted(certified.keys() | now.keys()):
        if not key.startswith((*hidden, *unvouched)):
            yield from _difference(key, certified, now)


def _difference(key: str, certified: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Difference]:
    was, present = certified.get(key, _ABSENT), now.get(key, _ABSENT)
    if same(key, was, present) or not is_readable(was):
        return
    if not is_readable(present):
        yield Difference(key=key, certified=was, now=present, kind="unreadable")
    elif key not in now:
        yield Difference(key=key, certified=was, now=present, kind="missing")
    elif key not in certified:
        yield Difference(key=key, certified=was, now=present, kind="added")
    else:
        yield Difference(key=key, certified=was, now=present, kind="changed")


def _hidden(facts: NodeFacts) -> Iterator[tuple[str, str]]:
    """Whole groups of keys that cannot be seen now, each told once instead of key by key."""
    if facts.nvml.gpus.value is None:
        yield "gpu.", f"unreadable: {facts.nvml.gpus.detail}"
        yield "nvml.", f"unreadable: {facts.nvml.gpus.detail}"
    if facts.pci.devices.value is None or facts.pci.gpu_paths.value is None:
        detail = facts.pci.devices.detail or facts.pci.gpu_paths.detail
        yield "pci.", f"unreadable: {detail}"
    if facts.nics.value is None:
        yield "nic", f"unreadable: {facts.nics.detail}"
    if facts.aer_ownership.root_bridges.value is None:
        yield "aer.bridge", f"unreadable: {facts.aer_ownership.root_bridges.detail}"
    if facts.bios.value is None:
        yield "bios.knob", f"unreadable: {facts.bios.detail}"


def _unvouched(certified: Mapping[str, str]) -> Iterator[str]:
    """Groups whose members the certificate could not list: that there are some now is no news."""
    for group, count in COUNT_OF_GROUP.items():
        # A group that is younger than the certificate has no count there.
        if count not in certified or not is_readable(certified[count]):
            yield group


def _flat(identity: Identity) -> dict[str, str]:
    """The identity in the same flat form as the configuration."""
    values = {
        "machine.product": identity.product,
        "machine.product_serial": identity.product_serial,
        "machine.product_uuid": identity.product_uuid,
        "machine.board": identity.board,
        "machine.board_serial": identity.board_serial,
        "bios.version": identity.bios_version,
        "bmc": identity.bmc,
        "cpu.model": identity.cpu_model,
        "cpu.present": _number(identity.cpu_count),
    }
    for gpu in identity.gpus:
        at = f"gpu.{gpu.pci_address}"
        values[f"{at}.uuid"] = gpu.uuid
        values[f"{at}.serial"] = gpu.serial
        values[f"{at}.name"] = gpu.name
        values[f"{at}.vbios_version"] = gpu.vbios_version
    return values


def _number(value: int | None) -> str:
    return "unreadable: no count" if value is None else str(value)
