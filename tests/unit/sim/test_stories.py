"""The cast of the demo, and that a story told wrong is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from certificate_builder import certificate, result

from nodeprep.errors import UsageError
from nodeprep.model.certificate import Certificate
from nodeprep.sim.cast import cast
from nodeprep.sim.faults import FAULTS, fault
from nodeprep.sim.machine import healthy_machine
from nodeprep.sim.rack import RackInventory, build_rack
from nodeprep.sim.stories import check_stories

DEMO_FAULTS = {
    "link_x8_under_load": "rejected",
    "gpu_missing_in_nvml": "rejected",
    "flipped_bit": "rejected",
    "aer_burst": "rejected",
    "nvml_hang": "inconclusive",
}


def test_a_rack_of_eight_has_the_five_faults_and_three_healthy_nodes() -> None:
    faults = [role.fault for role in cast(8)]
    assert sorted(filter(None, faults)) == sorted(DEMO_FAULTS)
    assert faults.count("") == 3


@pytest.mark.parametrize(("nodes", "broken"), [(1, 0), (2, 1), (5, 4), (6, 5), (20, 5)])
def test_a_smaller_rack_leaves_faults_out_and_a_larger_one_adds_health(nodes: int, broken: int) -> None:
    roles = cast(nodes)
    assert len(roles) == nodes
    assert sum(bool(role.fault) for role in roles) == broken
    assert roles[: min(nodes, 6)] == cast(8)[: min(nodes, 6)]


def test_broken_gpus_are_never_the_first_and_never_the_same() -> None:
    gpus = [role.gpu for role in cast(8) if role.fault]
    assert 0 not in gpus
    assert len(set(gpus)) == len(gpus)


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> RackInventory:
    return build_rack(tmp_path_factory.mktemp("stories") / "rack")


def right(rack: RackInventory) -> dict[str, Certificate]:
    """Certificates that tell every story right, in the fewest words."""
    told = {}
    for node in rack.nodes:
        bad = [
            result(cause.status, cause.check, cause.subject, f"because {' '.join(cause.says)}")
            for cause in node.conclusion.causes
            if cause.required
        ]
        written = certificate(node.conclusion.verdict, result("PASS", "ecc_on"), *bad)
        told[node.name] = replace(written, host=node.name)
    return told


def test_the_demo_is_told_right(rack: RackInventory) -> None:
    stories = check_stories(rack, right(rack))
    assert [story.host for story in stories] == [node.name for node in rack.nodes]
    assert all(story.told_right for story in stories), [story.detail for story in stories]
    assert [story.verdict for story in stories].count("certified") == 3
    assert "block 7" in stories[3].detail


def test_each_fault_is_expected_with_its_verdict(rack: RackInventory) -> None:
    found = {node.fault: node.conclusion.verdict for node in rack.nodes if node.fault}
    assert found == DEMO_FAULTS


def test_a_missing_certificate_is_a_story_told_wrong(rack: RackInventory) -> None:
    told = right(rack)
    del told["node07"]
    stories = {story.host: story for story in check_stories(rack, told)}
    assert not stories["node07"].told_right
    assert stories["node07"].verdict == "none"
    assert all(story.told_right for host, story in stories.items() if host != "node07")


def test_the_certificate_of_another_node_is_a_story_told_wrong(rack: RackInventory) -> None:
    told = right(rack)
    told["node01"], told["node07"] = told["node07"], told["node01"]
    wrong = [story.host for story in check_stories(rack, told) if not story.told_right]
    assert wrong == ["node01", "node07"]


def test_a_hung_nvml_must_not_be_taken_for_missing_gpus(rack: RackInventory) -> None:
    told = right(rack)
    blamed = [
        result("FAIL", "gpu_presence", node_gpu, "missing, NVML hung") for node_gpu in ("0000:9d:00.0",)
    ]
    told["node06"] = replace(certificate("rejected", *blamed), host="node06")
    story = next(story for story in check_stories(rack, told) if story.host == "node06")
    assert not story.told_right
    assert "verdict is rejected, must be inconclusive" in story.detail


def test_everybody_healthy_is_told_wrong_on_every_broken_node(rack: RackInventory) -> None:
    told = {
        node.name: replace(certificate("certified", result("PASS", "ecc_on")), host=node.name)
        for node in rack.nodes
    }
    wrong = [story.host for story in check_stories(rack, told) if not story.told_right]
    assert wrong == ["node02", "node03", "node04", "node05", "node06"]


def test_a_long_list_of_disagreements_is_cut(rack: RackInventory) -> None:
    told = right(rack)
    noise = [result("FAIL", f"check_{number}") for number in range(10)]
    told["node01"] = replace(certificate("rejected", *noise), host="node01")
    story = check_stories(rack, told)[0]
    assert story.detail.endswith("and 8 more")


def test_an_unknown_fault_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no_such_fault") as caught:
        fault("no_such_fault")
    assert "flipped_bit" in caught.value.hint


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_names_only_checks_that_exist(name: str) -> None:
    from fnmatch import filter as matching

    from nodeprep.checks import all_checks

    machine = healthy_machine("node01", gpu_count=3)
    conclusion = FAULTS[name].put(machine, 1).conclusion
    assert conclusion.verdict != "certified"
    assert any(cause.required for cause in conclusion.causes)
    for cause in conclusion.causes:
        assert matching(all_checks(), cause.check), cause.check


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_changes_the_machine_and_leaves_the_healthy_one_alone(name: str) -> None:
    machine = healthy_machine("node01", gpu_count=3)
    broken = FAULTS[name].put(machine, 1).machine
    assert broken != machine
    assert machine == healthy_machine("node01", gpu_count=3)


def test_titles_are_there_and_differ() -> None:
    titles = [each.title for each in FAULTS.values()]
    assert all(titles)
    assert len(set(titles)) == len(titles)


def test_a_rejected_conclusion_names_a_device_wherever_one_is_to_blame(tmp_path: Path) -> None:
    machine = healthy_machine("node01", gpu_count=3)
    for name in ("flipped_bit", "aer_burst", "link_x8_under_load", "gpu_missing_in_nvml"):
        subjects = {cause.subject for cause in FAULTS[name].put(machine, 1).conclusion.causes}
        assert subjects <= {hop.address for hop in machine.description.gpus[1].hops}, name
