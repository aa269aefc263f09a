"""BMC passwords in Ansible's vault, with Ansible's own programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprep.errors import PolicyError
from nodeprep.fleet import Fleet, bmc_passwords, vault
from nodeprep.fleet.content import program
from nodeprep.workflows.outside import Outside

Write = Callable[[dict[str, dict[str, Any]]], Path]
Make = Callable[..., Fleet]
BMC = {"protocol": "ipmi", "address": "10.0.0.7", "user": "admin"}
SECRET = "pw-of-bmc-7!"


class Vaulted(str):
    """Becomes a value with the tag !vault."""


def sealed(text: str, password: Path) -> Vaulted:
    done = subprocess.run(
        [program("ansible-vault"), "encrypt", "--output", "-", "-"],
        input=text,
        env={**os.environ, "ANSIBLE_VAULT_PASSWORD_FILE": str(password)},
        capture_output=True,
        text=True,
        check=True,
    )
    return Vaulted(done.stdout)


@pytest.fixture
def password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The vault's password, which Ansible finds."""
    path = tmp_path / "vault-password"
    path.write_text("open sesame\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(path))
    monkeypatch.delenv("NODEPREP_BMC_PASSWORD", raising=False)
    yaml.SafeDumper.add_representer(
        Vaulted, lambda dumper, text: dumper.represent_scalar("!vault", str(text), style="|")
    )
    return path


def test_a_vaulted_value_is_opened_and_shown_nowhere(
    make_fleet: Make, write_inventory: Write, password: Path
) -> None:
    value = sealed(SECRET, password)
    own = {"nodeprep_bmc": BMC, "nodeprep_bmc_password": value}
    (target,) = make_fleet(write_inventory({"node01": own})).targets(None)
    assert bmc_passwords([target]) == {"node01": SECRET}
    assert "nodeprep_bmc_password" not in target.variables
    assert "VAULT" not in repr(target)
    outside = Outside.of([target])
    assert outside.has_bmc("node01")
    assert SECRET not in repr(outside._ways)


def test_a_value_of_a_group_is_opened_once(
    make_fleet: Make, write_inventory: Write, password: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = sealed(SECRET, password)
    targets = make_fleet(
        write_inventory({f"node0{n}": {"nodeprep_bmc_password": value} for n in range(1, 4)})
    ).targets(None)
    calls: list[str] = []
    opened = vault._opened
    monkeypatch.setattr(vault, "_opened", lambda text: (calls.append(text), opened(text))[1])
    assert bmc_passwords(targets) == dict.fromkeys(("node01", "node02", "node03"), SECRET)
    assert len(calls) == 1


@pytest.mark.parametrize("whole_file", [True, False])
def test_a_reference_into_a_vault_is_followed(
    make_fleet: Make, write_inventory: Write, password: Path, whole_file: bool
) -> None:
    """Ansible's manual: a variable in the open that names one in an encrypted file."""
    inventory = write_inventory({"node01": {"nodeprep_bmc_password": "{{ vault_bmc }}"}})
    folder = inventory.parent / "group_vars" / "all"
    folder.mkdir(parents=True)
    text = f'vault_bmc: "{SECRET}"\n'
    value = sealed(text, password) if whole_file else yaml.safe_dump({"vault_bmc": sealed(SECRET, password)})
    (folder / "vault.yml").write_text(str(value))
    assert bmc_passwords(make_fleet(inventory).targets(None)) == {"node01": SECRET}


def test_a_wrong_or_missing_vault_password_is_told_for_every_host(
    make_fleet: Make, write_inventory: Write, password: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = sealed(SECRET, password)
    own = {"nodeprep_bmc_password": value}
    targets = make_fleet(write_inventory({"node01": own, "node02": own})).targets(None)
    password.write_text("wrong\n")
    with pytest.raises(PolicyError) as caught:
        bmc_passwords(targets)
    assert [problem.path for problem in caught.value.problems] == [
        "node01.nodeprep_bmc_password",
        "node02.nodeprep_bmc_password",
    ]
    assert "ansible-vault could not open it: " in caught.value.message
    assert "ANSIBLE_VAULT" not in caught.value.problems[0].message
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE")
    with pytest.raises(PolicyError, match="ansible-vault could not open it"):
        bmc_passwords(targets)


@pytest.mark.parametrize(
    ("value", "words"),
    [(4711, "is not text"), ("{{ lookup('env', 'X') }}", "is a template"), ("{{ nobody }}", "is a template")],
)
def test_what_is_no_password_is_refused(
    make_fleet: Make, write_inventory: Write, value: Any, words: str
) -> None:
    targets = make_fleet(write_inventory({"node01": {"nodeprep_bmc_password": value}})).targets(None)
    with pytest.raises(PolicyError, match=words):
        bmc_passwords(targets)


def test_two_places_for_one_password_are_refused(
    make_fleet: Make, write_inventory: Write, password: Path
) -> None:
    own = {
        "nodeprep_bmc": BMC,
        "nodeprep_bmc_password": sealed(SECRET, password),
        "nodeprep_bmc_password_file": str(password),
    }
    with pytest.raises(PolicyError, match="nodeprep_bmc_password are both given"):
        Outside.of(make_fleet(write_inventory({"node01": own})).targets(None))
