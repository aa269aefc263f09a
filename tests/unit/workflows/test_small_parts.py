"""Home folder, workloads, budgets, content digest, init, doctor."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from nodeprep.errors import PolicyError, UsageError
from nodeprep.model.policy import Policy
from nodeprep.node.workload_file import shipped
from nodeprep.profiles import load_settings_file
from nodeprep.workflows.apply import Budget
from nodeprep.workflows.content import content_digest
from nodeprep.workflows.doctor import doctor
from nodeprep.workflows.home import Home
from nodeprep.workflows.init import write_site
from nodeprep.workflows.workloads import load_workload


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"NODEPREP_HOME": "/a"}, "/a"),
        ({"XDG_STATE_HOME": "/s"}, "/s/nodeprep"),
        ({"NODEPREP_HOME": "/a", "XDG_STATE_HOME": "/s"}, "/a"),
    ],
)
def test_home(environment: dict[str, str], expected: str) -> None:
    assert Home.from_environment(environment).path == Path(expected)


def test_a_shipped_workload_is_its_name() -> None:
    assert load_workload("vit-g") == "vit-g"


def test_a_workload_file_is_its_mapping(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    mine = {**shipped("tiny"), "name": "mine", "batch": 3}
    file.write_text(yaml.safe_dump(mine))
    # What is for people only does not travel.
    assert load_workload(str(file)) == {key: value for key, value in mine.items() if key != "about"}


def test_all_faults_of_a_workload_file_are_told_at_once_with_their_keys(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        yaml.safe_dump({**shipped("tiny"), "name": "mine", "widht": 3, "batch": 0, "launch": "lazy"})
    )
    with pytest.raises(PolicyError) as caught:
        load_workload(str(file))
    assert {problem.path for problem in caught.value.problems} == {"widht", "batch", "launch"}
    assert "did you mean width?" in str(caught.value)


def test_a_shipped_name_means_the_shipped_numbers(tmp_path: Path) -> None:
    file = tmp_path / "copy.yaml"
    file.write_text(yaml.safe_dump(shipped("vit-g")))
    assert load_workload(str(file))["name"] == "vit-g"  # type: ignore[index]
    file.write_text(yaml.safe_dump({**shipped("vit-g"), "pcie_share": 0.1}))
    with pytest.raises(UsageError, match="with other numbers") as caught:
        load_workload(str(file))
    assert "name of its own" in caught.value.hint


@pytest.mark.parametrize("text", ["- a list", "batch: 3", "name: [", "name: 4"])
def test_a_workload_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"bad\.yaml"):
        load_workload(str(file))


def test_an_unknown_workload_lists_those_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        load_workload("vit-h")
    assert "vit-g" in caught.value.hint


def test_a_missing_workload_file_is_named() -> None:
    with pytest.raises(UsageError, match=r"gone\.yaml"):
        load_workload("gone.yaml")


@pytest.mark.parametrize(
    ("batch", "sizes"), [(None, [10]), ("4", [4, 4, 2]), ("50%", [5, 5]), ("1%", [1] * 10), ("99", [10])]
)
def test_batches_hold_every_host_once(batch: str | None, sizes: list[int]) -> None:
    hosts = [f"n{number}" for number in range(10)]
    slices = list(Budget(batch=batch).batches(hosts))
    assert [len(each) for each in slices] == sizes
    assert [host for each in slices for host in each] == hosts


@pytest.mark.parametrize(
    ("allowed", "failed", "spent"),
    [
        (None, 9, False),
        ("0", 0, False),
        ("0", 1, True),
        ("2", 2, False),
        ("2", 3, True),
        ("10%", 1, False),
        ("10%", 2, True),
    ],
)
def test_failure_budget(allowed: str | None, failed: int, spent: bool) -> None:
    assert Budget(max_failed=allowed).spent(failed, 10) is spent


@pytest.mark.parametrize("text", ["few", "-1", "5 %", "1.5"])
def test_a_budget_that_is_no_number_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        Budget(max_failed=text).check()


@pytest.mark.parametrize("text", ["0", "0%", "200%", "abc"])
def test_a_batch_of_no_hosts_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Budget(batch=text).check()


def test_the_content_digest_is_stable_within_an_installation() -> None:
    assert content_digest() == content_digest()
    assert len(content_digest()) == 64


def test_init_writes_a_site_whose_policy_loads(tmp_path: Path) -> None:
    created = write_site(tmp_path)
    assert all(Path(name).is_file() for name in created.files)
    settings = load_settings_file(tmp_path / "group_vars" / "gpu_nodes.yml")
    assert isinstance(settings.policy, Policy)
    assert settings.policy.gpu.power_limit == "93%"
    inventory = yaml.safe_load((tmp_path / "inventory.yml").read_text())
    assert "gpu_nodes" in inventory


def test_init_leaves_what_is_there_alone(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write_site(tmp_path)
    assert (tmp_path / "inventory.yml").read_text() == "mine"
    assert not (tmp_path / "group_vars").exists()


def test_doctor_finds_this_controller_ready(tmp_path: Path) -> None:
    found = doctor(Home(tmp_path / "home"))
    assert found.ready, [finding for finding in found.findings if finding.status == "missing"]


def test_doctor_misses_a_private_key_whose_public_key_is_there(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.keys.mkdir()
    (home.keys / "nodeprep.pub").write_text("public")
    found = doctor(home)
    assert not found.ready
    assert any(finding.name == "key nodeprep" and finding.status == "missing" for finding in found.findings)


def test_doctor_does_not_overlook_a_key_that_others_can_read(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.keys.mkdir()
    key = home.keys / "nodeprep.pem"
    key.write_text("secret")
    key.chmod(0o644)
    found = doctor(home)
    assert not found.ready
    assert any("chmod 600" in finding.hint for finding in found.findings)
