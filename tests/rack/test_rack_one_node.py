"""A healthy simulated node on its way from the rack to a certificate, command by command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from commands import Cli, Said

from nodeprep.node import gpu_power
from nodeprep.sim.rack import RackInventory, build_rack


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> RackInventory:
    return build_rack(tmp_path_factory.mktemp("one") / "rack", nodes=1, gpus=2)


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return Cli(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def planned(cli: Cli, rack: RackInventory) -> Said:
    """Before anything was changed."""
    return cli("plan", "-i", rack.inventory, "--json")


@pytest.fixture(scope="module")
def checked(cli: Cli, rack: RackInventory, planned: Said) -> Said:
    """Effect checks before anything was changed."""
    return cli("verify", "-i", rack.inventory, "--json")


@pytest.fixture(scope="module")
def applied(cli: Cli, rack: RackInventory, checked: Said) -> Said:
    return cli("apply", "--yes", "-i", rack.inventory, "--json")


@pytest.fixture(scope="module")
def certified(cli: Cli, rack: RackInventory, applied: Said) -> Said:
    return cli("certify", "-i", rack.inventory, "-o", rack.folder / "run", "--json")


@pytest.fixture(scope="module")
def certificate(rack: RackInventory, certified: Said) -> Path:
    return rack.folder / "run" / "certificates" / "node01.json"


def test_plan_finds_the_power_limit_and_says_so_with_its_exit_code(planned: Said) -> None:
    assert planned.code == 10, planned.stderr
    changes = [change for change in planned.document["changes"] if change["status"] == "change"]
    assert sorted(change["knob"] for change in changes) == [
        "gpu_power_boot", "gpu_power_limit", "gpu_power_limit",
    ]  # fmt: skip
    assert planned.document["simulated"] is True


def test_the_run_of_a_simulated_rack_says_so(cli: Cli, planned: Said) -> None:
    runs = [json.loads(path.read_text()) for path in (cli.home / "runs").glob("*-plan-*/run.json")]
    assert runs
    assert all(run["simulated"] for run in runs)


def test_plan_tells_of_bmc_access_that_would_stop_apply(cli: Cli, tmp_path: Path) -> None:
    rack = build_rack(tmp_path / "rack", nodes=1, gpus=1)
    inventory = yaml.safe_load(rack.inventory.read_text())
    (group,) = inventory.values()
    group["hosts"]["node01"]["nodeprep_bmc"] = {"protocol": "ipmi", "adress": "10.0.0.7", "user": "admin"}
    rack.inventory.write_text(yaml.safe_dump(inventory))
    told = cli("plan", "-i", rack.inventory, "--json")
    assert told.code == 2
    assert told.document["schema"] == "nodeprep.plan/1"
    assert "did you mean address?" in told.stderr


def test_verify_rejects_a_node_before_apply(checked: Said) -> None:
    assert checked.code == 20, checked.stderr
    failed = {check["id"] for check in checked.document["checks"] if check["status"] == "FAIL"}
    assert failed == {"power_limit", "power_boot"}


def test_apply_writes_the_limit_and_reads_it_back(applied: Said, rack: RackInventory) -> None:
    assert applied.code == 0, applied.stderr
    assert applied.document["state"] == "applied"
    assert all(change["status"] == "ok" for change in applied.document["after"]["changes"])


def test_a_second_plan_finds_nothing_and_a_second_apply_changes_nothing(
    cli: Cli, rack: RackInventory, applied: Said
) -> None:
    assert cli("plan", "-i", rack.inventory, "-q").code == 0
    again = cli("apply", "--yes", "-i", rack.inventory, "--json")
    assert (again.code, again.document["state"]) == (0, "unchanged")


def test_certify_certifies_and_marks_everything_as_simulated(certified: Said, rack: RackInventory) -> None:
    assert certified.code == 0, certified.stderr
    run = rack.folder / "run"
    for name in (
        "facts/node01.before.json",
        "facts/node01.after.json",
        "probe/node01/result.json",
        "run.json",
    ):
        assert json.loads((run / name).read_text())["simulated"] is True, name
    telemetry = sorted((run / "probe" / "node01").glob("telemetry-*.json"))
    assert len(telemetry) == 2
    assert all(json.loads(file.read_text())["simulated"] is True for file in telemetry)
    assert "imulated" in (run / "report.html").read_text()
    assert (run / "evidence" / "node01.tar.gz").stat().st_size > 0


def test_what_certify_prints_is_the_file_it_wrote(certified: Said, certificate: Path) -> None:
    assert certified.document == json.loads(certificate.read_text())
    assert certified.document["payloadType"] == "application/vnd.in-toto+json"


def test_a_simulated_certificate_is_accepted_only_on_request(cli: Cli, certificate: Path) -> None:
    refused = cli("cert", "verify", certificate, "--json")
    assert (refused.code, refused.document["signature_valid"]) == (21, True)
    assert cli("cert", "verify", certificate, "--allow-simulated").code == 0


def test_one_changed_byte_is_refused(cli: Cli, certificate: Path, tmp_path: Path) -> None:
    envelope = json.loads(certificate.read_text())
    payload = envelope["payload"]
    place = len(payload) // 2
    envelope["payload"] = payload[:place] + ("A" if payload[place] != "A" else "B") + payload[place + 1 :]
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(envelope))
    said = cli("cert", "verify", forged, "--allow-simulated", "--json")
    assert said.code == 20
    assert said.document["signature_valid"] is False


def test_another_controllers_key_is_refused(cli: Cli, certificate: Path, tmp_path: Path) -> None:
    said = Cli(tmp_path / "elsewhere")("cert", "verify", certificate, "--allow-simulated")
    assert said.code != 0
    assert "error" in said.stderr


def test_drift_names_exactly_what_changed(cli: Cli, rack: RackInventory, certificate: Path) -> None:
    same = cli("cert", "drift", certificate, "-i", rack.inventory, "--json")
    assert (same.code, same.document["differences"]) == (0, []), same.stderr
    gpu_power.apply(str(rack.nodes[0].root), limit="600W", persistence=True)
    drifted = cli("cert", "drift", certificate, "-i", rack.inventory, "--json")
    assert drifted.code == 10, drifted.stderr
    found = drifted.document["differences"]
    addresses = [gpu.address for gpu in rack.nodes[0].machine.description.gpus]
    of_gpus = {
        f"gpu.{address}.{name}" for address in addresses for name in ("power_limit_w", "power_enforced_w")
    }
    assert {difference["key"] for difference in found} == of_gpus | {"boot_unit.limit"}
    changes = {(difference["certified"], difference["now"]) for difference in found}
    assert changes == {("651", "600"), ("93%", "600W")}
