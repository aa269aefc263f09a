"""Is the node still what its certificate says? Names exactly what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodeprep.certify.configuration import configuration_of
from nodeprep.certify.identity import identity_of, is_readable
from nodeprep.errors import ExitCode, worst
from nodeprep.model.certificate import Certificate, Identity
from nodeprep.model.facts import NodeFacts
from nodeprep.model.outputs import Difference, Drift

_ABSENT = "absent"


def compare(certificate: Certificate, facts: NodeFacts, *, file: str = "") -> Drift:
    """What of a certificate is no longer so.

    What the certificate itself could not read it does not vouch for, so that is not compared. What
    it vouches for and cannot be read now is "unreadable": no answer, and not "no drift".

    Args:
        certificate: As verified.
        facts: The node as it is now.
        file: The certificate's file, for the document.
    """
    found = tuple(_differences(certificate, facts))
    return Drift(
        host=facts.host,
        certificate=file,
        drifted=any(each.kind != "unreadable" for each in found),
        comparable=all(each.kind != "unreadable" for each in found),
        differences=found,
    )


def exit_code(drift: Drift) -> ExitCode:
    """0 as certified, 10 drifted, 21 something could not be compared; not knowing outranks."""
    return worst(
        [
            ExitCode.DRIFT if drift.drifted else ExitCode.OK,
            ExitCode.OK if drift.comparable else ExitCode.INCONCLUSIVE,
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
    for prefix, why in hidden.items():
        yield Difference(key=prefix.rstrip("."), certified="readable", now=why, kind="unreadable")
    for key in sorted(certified.keys() | now.keys()):
        if not any(key.startswith(prefix) for prefix in hidden):
            yield from _difference(key, certified, now)


def _difference(key: str, certified: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Difference]:
    was, present = certified.get(key, _ABSENT), now.get(key, _ABSENT)
    if was == present or not is_readable(was):
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
