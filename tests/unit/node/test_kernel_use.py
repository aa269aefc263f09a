"""What forbids an argument on this node, and which arguments the kernel did not know."""

import subprocess

import pytest

from nodeprep.node import boot_log, kernel_use
from nodeprep.node.kernel_log import Record, read_records
from nodeprep.node.reading import attempt, error, ok
from nodeprep.sim.description import CpuDescription
from nodeprep.sim.root import build_root, hgx_node

LOG = ok([Record(0, 1, 5, "Linux version 6.8.0")])
WRAPPED = ok([Record(4000, 1, 6, "eth0: link up")])
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def write(root, path, content="", *, folder=False):
    place = root / path
    (place if folder else place.parent).mkdir(parents=True, exist_ok=True)
    if not folder:
        place.write_bytes(content if isinstance(content, bytes) else content.encode())


def said(*lines):
    return ok([Record(number, number, 6, line) for number, line in enumerate(lines)])


def test_all_fields_of_a_plain_node(tmp_path):
    root = str(build_root(tmp_path, hgx_node(gpu_count=1)))
    write(tmp_path, "sys/kernel/security/lockdown", "[none] integrity confidentiality\n")
    found = kernel_use.collect(root, ok("quiet"), attempt(read_records, root))
    assert tuple(found) == kernel_use.FIELDS
    assert found["firmware"] == ok("bios")
    assert found["secure_boot"]["state"] == "not_supported"
    assert found["lockdown"] == ok("none")
    for name in ("unknown_arguments", "vfio_devices", "virtual_functions"):
        assert found[name] == ok([])
    assert found["confidential"] == ok(False)


def test_an_empty_root_tells_nothing(tmp_path):
    found = kernel_use.collect(str(tmp_path), error("gone"), error("gone"))
    assert {reading["state"] for reading in found.values()} == {"error"}


@pytest.mark.parametrize(("byte", "on"), [(b"\1", True), (b"\0", False)])
def test_secure_boot_is_the_byte_after_the_attributes(tmp_path, byte, on):
    write(tmp_path, SECURE_BOOT, b"\6\0\0\0" + byte)
    assert kernel_use.firmware(str(tmp_path)) == "uefi"
    assert kernel_use.secure_boot(str(tmp_path)) is on


def test_a_damaged_secure_boot_variable_is_an_error(tmp_path):
    write(tmp_path, SECURE_BOOT, b"\1")
    assert "1 bytes, 5 expected" in attempt(kernel_use.secure_boot, str(tmp_path))["detail"]


def test_uefi_variables_that_are_not_mounted_are_no_answer(tmp_path):
    write(tmp_path, "sys/firmware/efi/efivars", folder=True)
    found = attempt(kernel_use.secure_boot, str(tmp_path))
    assert (found["state"], "not mounted" in found["detail"]) == ("error", True)
    write(tmp_path, "sys/firmware/efi/efivars/BootOrder-1", b"\0")
    assert attempt(kernel_use.secure_boot, str(tmp_path))["state"] == "not_supported"


@pytest.mark.parametrize("level", ["none", "integrity", "confidentiality"])
def test_the_lockdown_level_is_the_marked_one(tmp_path, level):
    text = "none integrity confidentiality\n".replace(level, f"[{level}]")
    write(tmp_path, "sys/kernel/security/lockdown", text)
    assert kernel_use.lockdown(str(tmp_path), LOG) == level


def test_lockdown_without_its_file(tmp_path):
    write(tmp_path, "sys/kernel/security", folder=True)
    assert "not mounted" in attempt(kernel_use.lockdown, str(tmp_path), LOG)["detail"]
    write(tmp_path, "sys/kernel/security/lsm", "capability,yama")
    assert attempt(kernel_use.lockdown, str(tmp_path), LOG)["state"] == "not_supported"
    told = said("Kernel is locked down from EFI secure boot; see man kernel_lockdown.7")
    assert attempt(kernel_use.lockdown, str(tmp_path), told)["state"] == "error"
    assert attempt(kernel_use.lockdown, str(tmp_path), error("needs root"))["state"] == "error"


def unknown(cmdline, *lines):
    return kernel_use.unknown_arguments(cmdline, lines)


def test_words_passed_to_user_space():
    line = (
        'Unknown kernel command line parameters "splash BOOT_IMAGE=/boot/vmlinuz-6.8 iommuu=off", '
        "will be passed to user space."
    )
    cmdline = "BOOT_IMAGE=/boot/vmlinuz-6.8 ro splash iommuu=off iommu=off"
    assert unknown(cmdline, line) == ["BOOT_IMAGE=/boot/vmlinuz-6.8", "splash", "iommuu=off"]


def test_a_quoted_value_with_blanks_is_found_without_its_quotes():
    line = 'Unknown kernel command line parameters "a=rows 45 cols b=1", will be passed to user space.'
    assert unknown('"a=rows 45 cols" b=1 cols', line) == ["a=rows 45 cols", "b=1"]


def test_a_line_that_the_log_cut_off_still_tells():
    assert unknown("foo bar=1", 'Unknown kernel command line parameters "foo bar') == ["foo"]


