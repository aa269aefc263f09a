import pytest

from nodeprep.node import cpu
from nodeprep.node.reading import NotSupported


@pytest.mark.parametrize(
    ("mask", "count"), [("0", 1), ("0-223", 224), ("0-111,224-335", 224), ("0,2,4-5", 4)]
)
def test_cpu_lists_are_counted(mask, count):
    assert cpu.count_cpus(mask) == count


def test_garbage_in_a_cpu_list_is_refused():
    with pytest.raises(ValueError, match="invalid literal"):
        cpu.count_cpus("all")


def test_the_hypervisor_flag_is_found(tmp_path):
    info = tmp_path / "proc/cpuinfo"
    info.parent.mkdir()
    info.write_text("model name\t: AMD EPYC 9654\nflags\t\t: fpu hypervisor x2apic\n")
    assert cpu.hypervisor(str(tmp_path)) is True
    assert cpu.model(str(tmp_path)) == "AMD EPYC 9654"
    info.write_text("model name\t: AMD EPYC 9654\nflags\t\t: fpu x2apic\n")
    assert cpu.hypervisor(str(tmp_path)) is False


def test_arm_has_no_flags_line(tmp_path):
    info = tmp_path / "proc/cpuinfo"
    info.parent.mkdir()
    info.write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    with pytest.raises(NotSupported, match="flags"):
        cpu.hypervisor(str(tmp_path))


def test_the_highest_apic_id_of_all_cpus(tmp_path):
    info = tmp_path / "proc/cpuinfo"
    info.parent.mkdir()
    cpus = (f"processor\t: {number}\napicid\t\t: {apic}\ninitial apicid\t: {apic}\n" for number, apic in
            enumerate((0, 2, 257, 130)))  # fmt: skip
    info.write_text("\n".join(cpus))
    assert cpu.max_apic_id(str(tmp_path)) == 257


def test_a_machine_without_apic_ids(tmp_path):
    info = tmp_path / "proc/cpuinfo"
    info.parent.mkdir()
    info.write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    with pytest.raises(NotSupported, match="apicid"):
        cpu.max_apic_id(str(tmp_path))
    info.write_text("apicid\t\t: unknown\n")
    with pytest.raises(ValueError, match="invalid literal"):
        cpu.max_apic_id(str(tmp_path))
