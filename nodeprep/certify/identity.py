"""Which machine a certificate speaks of.

The digest of the identity is the statement's subject, so it holds exactly what makes the machine
this one: serials and UUIDs of machine and GPUs, and the models they belong to. What an upgrade or a
BIOS setting changes (BIOS and VBIOS versions, PCI addresses, CPU and memory counts) is shown in the
identity and compared by drift, and does not make it another machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from nodeprep.model.certificate import GpuIdentity, Identity
from nodeprep.model.codec import digest
from nodeprep.model.facts import Gpu, NodeFacts
from nodeprep.model.reading import Reading

UNREADABLE = "unreadable: "
NOT_SUPPORTED = "not supported"

# What board makers leave in the fields they forget to fill; two such machines would be "the same".
_PLACEHOLDERS = frozenset(
    {
        "",
        "0",
        "none",
        "n/a",
        "na",
        "unknown",
        "not specified",
        "not available",
        "not applicable",
        "default string",
        "to be filled by o.e.m.",
        "system serial number",
        "base board serial number",
        "0123456789",
        "123456789",
        "03000200-0400-0500-0006-000700080009",
    }
)


def text_of(reading: Reading[Any]) -> str:
    """A reading as a certificate writes it; what could not be read says so."""
    if reading.value is not None:
        value = reading.value
        if isinstance(value, bool):
            return "true" if value else "false"
        return f"{value:g}" if isinstance(value, float) else str(value)
    if reading.state == "not_supported":
        return NOT_SUPPORTED
    return UNREADABLE + (reading.detail or "no reason given")


def is_readable(text: str) -> bool:
    """Whether a text of an identity or configuration is a value."""
    return not text.startswith(UNREADABLE)


def identity_of(facts: NodeFacts) -> Identity:
    """The identity of a node, GPUs in the order of their PCI addresses."""
    dmi = facts.dmi
    return Identity(
        product=_joined(dmi.sys_vendor, dmi.product_name),
        product_serial=text_of(dmi.product_serial),
        product_uuid=text_of(dmi.product_uuid),
        board=_joined(dmi.board_vendor, dmi.board_name),
        board_serial=text_of(dmi.board_serial),
        bios_version=text_of(dmi.bios_version),
        bmc=_bmc(facts),
        cpu_model=text_of(facts.cpu.model),
        cpu_count=facts.cpu.present.value,
        memory_bytes=facts.memory.total_bytes.value,
        gpus=tuple(sorted(_gpus(facts), key=lambda gpu: gpu.pci_address)),
    )


def identity_digest(identity: Identity) -> str:
    """SHA-256 (hex) of what makes a machine this one, in canonical JSON.

    What is missing, unreadable or a maker's placeholder counts as null: its wording must not make
    one machine two.
    """
    gpus = [[_unique(gpu.uuid), _unique(gpu.serial), _unique(gpu.name)] for gpu in identity.gpus]
    return digest(
        {
            "product": _unique(identity.product),
            "product_serial": _unique(identity.product_serial),
            "product_uuid": _unique(identity.product_uuid),
            "board": _unique(identity.board),
            "board_serial": _unique(identity.board_serial),
            "cpu_model": _unique(identity.cpu_model),
            "gpus": sorted([part or "" for part in gpu] for gpu in gpus if any(gpu)),
        }
    )


def machine_key(facts: NodeFacts) -> str:
    """What tells a machine from others although its GPUs are replaced; its inventory name at worst."""
    dmi = facts.dmi
    for reading in (dmi.product_uuid, dmi.product_serial, dmi.board_serial):
        found = _unique(text_of(reading))
        if found:
            return found
    return facts.host


def identity_problems(facts: NodeFacts) -> Iterator[str]:
    """Why a certificate could not say which machine it speaks of; nothing when it can.

    A machine without SMBIOS (some virtual machines) is told by its GPUs. A machine whose serials
    could not be read, most often for want of root, is not.
    """
    dmi = facts.dmi
    named = {
        "product_uuid": dmi.product_uuid,
        "product_serial": dmi.product_serial,
        "board_serial": dmi.board_serial,
    }
    unread = {name: reading for name, reading in named.items() if reading.state == "error"}
    if unread and not any(_unique(text_of(reading)) for reading in named.values()):
        listed = "; ".join(f"{name}: {reading.detail}" for name, reading in unread.items())
        yield f"the machine cannot be told from another: {listed} (hint: observe as root)"
    gpus = facts.nvml.gpus
    if gpus.value is None:
        yield f"the GPUs cannot be told from others: {gpus.detail}"
        return
    if not gpus.value:
        yield "the node has no GPU that NVML knows"
    for gpu in gpus.value:
        if gpu.uuid.value is None:
            yield f"GPU {gpu.pci_address} cannot be told from another: UUID {text_of(gpu.uuid)}"


def _bmc(facts: NodeFacts) -> str:
    if facts.bios.value is None:
        return UNREADABLE + (facts.bios.detail or "no reason given")
    told = facts.bios.value.bmc
    return f"{told.vendor} {told.model}, firmware {told.bmc_firmware or 'not told'}"


def _gpus(facts: NodeFacts) -> Iterator[GpuIdentity]:
    known: set[str] = set()
    for gpu in facts.nvml.gpus.value or ():
        known.add(gpu.pci_address)
        yield _gpu(gpu)
    for path in facts.pci.gpu_paths.value or ():
        if path.gpu not in known:
            why = UNREADABLE + (facts.nvml.gpus.detail or "NVML does not know this GPU")
            yield GpuIdentity(pci_address=path.gpu, uuid=why, serial=why, name=why, vbios_version=why)


def _gpu(gpu: Gpu) -> GpuIdentity:
    return GpuIdentity(
        pci_address=gpu.pci_address,
        uuid=text_of(gpu.uuid),
        serial=text_of(gpu.serial),
        name=text_of(gpu.name),
        vbios_version=text_of(gpu.vbios_version),
    )


def _joined(maker: Reading[str], name: Reading[str]) -> str:
    if maker.value is None or name.value is None:
        return text_of(name if name.value is None else maker)
    return f"{maker.value} {name.value}".strip()


def _unique(text: str) -> str | None:
    """The text if it can tell one machine from another."""
    if not is_readable(text) or text == NOT_SUPPORTED:
        return None
    plain = text.strip().lower()
    if plain in _PLACEHOLDERS or re.fullmatch(r"[0\-]+|[f\-]+", plain):
        return None
    return text.strip()
