"""A policy is read strictly: everything wrong with it at once, each with its path and a hint."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from nodeprep.errors import PolicyError, Problem, UsageError
from nodeprep.profiles import load_settings_file, settings_from_text, settings_from_variables

CHECKS = ("pcie_link_width", "gpu_presence")


def problems_of(text: str) -> tuple[Problem, ...]:
    with pytest.raises(PolicyError) as caught:
        settings_from_text(text, source="site.yaml", known_checks=CHECKS)
    return caught.value.problems


def problem_of(policy: str) -> Problem:
    """The one problem of a policy written in flow style."""
    (problem,) = problems_of(f"nodeprep_policy: {policy}\n")
    return problem


def test_the_documented_example() -> None:
    text = """
nodeprep_profile: auto
nodeprep_policy:
  kernel_args:
    present: [pcie_aspm=off, iommu=off]
    absent: [pci=noaer]
  bios: {pcie_link_gen: 4, iommu: disabled, xhci_handoff: disabled, aspm: disabled}
  pcie_link: {gen: 4, method: auto}
  gpu: {power_limit: 93%, persistence: true}
  monitor: {pcie_stddev_gbps: 15, aer_per_5min: 100, reserved_active_ratio: 3.0}
  certify: {level: standard, workload: vit-g, valid_days: 90}
  waivers: [{check: pcie_link_width, host: node07, owner: ops, until: 2027-01-31, why: "slot is x8"}]
"""
    settings = settings_from_text(text, source="site.yaml", known_checks=CHECKS)
    assert settings.profile == "auto"
    assert settings.policy.gpu.power_limit == "93%"
    assert settings.policy.waivers[0].until == date(2027, 1, 31)
    assert settings.policy.kernel_args.present == ("pcie_aspm=off", "iommu=off")


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n", "nodeprep_policy: {}\n"])
def test_an_empty_file_is_the_default_policy(text: str) -> None:
    settings = settings_from_text(text, source="site.yaml", known_checks=CHECKS)
    assert settings.policy.kernel_args.absent == ("pci=noaer",)
    assert settings.policy.gpu.persistence is True


def test_the_level_soak_is_part_of_the_language() -> None:
    text = "nodeprep_policy: {certify: {level: soak}}"
    assert settings_from_text(text, source="x", known_checks=CHECKS).policy.certify.level == "soak"


def test_everything_at_once_each_with_path_and_hint() -> None:
    problems = problems_of(
        """
nodeprep_profile: h10
nodeprep_polcy: {}
nodeprep_policy:
  kernel_args: {present: [iommu=off, iommu=off]}
  bios: {iommu: off}
  gpu: {power_limit: 150%, cuont: 8}
  waivers:
    - {check: pcie_link_wdth, owner: ops, until: 2027-02-30, why: narrow}
