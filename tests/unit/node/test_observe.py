import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nodeprep
from nodeprep.node import aer_ownership, boot, cpu, dmi, driver, iommu, memory, net, nvml, observe, pci
from nodeprep.node.version import VERSION
from nodeprep.sim.root import build_root, hgx_node, kmsg_record


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return build_root(tmp_path_factory.mktemp("node") / "root", hgx_node(gpu_count=2, hostname="n1"))


def test_the_version_is_the_packages():
    assert nodeprep.__version__ == VERSION


def test_any_other_root_is_simulated(root):
    facts = observe.collect(str(root))
    assert facts["simulated"] is True
    assert facts["hostname"] == "n1"
    assert facts["host"] == ""
    assert facts["schema"] == "nodeprep.facts/1"


def test_the_machine_itself_is_real_unless_devices_stand_in(monkeypatch):
    monkeypatch.setattr(nvml, "collect", lambda root, deadline: {})
    assert observe.collect("/")["simulated"] is False
    assert observe.collect("//")["simulated"] is False
    assert observe.collect("/", gpu_ids=["8086:0d93"])["simulated"] is True


def test_reading_on_from_the_cursor_of_earlier_facts(tmp_path):
    root = build_root(tmp_path, hgx_node(gpu_count=1))
    before = observe.collect(str(root))
    sequence = before["log_cursor"]["sequence"]["value"] + 1
    with (root / "dev/kmsg").open("a") as log:
        log.write(
            kmsg_record(sequence, 10**9, 3, "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.")
        )
    after = observe.collect(str(root), since=before["log_cursor"])
    assert [event["xid"] for event in after["kernel_log"]["events"]["value"]] == [79]
    assert after["kernel_log"]["since"] == before["log_cursor"]
    assert after["kernel_log"]["lost_records"] == {"state": "ok", "value": 0}


def leaves(value):
    if isinstance(value, dict) and "state" in value:
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (boot, "boot"),
        (cpu, "cpu"),
        (memory, "memory"),
        (dmi, "dmi"),
        (net, "nics"),
        (pci, "pci"),
        (iommu, "iommu"),
        (aer_ownership, "aer_ownership"),
        (driver, "driver"),
        (nvml, "nvml"),
    ],
)
def test_a_part_that_breaks_is_all_errors_and_costs_no_other(monkeypatch, root, module, name):
    whole = observe.collect(str(root))

    def broken(*arguments):
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(module, "collect", broken)
    facts = observe.collect(str(root))
    assert facts[name].keys() == whole[name].keys() or name == "nics"
    found = list(leaves(facts[name]))
    assert found
    assert {reading["state"] for reading in found} == {"error"}
    assert all("unforeseen" in reading["detail"] for reading in found)
    unaffected = "memory" if name != "memory" else "cpu"
    assert facts[unaffected] == whole[unaffected]


def test_an_empty_folder_is_nothing_but_errors_and_absences(tmp_path):
    facts = observe.collect(str(tmp_path))
    states = {reading["state"] for part in facts.values() for reading in leaves(part)}
    assert "ok" not in states
    assert facts["pci"]["gpu_paths"]["state"] == "error"
    assert facts["kernel_log"]["events"]["state"] == "error"


def test_it_runs_as_a_program_from_anywhere(root, tmp_path):
    package = str(Path(nodeprep.__file__).parent.parent)
    answer = subprocess.run(
        [sys.executable, "-m", "nodeprep.node.observe", "--root", str(root)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": package},
    )
    assert json.loads(answer.stdout)["hostname"] == "n1"
