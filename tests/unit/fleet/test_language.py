from __future__ import annotations

import locale
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeprep.bmc.password import ENVIRONMENT
from nodeprep.fleet import Fleet
from nodeprep.fleet.language import WITHHELD, utf8_environment

Write = Callable[[dict[str, dict[str, Any]]], Path]


@pytest.fixture
def no_language(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_language")
@pytest.mark.parametrize(
    ("name", "value"), [("LC_ALL", "C"), ("LC_ALL", "POSIX"), ("LANG", "C"), ("LC_MESSAGES", "xx_YY.UTF-8")]
)
def test_a_locale_that_ansible_refuses_is_replaced(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    before = locale.setlocale(locale.LC_ALL)
    monkeypatch.setenv(name, value)
    added = utf8_environment()
    assert added["LC_ALL"].endswith("UTF-8")
    # It is looked at, not changed: the locale belongs to the whole process.
    assert locale.setlocale(locale.LC_ALL) == before
    code = "import ansible.cli"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | added, capture_output=True, check=False
    )
    assert done.stderr == b""


@pytest.mark.usefixtures("no_language")
def test_a_locale_that_will_do_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert utf8_environment() == {}


def test_a_fleet_works_under_lc_all_c(
    monkeypatch: pytest.MonkeyPatch, make_fleet: Callable[..., Fleet], write_inventory: Write
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    fleet = make_fleet(write_inventory({"n1": {"nodeprep_profile": "größe"}}))
    (target,) = fleet.targets(None)
    assert target.variables["nodeprep_profile"] == "größe"
    assert fleet.run("inspect.yml", [target], phase="inspect")["n1"].state == "done"


def test_the_bmcs_password_is_what_ansible_does_not_get() -> None:
    assert ENVIRONMENT in WITHHELD