"""
    )
    assert [problem.path for problem in problems] == [
        "nodeprep_polcy",
        "nodeprep_profile",
        "nodeprep_policy.bios.iommu",
        "nodeprep_policy.gpu.cuont",
        "nodeprep_policy.waivers[0].until",
        "nodeprep_policy.kernel_args.present[1]",
        "nodeprep_policy.gpu.power_limit",
        "nodeprep_policy.waivers[0].check",
    ]
    assert all(problem.message and problem.hint for problem in problems)


def test_the_message_lists_them() -> None:
    with pytest.raises(PolicyError) as caught:
        settings_from_text("nodeprep_profile: h10\na: 1", source="site.yaml", known_checks=CHECKS)
    assert caught.value.message.startswith("site.yaml: 2 problems\n  a: unknown key (hint: ")


@pytest.mark.parametrize(
    ("policy", "path", "hint"),
    [
        ("{bios: {iommu: off}}", "bios.iommu", "in quotes"),
        ("{bios: {iommu: disable}}", "bios.iommu", "one of: enabled, disabled"),
        ("{bios: {pcie_link_gen: 7}}", "bios.pcie_link_gen", "a whole number from 1 to 6"),
        ("{pcie_link: {gen: 4.5}}", "pcie_link.gen", "a whole number from 1 to 6"),
        ("{pcie_link: {width_lanes: 3}}", "pcie_link.width_lanes", "one of: 1, 2, 4, 8, 16"),
        ("{gpu: {power_limit: 650}}", "gpu.power_limit", 'for example "93%" or "650W"'),
        ("{gpu: {power_limit: 93 percent}}", "gpu.power_limit", 'for example "93%" or "650W"'),
        ('{gpu: {persistence: "on"}}', "gpu.persistence", "true or false"),
        ("{gpu: {power_limt: 93%}}", "gpu.power_limt", "did you mean 'power_limit'?"),
        ("{kernel_args: {present: iommu=off}}", "kernel_args.present", "write [iommu=off]"),
        ('{kernel_args: {present: [{pcie_aspm: "off"}]}}', "kernel_args.present[0]", "quotes"),
        ("{kernel_args: {present: [off]}}", "kernel_args.present[0]", "in quotes"),
        ("{kernel_args: }", "kernel_args", "leave the key out"),
        ("[]", "", "a mapping with the keys kernel_args"),
        ("{waivers: {check: pcie_link_width}}", "waivers", "a list, each entry a mapping"),
        ("{certify: {valid_days: 0}}", "certify.valid_days", "from 1 to 3650"),
        ("{monitor: {pcie_stddev_gbps: 0}}", "monitor.pcie_stddev_gbps", "a number above 0"),
        ("{probe_python: 3.12}", "probe_python", "a text"),
    ],
)
def test_a_value_of_the_wrong_kind(policy: str, path: str, hint: str) -> None:
    problem = problem_of(policy)
    assert problem.path == f"nodeprep_policy.{path}".rstrip(".")
    assert hint in problem.hint


def waiver(**changes: Any) -> str:
    fields = {
        "check": "pcie_link_width",
        "owner": "ops",
        "until": "2027-01-31",
        "why": "narrow slot",
        **changes,
    }
    return "{" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}"


@pytest.mark.parametrize(
    ("waivers", "path", "hint"),
    [
        ([waiver(check="pcie_link_wdth")], "[0].check", "did you mean 'pcie_link_width'?"),
        ([waiver(check="zzz")], "[0].check", "checks: gpu_presence, pcie_link_width"),
        ([waiver(until="2027-02-30")], "[0].until", "a day as YYYY-MM-DD"),
        ([waiver(until="2027-01-31 10:00:00")], "[0].until", "without a time"),
        ([waiver(until="forever")], "[0].until", "a day as YYYY-MM-DD"),
        ([waiver(owner='" "')], "[0].owner", "who answers"),
        ([waiver(why='""')], "[0].why", "why"),
        ([waiver(host='""')], "[0].host", "leave it out"),
        ([waiver(), waiver(until="2028-01-31")], "[1]", "keep one"),
    ],
)
def test_a_waiver_that_does_not_hold(waivers: list[str], path: str, hint: str) -> None:
    problem = problem_of(f"{{waivers: [{', '.join(waivers)}]}}")
    assert problem.path == f"nodeprep_policy.waivers{path}"
    assert hint in problem.hint


def test_a_waiver_needs_owner_end_and_reason() -> None:
    problems = problems_of("nodeprep_policy: {waivers: [{check: pcie_link_width}]}")
    assert {problem.path.rpartition(".")[2] for problem in problems} == {"owner", "until", "why"}


@pytest.mark.parametrize("limit", ["0%", "0.5%", "101%", "100.1%", "0W", "0.5 W"])
def test_a_power_limit_out_of_range(limit: str) -> None:
    assert problem_of(f"{{gpu: {{power_limit: {limit}}}}}").path == "nodeprep_policy.gpu.power_limit"


@pytest.mark.parametrize("limit", ["1%", "93%", "93.5 %", "100%", "650W", "650 W", "312.5W"])
def test_a_power_limit_in_range(limit: str) -> None:
    text = f"nodeprep_policy: {{gpu: {{power_limit: {limit}}}}}"
    assert settings_from_text(text, source="x", known_checks=CHECKS).policy.gpu.power_limit == limit


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("{present: [iommu=off], absent: [iommu=off]}", "asked to be present, and absent"),
        ("{present: [iommu=off], absent: [iommu]}", "asked to be present, and absent by iommu"),
        ("{present: ['pci=realloc,noaer']}", "absent by pci=noaer (which is there by default)"),
        ("{absent: [iommu=off]}", "asked to be present, and absent"),
        ("{present: [iommu=off, iommu=off]}", "listed twice"),
        ("{present: [pcie_aspm=off, pcie-aspm=off]}", "listed twice"),
        ("{absent: [quiet, quiet]}", "listed twice"),
        ("{present: [iommu=off, iommu=pt]}", "iommu=pt contradicts iommu=off"),
        ("{present: [pcie_aspm=off, pcie_aspm=force]}", "contradicts"),
        ("{present: [pcie_aspm=of, iommu=off]}", "pcie_aspm takes no 'of'"),
        ("{replace: [pcie_ports=nativ]}", "pcie_ports takes no 'nativ'"),
        ("{present: ['iommu=off quiet']}", "is not one kernel argument"),
        ("{present: ['']}", "an empty argument"),
        ("{present: ['=off']}", "is not a kernel argument"),
        ("{present: ['--']}", "is not one kernel argument"),
        ("{present: [pci=noacs]}", "the kernel has no option pci=noacs"),
    ],
)
def test_kernel_arguments_that_make_no_sense(args: str, says: str) -> None:
    assert says in problem_of(f"{{kernel_args: {args}}}").message


@pytest.mark.parametrize(
    "args",
    [
        "{present: [console=tty0, 'console=ttyS0,115200']}",
        "{present: ['iommu=pt', 'intel_iommu=on', pcie_aspm.policy=performance]}",
        "{present: ['dyndbg=\"file drivers/pci/* +p\"', quiet]}",
        "{present: [], absent: []}",
        "{absent: ['pci=noaer', 'pci=nommconf']}",
    ],
)
def test_kernel_arguments_that_make_sense(args: str) -> None:
    assert settings_from_text(f"nodeprep_policy: {{kernel_args: {args}}}", source="x", known_checks=CHECKS)


def test_two_generations_that_disagree() -> None:
    problem = problem_of("{bios: {pcie_link_gen: 4}, pcie_link: {gen: 5}}")
    assert problem.path == "nodeprep_policy.pcie_link.gen"


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ("nodeprep_policy:\n  gpu: {}\n  gpu: {}\n", "nodeprep_policy.gpu", "lines 2 and 3"),
        ("nodeprep_profile: h100\n\nnodeprep_profile: a100\n", "nodeprep_profile", "lines 1 and 3"),
        (
            "nodeprep_policy:\n  gpu:\n    power_limit: 1%\n    power_limit: 2%\n    power_limit: 3%\n",
            "nodeprep_policy.gpu.power_limit",
            "given 3 times: lines 3, 4 and 5",
        ),
        ("nodeprep_policy: {\n", "line 2, column 1", "not YAML"),
        ("nodeprep_policy:\n\tgpu: {}\n", "line 2, column 1", "not YAML"),
        ("nodeprep_policy: {}\n---\nx: 1\n", "line 2, column 1", "a second document"),
        ("nodeprep_policy: !vault x\n", "line 1, column 18", "a tag YAML does not know"),
        ("- 1\n", "(top)", "expected a mapping, got list"),
        ("a: &a [*a]\n", "(file)", "an alias inside itself"),
        ("[" * 5000, "(file)", "too large or too deep"),
        ("\x00", "(file)", "not YAML"),
    ],
)
def test_yaml_that_does_not_hold(text: str, path: str, says: str) -> None:
    (problem,) = problems_of(text)
    assert problem.path == path
    assert says in problem.message
    assert problem.hint


def test_an_alias_bomb_is_refused_quickly() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 12)]
    (problem,) = problems_of("\n".join(rows))
    assert "too large" in problem.message


def test_keys_of_the_policy_at_the_top() -> None:
    (problem,) = problems_of("gpu: {power_limit: 93%}\n")
    assert (problem.path, problem.hint) == ("gpu", "put it under nodeprep_policy:")


@pytest.mark.parametrize("profile", ["h10", "H100", "true", "[]", "null", "7"])
def test_a_profile_that_does_not_exist(profile: str) -> None:
    (problem,) = problems_of(f"nodeprep_profile: {profile}\n")
    assert problem.path == "nodeprep_profile"
    assert "auto, a100, a100_pcie, generic, h100, h100_pcie, h200, h200_nvl" in problem.hint


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text("nodeprep_profile: h100\n")
    assert load_settings_file(file, known_checks=CHECKS).profile == "h100"
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        load_settings_file(tmp_path / "missing.yaml", known_checks=CHECKS)
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        load_settings_file(tmp_path, known_checks=CHECKS)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not text"):
        load_settings_file(file, known_checks=CHECKS)


class Tagged(str):
    """As Ansible hands out texts: with something attached."""

    __slots__ = ("origin",)


def test_inventory_variables() -> None:
    variables = {
        "ansible_host": "10.0.0.7",
        "node_exporter_version": 3,
        "nodeprep_root": "/",
        "nodeprep_profile": Tagged("h200"),
        "nodeprep_policy": {Tagged("gpu"): {Tagged("power_limit"): Tagged("93%")}},
    }
    settings = settings_from_variables(variables, source="node07", known_checks=CHECKS)
    assert settings.profile == "h200"
    assert settings.policy.gpu.power_limit == "93%"
    assert type(settings.policy.gpu.power_limit) is str


def test_no_variables_are_the_default_policy() -> None:
    assert settings_from_variables({}, source="node07", known_checks=CHECKS).profile == "auto"


@pytest.mark.parametrize("name", ["nodeprep_polcy", "nodeprep_profil", "nodeprep_policies"])
def test_a_misspelt_variable_is_not_ignored(name: str) -> None:
    with pytest.raises(PolicyError) as caught:
        settings_from_variables({name: {}}, source="node07", known_checks=CHECKS)
    (problem,) = caught.value.problems
    assert problem.path == name
    assert problem.hint.startswith("did you mean 'nodeprep_p")


def values(depth: int = 2) -> Iterator[Any]:
    """Things people put where something else belongs."""
    yield from (None, True, 0, -1, 1.5, "", "x", "93%", date(2027, 1, 1))
    if depth:
        for value in list(values(depth - 1)):
            yield [value]
            yield {"check": value}
            yield {"present": value, "absent": value}
            yield {7: value}


SECTIONS = ("kernel_args", "bios", "pcie_link", "gpu", "monitor", "certify", "waivers", "probe_python", "x")


def faults_of(policy: Any) -> tuple[Problem, ...]:
    try:
        settings_from_variables({"nodeprep_policy": policy}, source="x", known_checks=CHECKS)
    except PolicyError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("section", SECTIONS)
def test_nothing_but_problems_with_hints_comes_of_nonsense(section: str) -> None:
    found = [problem for value in values() for problem in faults_of({section: value})]
    assert len(found) > 50
    assert [problem for problem in found if not problem.hint] == []