@pytest.mark.parametrize(
    ("cmdline", "line", "named"),
    [
        ("pci=realloc,noacs", "PCI: Unknown option `noacs'", ["pci=noacs"]),
        ("amd_iommu=on", "AMD-Vi: Unknown option - 'on'", ["amd_iommu=on"]),
        ("amd_iommu=on", "AMD-Vi: Unknown option - 'n'", []),
        ("intel_iommu=foo,sm_on", "DMAR: Unknown option - 'foo,sm_on'", ["intel_iommu=foo"]),
        ("pti=maybe quiet", "Malformed early option 'pti'", ["pti=maybe"]),
        ("console=tty0 console=ttyS0", "Malformed early option 'console'", []),
        ("usbcore.old-scheme=7 quiet", "Booting kernel: `7' invalid for parameter `usbcore.old_scheme'",
         ["usbcore.old-scheme=7"]),
        ("nvidia.foo=1", "nvidia: unknown parameter 'foo' ignored", ["nvidia.foo=1"]),
        ("quiet", "nvidia: unknown parameter 'foo' ignored", []),
        ("quiet foo=1", "Command line: quiet foo=1", []),
    ],
)  # fmt: skip
def test_what_the_kernels_parsers_say(cmdline, line, named):
    assert unknown(cmdline, line, line) == named


def test_without_the_early_log_nobody_knows_what_was_unknown(tmp_path):
    found = kernel_use.collect(str(tmp_path), ok("quiet"), WRAPPED)["unknown_arguments"]
    assert (found["state"], "overwritten" in found["detail"]) == ("error", True)
    assert kernel_use.collect(str(tmp_path), error("gone"), LOG)["unknown_arguments"]["state"] == "error"


def answer(monkeypatch, lines):
    monkeypatch.setattr(boot_log, "is_real", lambda root: True)
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, lines, ""))


def test_the_journal_keeps_what_the_ring_buffer_lost(monkeypatch):
    answer(monkeypatch, "Linux version 6.8.0\nPCI: Unknown option `noacs'\n")
    lines = boot_log.boot_lines("/", WRAPPED)
    assert unknown("pci=noacs", *lines) == ["pci=noacs"]
    assert lines[-1] == "eth0: link up"


def test_a_journal_without_the_beginning_is_no_answer(monkeypatch):
    answer(monkeypatch, "eth0: link up\n")
    with pytest.raises(OSError, match="the journal does not have it"):
        boot_log.boot_lines("/", WRAPPED)


def test_an_empty_log_is_no_answer():
    with pytest.raises(OSError, match="is empty"):
        boot_log.boot_lines("/", ok([]))


def test_devices_given_to_virtual_machines(tmp_path):
    for driver, names in (
        ("vfio-pci", ("0000:63:00.0", "bind", "module")),
        ("mlx5_vfio_pci", ("0000:18:00.2",)),
        ("nvidia", ("0000:64:00.0",)),
    ):
        for name in names:
            write(tmp_path, f"sys/bus/pci/drivers/{driver}/{name}")
    assert kernel_use.vfio_devices(str(tmp_path)) == ["0000:18:00.2", "0000:63:00.0"]


def test_virtual_functions_have_a_physical_one(tmp_path):
    write(tmp_path, "sys/bus/pci/devices/0000:18:00.0/vendor")
    write(tmp_path, "sys/bus/pci/devices/0000:18:00.1/physfn", folder=True)
    assert kernel_use.virtual_functions(str(tmp_path)) == ["0000:18:00.1"]


def guest(tmp_path, flags="fpu hypervisor"):
    write(tmp_path, "proc/cpuinfo", f"flags\t\t: {flags}\n")
    return str(tmp_path)


@pytest.mark.parametrize("module", ["kvm_amd/parameters/sev_snp", "kvm_intel/parameters/tdx"])
def test_a_host_of_confidential_guests(tmp_path, module):
    root = guest(tmp_path, "fpu")
    write(tmp_path, f"sys/module/{module}", "N\n")
    assert kernel_use.confidential(root, LOG) is False
    write(tmp_path, f"sys/module/{module}", "Y\n")
    assert kernel_use.confidential(root, LOG) is True


def test_plain_sev_that_every_epyc_has_is_no_use_of_it(tmp_path):
    write(tmp_path, "sys/module/kvm_amd/parameters/sev", "Y\n")
    assert kernel_use.confidential(guest(tmp_path, "fpu"), LOG) is False


@pytest.mark.parametrize(
    ("line", "inside"),
    [
        ("Memory Encryption Features active: AMD SEV SEV-ES SEV-SNP", True),
        ("Memory Encryption Features active: Intel TDX", True),
        ("AMD Memory Encryption Features active: SEV", True),
        ("AMD Secure Encrypted Virtualization (SEV) active", True),
        ("Memory Encryption Features active: AMD SME", False),
        ("Linux version 6.8.0", False),
    ],
)
def test_a_guest_with_encrypted_memory(tmp_path, line, inside):
    assert kernel_use.confidential(guest(tmp_path), said(line)) is inside


def test_a_guest_whose_early_log_is_lost_is_unknown(tmp_path):
    root = guest(tmp_path)
    assert attempt(kernel_use.confidential, root, WRAPPED)["state"] == "error"
    assert kernel_use.confidential(guest(tmp_path, "hypervisor tdx_guest"), WRAPPED) is True


def test_simulated_machines_can_be_read(tmp_path):
    node = hgx_node(gpu_count=1, cpu=CpuDescription(hypervisor=True))
    root = str(build_root(tmp_path, node))
    assert kernel_use.confidential(root, attempt(read_records, root)) is False
