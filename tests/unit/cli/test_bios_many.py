"""`nodeprep bios plan` and `show` over the hosts of an inventory: one document, and no host lost."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprep.cli.main import invoke
from nodeprep.sim.bmc import Dump, SimulatedBmc, serving, tls_in
from nodeprep.workflows import bios_many

SECRET = "correct-horse-4711"
ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/1"
WANTED = ("--set", "iommu=disabled")
Run = Callable[..., tuple[int, dict[str, Any], str]]


def tree(iommu: str = "Enabled") -> dict[str, Any]:
    return {
        f"{ROOT}/Systems": {"Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {
            "@odata.id": SYSTEM,
            "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
            "Manufacturer": "Acme",
            "Bios": {"@odata.id": f"{SYSTEM}/Bios"},
        },
        f"{SYSTEM}/Bios": {
            "@odata.id": f"{SYSTEM}/Bios",
            "@odata.type": "#Bios.v1_1_0.Bios",
            "Attributes": {"IommuSupport": iommu, "SriovGlobalEnable": "Enabled"},
        },
    }


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.delenv("NODEPREP_BMC_PASSWORD", raising=False)
    monkeypatch.setenv("NODEPREP_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(bios_many, "PATIENCE_S", 3.0)
    good, bad = tmp_path / "good.secret", tmp_path / "bad.secret"
    for path, text in ((good, SECRET), (bad, "wrong-battery")):
        path.write_text(text)
        path.chmod(0o600)
    tls, other = tls_in(tmp_path / "tls"), tls_in(tmp_path / "other")

    def run_(verb: str, hosts: dict[str, Any], *arguments: str) -> tuple[int, dict[str, Any], str]:
        dumps = {name: what for name, what in hosts.items() if isinstance(what, tuple)}
        bmcs = [
            SimulatedBmc(Dump(dump), user="admin", password=SECRET, faults=faults)
            for dump, faults in dumps.values()
        ]
        with serving(bmcs, tls=tls) as served:
            ports = dict(zip(dumps, (one.port for one in served), strict=True))
            entries: dict[str, Any] = {}
            for name, what in hosts.items():
                bmc = {"protocol": "redfish", "address": "127.0.0.1", "user": "admin", "ca": str(tls.ca)}
                bmc["port"] = ports.get(name, what)
                entry: dict[str, Any] = {"nodeprep_bmc": bmc, "nodeprep_bmc_password_file": str(good)}
                if name == "badpass":
                    entry["nodeprep_bmc_password_file"] = str(bad)
                if name == "badcert":
                    bmc["ca"] = str(other.ca)
                if name == "ipmi":
                    entry["nodeprep_bmc"] = {"protocol": "ipmi", "address": "127.0.0.1", "user": "admin"}
                entries[name] = {} if name == "nobmc" else entry
            inventory = tmp_path / "hosts.yml"
            inventory.write_text(yaml.safe_dump({"all": {"hosts": entries}}))
            code = invoke(["bios", verb, *arguments, "-i", str(inventory), "--json"])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert SECRET not in out + err
        return int(code), json.loads(out), err

    return run_


def test_every_host_is_in_the_document_each_with_its_own_error(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        hosts = {
            "good1": (tree(), ()),
            "dead": taken.getsockname()[1],
            "hung": (tree(), ("hang",)),
            "badpass": (tree(), ()),
            "badcert": (tree(), ()),
            "nobmc": 0,
            "ipmi": 0,
            "good2": (tree("Disabled"), ()),
        }
        code, document, err = run("plan", hosts, *WANTED)
    assert document["schema"] == "nodeprep.bios_plan_list/1"
    assert {host: plan["knobs"][0]["status"] for host, plan in document["hosts"].items()} == {
        "good1": "change",
        "good2": "ok",
    }
    codes = {host: error["exit_code"] for host, error in document["errors"].items()}
    assert codes == {"dead": 12, "hung": 12, "badpass": 12, "badcert": 12, "nobmc": 2, "ipmi": 2}
    told = {host: error["error"] for host, error in document["errors"].items()}
    assert "gives no answer" in told["dead"]
    assert "gives no answer" in told["hung"]
    assert "does not let user 'admin' in" in told["badpass"]
    assert "certificate" in told["badcert"]
    assert "names no BMC" in told["nobmc"]
    assert "no path to BIOS settings" in told["ipmi"]
    assert all(error["hint"] for error in document["errors"].values())
    assert code == 2
    assert "wrong-battery" not in json.dumps(document) + err


def test_the_worst_host_speaks_for_all(run: Run) -> None:
    same, differs = (tree("Disabled"), ()), (tree(), ())
    assert run("plan", {"a": same, "b": same}, *WANTED)[0] == 0
    assert run("plan", {"a": same, "b": differs}, *WANTED)[0] == 10
    assert run("plan", {"a": same, "badpass": differs}, *WANTED)[0] == 12


def test_one_host_has_its_own_document(run: Run) -> None:
    code, document, _ = run("plan", {"a": (tree(), ())}, *WANTED)
    assert (code, document["schema"]) == (10, "nodeprep.bios_plan/1")
    code, document, _ = run("plan", {"badpass": (tree(), ())}, *WANTED)
    assert (code, document["schema"], document["exit_code"]) == (12, "nodeprep.error/1", 12)


def test_a_pattern_picks_hosts_and_show_lists_them(run: Run) -> None:
    hosts = {name: (tree(), ()) for name in ("a", "b", "c")}
    code, document, _ = run("show", hosts, "a:b")
    assert (code, document["schema"]) == (0, "nodeprep.bios_list/1")
    assert list(document["hosts"]) == ["a", "b"]
    assert document["hosts"]["a"]["attributes"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("bios", "plan", "--set", "iommu=disabled"),
        ("bios", "plan", "node1", "--bmc", "https://10.0.0.7", "--set", "iommu=disabled"),
        ("bios", "apply", "--set", "iommu=disabled", "--yes"),
    ],
)
def test_a_machine_must_be_named_in_one_way(arguments: tuple[str, ...]) -> None:
    assert invoke(list(arguments)) == 2
