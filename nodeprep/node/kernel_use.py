"""How this kernel is used, where that forbids an argument, and which arguments it did not know.

Devices handed to virtual machines and confidential computing need the IOMMU; a locked-down kernel
refuses writes to configuration space; an argument the kernel never heard of looks set and does nothing.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List

from . import cpu
from .boot_log import boot_lines
from .kernel_cmdline import parse, words
from .paths import exists, list_folder, read_bytes, read_text
from .pci_address import addresses_in
from .reading import NotSupported, Reading, attempt

FIELDS = (
    "firmware",
    "secure_boot",
    "lockdown",
    "unknown_arguments",
    "vfio_devices",
    "virtual_functions",
    "confidential",
)

_EFI = "/sys/firmware/efi"
_EFI_VARIABLES = f"{_EFI}/efivars"
# Source: UEFI Specification 2.10, section 3.3 (EFI_GLOBAL_VARIABLE).
_SECURE_BOOT = f"{_EFI_VARIABLES}/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_ATTRIBUTE_BYTES = 4

_SECURITY = "/sys/kernel/security"
# Source: security/lockdown/lockdown.c; kernels with the older patches have the line and not the file.
_LOCKED_DOWN = "Kernel is locked down from"

_PCI_DEVICES = "/sys/bus/pci/devices"
_PCI_DRIVERS = "/sys/bus/pci/drivers"

# Hosts of guests that need the IOMMU or x2APIC: SEV-SNP and TDX. Plain SEV is not among them: every EPYC
# whose kernel loads kvm_amd says "Y" to it.
# Source: arch/x86/kvm/svm/sev.c, arch/x86/kvm/vmx/tdx.c; drivers/iommu/amd/init.c, iommu_snp_enable().
_CONFIDENTIAL_HOST = ("/sys/module/kvm_amd/parameters/sev_snp", "/sys/module/kvm_intel/parameters/tdx")
# Source: arch/x86/mm/mem_encrypt.c of Linux 5.10 to 6.16; the last form is of 4.18.
_CONFIDENTIAL_GUEST = re.compile(
    r"(?:AMD )?Memory Encryption Features active:.*\b(?:SEV|TDX)\b|"
    r"AMD Secure Encrypted Virtualization \(SEV\) active"
)

# Source: init/main.c, print_unknown_bootoptions(), Linux 5.14 and later; a long line ends early.
_TO_USER_SPACE = re.compile(r'Unknown kernel command line parameters "(?P<told>.*?)(?:", will be passed|$)')
# Option lists that the kernel parses itself, with the argument they belong to.
# Source: drivers/pci/pci.c pci_setup(), drivers/iommu/amd/init.c, drivers/iommu/intel/iommu.c.
_UNKNOWN_OPTIONS = (
    (re.compile(r"PCI: Unknown option [`'](?P<told>[^']*)'"), "pci={}"),
    (re.compile(r"AMD-Vi: Unknown option - '(?P<told>[^']*)'"), "amd_iommu={}"),
    (re.compile(r"DMAR: Unknown option - '(?P<told>[^']*)'"), "intel_iommu={}"),
)
# Source: kernel/params.c parse_args(), init/main.c do_early_param(), kernel/module unknown_module_param_cb().
_REFUSED_WORDS = (
    # Not of console=: up to 6.11 the kernel says so of a good one too, when it is no early console.
    re.compile(r"Malformed early option '(?P<key>(?!console')[^']*)'"),
    re.compile(r"Booting kernel: `[^']*' (?:invalid|too large) for parameter `(?P<key>[^']*)'"),
    re.compile(r"Booting kernel: Unknown parameter `(?P<key>[^']*)'"),
    re.compile(r"(?P<module>\w+): unknown parameter '(?P<key>[^']*)' ignored"),
)


def collect(root: str, cmdline: Reading, records: Reading) -> Dict[str, Any]:
    """The "kernel_use" part of the facts.

    Args:
        root: Root of the machine.
        cmdline: The kernel command line.
        records: All kernel log records (kernel_log.Record), oldest first.
    """
    return {
        "firmware": attempt(firmware, root),
        "secure_boot": attempt(secure_boot, root),
        "lockdown": attempt(lockdown, root, records),
        "unknown_arguments": attempt(_unknown_arguments, root, cmdline, records),
        "vfio_devices": attempt(vfio_devices, root),
        "virtual_functions": attempt(virtual_functions, root),
        "confidential": attempt(confidential, root, records),
    }


def firmware(root: str) -> str:
    """How this kernel was started: "uefi" or "bios".

    Raises:
        OSError: /sys cannot be read.
    """
    return "uefi" if "efi" in list_folder(root, "/sys/firmware") else "bios"


def secure_boot(root: str) -> bool:
    """Whether firmware checked the signature of what it started.

    Raises:
        NotSupported: The machine was started by a BIOS, or its UEFI has no secure boot.
        OSError: The UEFI variables cannot be read.
        ValueError: The variable is not one byte.
    """
    if firmware(root) == "bios":
        raise NotSupported("started by a BIOS, which has no secure boot")
    if not exists(root, _SECURE_BOOT):
        if list_folder(root, _EFI_VARIABLES):
            raise NotSupported("this UEFI has no secure boot")
        raise OSError(f"{_EFI_VARIABLES} is empty: efivarfs is not mounted")
    content = read_bytes(root, _SECURE_BOOT)
    if len(content) != _ATTRIBUTE_BYTES + 1:
        raise ValueError(f"the UEFI variable SecureBoot has {len(content)} bytes, 5 expected")
    return content[_ATTRIBUTE_BYTES] == 1


def lockdown(root: str, records: Reading) -> str:
    """The lockdown level: "none", "integrity" or "confidentiality".

    Raises:
        NotSupported: This kernel was built without lockdown.
        OSError: securityfs or the kernel log cannot be read.
        ValueError: The kernel is locked down, and does not tell how far.
    """
    path = f"{_SECURITY}/lockdown"
    if exists(root, path):
        # "none [integrity] confidentiality"
        chosen = re.search(r"\[(\w+)\]", read_text(root, path))
        if chosen is None:
            raise ValueError(f"{path} marks no level: {read_text(root, path)!r}")
        return chosen.group(1)
    if not list_folder(root, _SECURITY):
        raise OSError(f"{_SECURITY} is empty: securityfs is not mounted")
    if any(line.startswith(_LOCKED_DOWN) for line in boot_lines(root, records)):
        raise ValueError("the kernel says that it is locked down, and not how far")
    raise NotSupported("this kernel was built without lockdown")


def unknown_arguments(cmdline: str, lines: Iterable[str]) -> List[str]:
    """Words and options of a command line that the kernel said it does not know, in the order it said so.

    It is silent on dotted words of modules that are not loaded, on values that an argument's own parser
    ignores, and before 5.14 on plain words too: what is not listed here need not be known.

    Args:
        cmdline: The kernel command line.
        lines: The kernel log from its beginning.
    """
    found: Dict[str, None] = {}
    for line in lines:
        found.update(dict.fromkeys(_told(line, cmdline)))
    return list(found)


def vfio_devices(root: str) -> List[str]:
    """PCI addresses bound to vfio-pci or to a vendor's variant of it (mlx5_vfio_pci, nvgrace-gpu-vfio-pci).

    Raises:
        OSError: The bus cannot be listed.
    """
    drivers = [name for name in list_folder(root, _PCI_DRIVERS) if "vfio" in name]
    bound = (name for driver in drivers for name in list_folder(root, f"{_PCI_DRIVERS}/{driver}"))
    return sorted(name for name in bound if addresses_in(name) == [name])


def virtual_functions(root: str) -> List[str]:
    """PCI addresses of SR-IOV virtual functions that are enabled.

    Raises:
        OSError: The bus cannot be listed.
    """
    return [name for name in list_folder(root, _PCI_DEVICES) if exists(root, f"{_PCI_DEVICES}/{name}/physfn")]


def confidential(root: str, records: Reading) -> bool:
    """True on a host that can run SEV-SNP or TDX guests now, and inside an SEV or TDX guest.

    Raises:
        NotSupported: Not an x86 machine.
        OSError: It may be such a guest, and the kernel log that says so cannot be read.
    """
    if any(exists(root, path) and read_text(root, path) in ("Y", "1") for path in _CONFIDENTIAL_HOST):
        return True
    if not cpu.hypervisor(root):
        return False
    if "tdx_guest" in cpu.flags(root):
        return True
    return any(_CONFIDENTIAL_GUEST.match(line) for line in boot_lines(root, records))


def _unknown_arguments(root: str, cmdline: Reading, records: Reading) -> List[str]:
    if cmdline["state"] != "ok":
        raise OSError(f"the kernel command line is unreadable: {cmdline['detail']}")
    return unknown_arguments(cmdline["value"], boot_lines(root, records))


def _told(line: str, cmdline: str) -> List[str]:
    """Which words and options of the command line a line of the kernel log calls unknown."""
    given = [word.replace('"', "") for word in words(cmdline)]
    passed = _TO_USER_SPACE.match(line)
    if passed:
        return _words_in(passed.group("told"), given)
    for pattern, argument in _UNKNOWN_OPTIONS:
        option = pattern.match(line)
        if option:
            # Some of these parsers print the rest of the list, or go on letter by letter.
            named = argument.format(option.group("told").partition(",")[0])
            return [named] if named in map(str, parse(cmdline)) else []
    for pattern in _REFUSED_WORDS:
        refused = pattern.match(line)
        if refused:
            module = refused.groupdict().get("module")
            key = f"{module}.{refused.group('key')}" if module else refused.group("key")
            return [word for word in given if _same_name(word.partition("=")[0], key)]
    return []


def _words_in(told: str, given: List[str]) -> List[str]:
    """Those of the words given that a text without quotes lists; values may contain blanks."""
    rest, found = f" {told} ", set()
    # The longest first, so that a word is not found inside another one's value.
    for word in sorted(given, key=len, reverse=True):
        if f" {word} " in rest:
            found.add(word)
            rest = rest.replace(f" {word} ", "  ", 1)
    return [word for word in given if word in found]


def _same_name(left: str, right: str) -> bool:
    return left.replace("-", "_") == right.replace("-", "_")
