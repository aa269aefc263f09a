"""`nodeprep bios`: exit codes and documents over real connections to simulated BMCs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nodeprep.bmc.redfish.connection import Connection
from nodeprep.cli.main import invoke
from nodeprep.sim.bmc import Dump, SimulatedBmc, serving, tls_in
from nodeprep.sim.certificates import Tls

SECRET = "correct-horse-4711"
ROOT, SYSTEM = "/redfish/v1", "/redfish/v1/Systems/1"
BIOS = f"{SYSTEM}/Bios"
VALUES = {"IommuSupport": "Enabled", "PciSlot1LinkSpeed": "Auto"}
WANTED = ("--set", "pcie_link_gen=4", "--set", "iommu=disabled")


def registry() -> dict[str, Any]:
    def values(*names: str) -> list[dict[str, str]]:
        return [{"ValueName": name, "ValueDisplayName": name} for name in names]

    listed = [
        {"AttributeName": "IommuSupport", "Type": "Enumeration", "Value": values("Enabled", "Disabled")},
        {
            "AttributeName": "PciSlot1LinkSpeed",
            "Type": "Enumeration",
            "Value": values("Auto", "Gen3", "Gen4"),
        },
    ]
    return {"Language": "en", "RegistryEntries": {"Attributes": listed, "Dependencies": []}}


def tree(**changed: Any) -> dict[str, Any]:
    """A dump; a keyword replaces a resource: bios, system, settings, registry; None leaves it out."""
    made: dict[str, Any] = {
        "root": {"RedfishVersion": "1.6.0", "Systems": {"@odata.id": f"{ROOT}/Systems"}},
        "systems": {"Members": [{"@odata.id": SYSTEM}]},
        "system": {
            "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
            "Manufacturer": "Acme",
            "PowerState": "On",
            "BootProgress": {"LastState": "OSRunning"},
            "Bios": {"@odata.id": BIOS},
        },
        "bios": {
            "@odata.type": "#Bios.v1_0_0.Bios",
            "AttributeRegistry": "BiosAttributeRegistry",
            "Attributes": VALUES,
            "@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{BIOS}/Settings"}},
        },
        "settings": {"@odata.id": f"{BIOS}/Settings", "Attributes": {}},
        "registry": registry(),
        **changed,
    }
    uris = {
        "root": ROOT,
        "systems": f"{ROOT}/Systems",
        "system": SYSTEM,
        "bios": BIOS,
        "settings": f"{BIOS}/Settings",
        "registry": f"{ROOT}/Registries/BiosAttributeRegistry",
    }
    return {uris[name]: body for name, body in made.items() if body is not None}


Run = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return tls_in(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, tls: Tls
) -> Iterator[Run]:
    monkeypatch.setenv("NODEPREP_BMC_PASSWORD", SECRET)
    monkeypatch.setenv("NODEPREP_HOME", str(tmp_path / "home"))

    def run_(
        verb: str,
        dump: dict[str, Any],
        *arguments: str,
        faults: tuple[str, ...] = (),
        trust: tuple[str, ...] | None = None,
    ) -> tuple[int, dict[str, Any], str]:
        bmc = SimulatedBmc(Dump(dump), user="admin", password=SECRET, faults=faults, post_s=0.1)
        with serving([bmc], tls=tls) as served:
            verified = ("--ca", str(tls.ca)) if trust is None else trust
            code = invoke(["bios", verb, "--bmc", served[0].url, *verified, *arguments, "--json"])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert SECRET not in out + err
        return int(code), json.loads(out), err

    return run_


def test_plan_exits_10_with_what_differs_and_0_with_nothing(run: Run) -> None:
    code, document, _ = run("plan", tree(), *WANTED)
    assert code == 10
    assert {knob["knob"]: knob["status"] for knob in document["knobs"]} == {
        "pcie_link_gen": "change",
        "iommu": "change",
    }
    assert (document["schema"], document["simulated"], document["needs_reset"]) == (
        "nodeprep.bios_plan/1",
        True,
        True,
    )
    code, document, _ = run("plan", tree(), "--set", "iommu=enabled")
    assert (code, document["knobs"][0]["status"], document["needs_reset"]) == (0, "ok", False)


def test_a_knob_this_bmc_has_not_is_unsupported_and_exits_10(run: Run) -> None:
    code, document, _ = run("plan", tree(), "--set", "xhci_handoff=disabled")
    assert (code, document["knobs"][0]["status"]) == (10, "unsupported")
    assert "Looked for" in document["knobs"][0]["reason"]


def test_a_system_without_bios_is_unsupported_with_the_reason(run: Run) -> None:
    system = {"@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem", "Manufacturer": "Acme"}
    code, document, _ = run("plan", tree(system=system, bios=None, settings=None, registry=None), *WANTED)
    assert code == 10
    assert {knob["status"] for knob in document["knobs"]} == {"unsupported"}
    assert any("no BIOS settings over Redfish" in note for note in document["notes"])


def test_without_registry_names_and_present_values_are_all_there_is(run: Run) -> None:
    code, document, _ = run("plan", tree(registry=None), *WANTED)
    assert (code, document["registry"]) == (10, "absent")
    assert any("no attribute registry" in note for note in document["notes"])


DAMAGED: dict[str, dict[str, Any]] = {
    "no system": tree(system=None, systems=None, bios=None, settings=None, registry=None),
    "systems is a list": tree(systems={"Members": {"@odata.id": SYSTEM}}),
    "bios link is a list": tree(
        system={"Bios": [BIOS], "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem"}
    ),
    "bios is named and gone": tree(bios=None, settings=None),
    "attributes null": tree(bios={"Attributes": None}, settings=None),
    "attributes empty": tree(bios={"Attributes": {}}, settings=None),
    "attributes a list": tree(bios={"Attributes": [VALUES]}, settings=None),
    "values are lists": tree(bios={"Attributes": {"IommuSupport": ["Enabled"]}}, settings=None),
    "settings is a list": tree(bios={"Attributes": VALUES, "@Redfish.Settings": ["x"]}, settings=None),
    "settings attributes a list": tree(settings={"Attributes": ["x"]}),
    "registry entries a list": tree(registry={"RegistryEntries": []}),
    "registry attributes null": tree(registry={"RegistryEntries": {"Attributes": None}}),
    "registry of numbers": tree(
        registry={"RegistryEntries": {"Attributes": [1, None, {"AttributeName": 7}]}}
    ),
    "bios is text": tree(bios="<html>login</html>", settings=None),
    "system is a list": tree(system=[], bios=None),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_tree_is_never_ok_and_never_a_traceback(name: str, run: Run) -> None:
    try:
        code, document, _ = run("plan", DAMAGED[name], *WANTED)
    except (AttributeError, TypeError, ValueError) as error:
        pytest.fail(f"{name}: {error!r}")
    assert code in (10, 21), document
    if code == 10:
        assert all(knob["status"] != "ok" for knob in document["knobs"])
    else:
        assert document["error"]


def test_errors_that_are_pages_are_not_settings(run: Run) -> None:
    code, document, _ = run("plan", tree(bios=None, settings=None), *WANTED, faults=("errors_html",))
    assert (code, document["exit_code"]) == (21, 21)


def test_a_certificate_that_nobody_vouches_for_exits_12_and_insecure_is_told(run: Run, tls: Tls) -> None:
    code, document, _ = run("plan", tree(), *WANTED, trust=())
    assert (code, "certificate" in document["error"]) == (12, True)
    assert "--ca FILE" in document["hint"]
    assert "--fingerprint SHA256" in document["hint"]
    code, document, _ = run("plan", tree(), *WANTED, trust=("--insecure",))
    assert (code, "insecure" in document["tls"]) == (10, True)
    code, document, _ = run("plan", tree(), *WANTED, trust=("--fingerprint", tls.fingerprint))
    assert (code, "pinned" in document["tls"]) == (10, True)
    assert run("plan", tree(), *WANTED, trust=("--fingerprint", "0" * 64))[0] == 12


def test_without_a_password_the_hint_names_the_option(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NODEPREP_BMC_PASSWORD")
    code, document, _ = run("plan", tree(), *WANTED)
    assert (code, document["hint"]) == (2, "NODEPREP_BMC_PASSWORD, or --bmc-password-file FILE")
    code, document, _ = run("plan", tree(), *WANTED, "--bmc-password-file", str(tmp_path / "none"))
    assert (code, document["hint"]) == (2, "--bmc-password-file must name a file you can read")


def test_a_wrong_password_exits_12(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEPREP_BMC_PASSWORD", "wrong")
    assert run("plan", tree(), *WANTED)[0] == 12


def test_a_busy_bmc_is_told_while_it_is_asked_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodeprep.cli.bios.Connection", partial(Connection, patience_s=2.5))
    arguments = ("--set", "iommu=disabled")
    for verb, more in (("show", ()), ("plan", arguments), ("apply", (*arguments, "--yes"))):
        code, document, err = run(verb, tree(), *more, faults=("busy_always",))
        assert (code, document["exit_code"]) == (12, 12)
        assert " ".join(err.split()).count("is busy (HTTP 503): asking again") == 1


def test_nobody_at_the_address_exits_12(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["bios", "plan", "--bmc", "https://127.0.0.1:1", *WANTED, "--json"]) == 12
    assert "gives no answer" in json.loads(capsys.readouterr().out)["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--bmc", "https://bmc"),
        ("--bmc", "https://bmc", "--set", "pcie_gen=4"),
        ("--bmc", "https://bmc", "--set", "iommu=7"),
        ("--bmc", "http://bmc", *WANTED),
        ("--bmc", "https://bmc", "--insecure", "--fingerprint", "0" * 64, *WANTED),
        ("--bmc", "https://bmc", "--ca", "/nowhere/ca.pem", *WANTED),
        WANTED,
    ],
)
def test_what_cannot_be_meant_exits_2(arguments: tuple[str, ...], run: Run) -> None:
    assert invoke(["bios", "plan", *arguments, "--json"]) == 2


def test_ipmi_has_no_path_to_bios_attributes(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["bios", "apply", "--bmc", "ipmi://10.0.0.7", *WANTED, "--yes", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert "IPMI has no path to BIOS attributes" in told["error"]
    assert "Redfish" in told["hint"]


def test_show_lists_knobs_and_attributes(run: Run) -> None:
    code, document, _ = run("show", tree())
    assert (code, document["schema"]) == (0, "nodeprep.bios/1")
    assert {one["name"]: one["current"] for one in document["attributes"]} == VALUES
    assert {one["knob"]: one["value"] for one in document["knobs"] if one["found"]} == {
        "iommu": "enabled",
        "pcie_link_gen": "auto",
    }


def test_for_people_the_answer_names_attribute_and_values(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tls: Tls
) -> None:
    bmc = SimulatedBmc(Dump(tree()), user="admin", password=SECRET, post_s=0.1)
    with serving([bmc], tls=tls) as served:
        assert invoke(["bios", "plan", "--bmc", served[0].url, "--ca", str(tls.ca), *WANTED]) == 10
        assert "IommuSupport: Enabled -> Disabled" in capsys.readouterr().out
        assert invoke(["bios", "show", "--bmc", served[0].url, "--insecure"]) == 0
        assert "not verified (insecure)" in capsys.readouterr().out


def test_a_headline_does_not_say_that_all_is_well_where_a_knob_cannot_be_set(
    run: Run, capsys: pytest.CaptureFixture[str], tls: Tls
) -> None:
    bmc = SimulatedBmc(Dump(tree()), user="admin", password=SECRET, post_s=0.1)
    with serving([bmc], tls=tls) as served:
        named = ("--bmc", served[0].url, "--ca", str(tls.ca), "--yes")
        assert invoke(["bios", "apply", *named, "--set", "xhci_handoff=disabled"]) == 10
        headline = capsys.readouterr().out.splitlines()[:2]
        assert "nothing was to do" not in " ".join(headline)
        assert "not all is as wanted; cannot be set: xhci_handoff" in " ".join(" ".join(headline).split())
        assert invoke(["bios", "apply", *named, "--set", "iommu=enabled"]) == 0
        assert "nothing was to do" in capsys.readouterr().out


def test_apply_without_a_person_to_ask_needs_yes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", open("/dev/null", encoding="utf-8"))  # noqa: PTH123, SIM115
    assert run("apply", tree(), *WANTED)[0] == 2


def test_apply_and_rollback_of_staged_values(run: Run) -> None:
    code, document, _ = run("apply", tree(), "--set", "iommu=disabled", "--yes", "--no-reset")
    assert (code, document["state"], document["outcomes"][0]["result"]) == (10, "staged", "staged")
    assert Path(document["restore_file"]).exists()
    code, document, _ = run("rollback", tree(), "--yes", "--no-reset")
    assert code == 2
    assert "no restore point" in document["error"]


def test_a_refused_apply_exits_11(run: Run) -> None:
    code, document, _ = run("apply", tree(), "--set", "iommu=disabled", "--yes", faults=("licence",))
    assert (code, document["state"]) == (11, "failed")
    assert "licence" in document["hint"]


def test_sensors_that_cannot_all_be_read_exit_21(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    code, document, _ = run("sensors", tree())
    assert (code, document["schema"], document["simulated"]) == (21, "nodeprep.bmc_sensors/1", True)
    chassis = {
        "/redfish/v1/Chassis": {"Members": [{"@odata.id": "/redfish/v1/Chassis/1"}]},
        "/redfish/v1/Chassis/1": {"Thermal": {"@odata.id": "/redfish/v1/Chassis/1/Thermal"}},
        "/redfish/v1/Chassis/1/Thermal": {
            "Temperatures": [
                {"Name": "Inlet Temp", "ReadingCelsius": 25},
                {"Name": "GPU 1", "ReadingCelsius": None},
            ]
        },
    }
    code, document, _ = run("sensors", {**tree(), **chassis})
    assert code == 21
    assert [one["detail"] for one in document["sensors"]] == ["", "the BMC gives no value"]
    assert [(one["place"], one["state"], one["value"]) for one in document["sensors"]] == [
        ("inlet", "ok", 25.0),
        ("gpu", "unreadable", None),
    ]


def _chassis(**resources: Any) -> dict[str, Any]:
    one = "/redfish/v1/Chassis/1"
    return {
        **tree(),
        "/redfish/v1/Chassis": {"Members": [{"@odata.id": one}]},
        one: {name: {"@odata.id": f"{one}/{name}"} for name in resources},
        **{f"{one}/{name}": body for name, body in resources.items()},
    }


def test_a_line_that_is_good_or_not_has_no_value_and_is_no_gap(run: Run) -> None:
    good = {"Name": "CPU1 VCCIN PG", "ReadingVolts": None, "Status": {"State": "Enabled", "Health": "OK"}}
    code, document, _ = run("sensors", _chassis(Power={"Voltages": [good]}))
    (sensor,) = document["sensors"]
    assert (code, sensor["state"], sensor["health"], sensor["value"]) == (0, "health_only", "OK", None)


@pytest.mark.parametrize(
    "changed",
    [
        {"Status": {"State": "Enabled", "Health": None}},
        {"Status": {"State": "UnavailableOffline", "Health": "OK"}, "ReadingVolts": "n/a"},
        {"Status": {"State": "Enabled", "Health": "OK"}, "ReadingVolts": "n/a"},
        {},
    ],
)
def test_a_voltage_without_a_value_and_without_health_is_unreadable(
    run: Run, changed: dict[str, Any]
) -> None:
    voltage = {"Name": "CPU1 VCCIN PG", "ReadingVolts": None, **changed}
    _, document, _ = run("sensors", _chassis(Power={"Voltages": [voltage]}))
    assert document["sensors"][0]["state"] in ("unreadable", "absent")


def test_of_several_systems_one_must_be_named(run: Run) -> None:
    other = "/redfish/v1/Systems/Blade2"
    blades = {
        **tree(systems={"Members": [{"@odata.id": SYSTEM}, {"@odata.id": other}]}),
        other: {
            "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
            "Bios": {"@odata.id": f"{other}/Bios"},
        },
        f"{other}/Bios": {"Attributes": {"IommuSupport": "Disabled"}},
    }
    code, document, _ = run("plan", blades, "--set", "iommu=disabled")
    assert code == 2
    assert "Blade2" in document["error"]
    assert "--system" in document["hint"]
    code, document, _ = run("plan", blades, "--set", "iommu=disabled", "--system", "Blade2")
    assert (code, document["knobs"][0]["status"]) == (0, "ok")
    code, document, _ = run("plan", blades, "--set", "iommu=disabled", "--system", "Blade7")
    assert code == 2
    assert "Blade2" in document["hint"]
