"""What is typed after `--set`, and what a policy says, is taken strictly."""

from __future__ import annotations

import pytest

from nodeprep.bmc.bios import Wanted, from_policy, parse_settings
from nodeprep.errors import ExitCode, PolicyError


def test_settings_are_read_in_their_order() -> None:
    found = parse_settings(["pcie_link_gen=4,slot=3,slot=GENZ_1", "iommu=disabled", "aspm=enabled, slot=2"])
    assert list(found) == ["pcie_link_gen", "iommu", "aspm"]
    assert found["pcie_link_gen"] == Wanted("4", ("3", "GENZ_1"))
    assert found["iommu"] == Wanted("disabled")
    assert found["aspm"] == Wanted("enabled", ("2",))


@pytest.mark.parametrize(
    ("item", "says", "hint"),
    [
        ("pcie-link-gen=4", "not a BIOS knob", "did you mean pcie_link_gen?"),
        ("iomu=disabled", "not a BIOS knob", "did you mean iommu?"),
        ("turbo=on", "not a BIOS knob", "known: above_4g"),
        ("iommu=off", "not a value of iommu", "write disabled"),
        ("iommu=Enabled", "not a value of iommu", "write enabled"),
        ("iommu=1", "not a value of iommu", "write enabled"),
        ("iommu=maybe", "not a value of iommu", "one of enabled, disabled"),
        ("pcie_link_gen=gen4", "not a value of pcie_link_gen", "write 4"),
        ("pcie_link_gen=Force to 16.0 GT/s", "not a value of pcie_link_gen", "write 4"),
        ("pcie_link_gen=AUTO", "not a value of pcie_link_gen", "write auto"),
        ("pcie_link_gen=7", "not a value of pcie_link_gen", "one of 1, 2, 3"),
        ("pcie_link_gen", "is not KNOB=VALUE", "for example"),
        ("=4", "is not KNOB=VALUE", "for example"),
        ("pcie_link_gen=", "is not KNOB=VALUE", "for example"),
        ("", "is not KNOB=VALUE", "for example"),
        ("pcie_link_gen=4,", "nothing after the comma is not slot=N", ""),
        ("pcie_link_gen=4,3", "3 after the comma is not slot=N", ""),
        ("pcie_link_gen=4,slots=3", "slots=3 after the comma is not slot=N", ""),
        ("pcie_link_gen=4,slot=", "nothing is not a slot", "a number"),
        ("pcie_link_gen=4,slot=-1", "-1 is not a slot", "a number"),
        ("pcie_link_gen=4,slot=3,slot=3", "named twice", ""),
        ("iommu=disabled,slot=3", "of the whole machine", "leave slot= out"),
    ],
)
def test_a_fault_is_told_with_the_way_out(item: str, says: str, hint: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_settings([item])
    (problem,) = caught.value.problems
    assert says in problem.message
    assert hint in problem.hint
    assert caught.value.exit_code == ExitCode.USAGE


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        parse_settings(["iommu=off", "turbo=on", "aspm=disabled", "aspm=enabled"])
    assert len(caught.value.problems) == 3


def test_a_policy_is_read_likewise() -> None:
    found = from_policy({"pcie_link_gen": 4, "iommu": "disabled", "aspm": None})
    assert found == {"pcie_link_gen": Wanted("4"), "iommu": Wanted("disabled")}


@pytest.mark.parametrize(
    ("policy", "hint"),
    [
        # `off` without quotes is False in YAML.
        ({"iommu": False}, "write disabled"),
        ({"iommu": True}, "write enabled"),
        ({"pcie_link_gen": True}, "one of 1"),
        ({"pcie_link_gen": 9}, "one of 1"),
        ({"iomu": "disabled"}, "did you mean iommu?"),
    ],
)
def test_faults_of_a_policy(policy: dict[str, object], hint: str) -> None:
    with pytest.raises(PolicyError) as caught:
        from_policy(policy)
    (problem,) = caught.value.problems
    assert hint in problem.hint
