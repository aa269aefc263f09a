"""Settings of simulated BMCs: what waits, what comes into force, and when."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from sim_bmc_client import ATTRIBUTES, BIOS, MANAGER, REGISTRY, ROOT, SYSTEM, Client, tree

from nodeprep.errors import UsageError
from nodeprep.sim.bmc import Dump


def test_settings_wait_until_post_has_ended() -> None:
    bmc = Client(tree())
    assert bmc.stage({"Iommu": "Disabled"}).status == 200
    assert (bmc.current("Iommu"), bmc.waiting()) == ("Enabled", {"Iommu": "Disabled"})
    bmc.reset()
    bmc.clock.forward(9)
    assert bmc.current("Iommu") == "Enabled"
    bmc.clock.forward(2)
    assert (bmc.current("Iommu"), bmc.waiting()) == ("Disabled", {})


def test_a_value_in_force_takes_back_one_that_waits() -> None:
    bmc = Client(tree())
    bmc.stage({"Iommu": "Disabled", "BusNumber": 9})
    bmc.stage({"Iommu": "Enabled"})
    assert bmc.waiting() == {"BusNumber": 9}


def test_what_is_sent_during_post_waits_for_the_next_boot() -> None:
    bmc = Client(tree())
    bmc.stage({"BusNumber": 9})
    bmc.reset()
    bmc.clock.forward(5)
    bmc.stage({"Iommu": "Disabled"})
    bmc.clock.forward(6)
    assert (bmc.current("BusNumber"), bmc.waiting()) == (9, {"Iommu": "Disabled"})
    bmc.boot()
    assert bmc.current("Iommu") == "Disabled"


def test_a_reset_of_the_bmc_is_none_of_the_host() -> None:
    bmc = Client(tree())
    bmc.stage({"Iommu": "Disabled"})
    assert bmc.post(f"{MANAGER}/Actions/Manager.Reset", {"ResetType": "GracefulRestart"}).status == 204
    bmc.clock.forward(60)
    assert (bmc.current("Iommu"), bmc.waiting()) == ("Enabled", {"Iommu": "Disabled"})


def test_a_post_that_is_cut_short_brings_nothing_into_force() -> None:
    bmc = Client(tree())
    bmc.stage({"Iommu": "Disabled"})
    bmc.reset()
    bmc.clock.forward(5)
    bmc.reset("ForceOff")
    bmc.clock.forward(20)
    assert bmc.current("Iommu") == "Enabled"
    bmc.boot("On")
    assert bmc.current("Iommu") == "Disabled"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("Nonsense", "Enabled", "PropertyUnknown"),
        ("Aspm", "Enabled", "PropertyNotWritable"),
        ("Iommu", "disabled", "PropertyValueNotInList"),
        ("Iommu", "DISABLED", "PropertyValueNotInList"),
        ("BusNumber", "9", "PropertyValueTypeError"),
        ("BusNumber", True, "PropertyValueTypeError"),
        ("BusNumber", 256, "PropertyValueOutOfRange"),
        ("Sriov", "true", "PropertyValueTypeError"),
        ("Sriov", 1, "PropertyValueTypeError"),
        ("AssetTag", "longer than that", "PropertyValueFormatError"),
    ],
)
def test_values_are_judged_strictly(name: str, value: Any, problem: str) -> None:
    bmc = Client(tree())
    refused = bmc.stage({name: value, "LinkSpeed": "Gen4"})
    assert (refused.status, refused.ids) == (400, [problem])
    assert bmc.waiting() == {}


def test_read_only_goes_with_its_condition_even_in_the_same_batch() -> None:
    bmc = Client(tree())
    assert bmc.stage({"Profile": "Custom", "Aspm": "Enabled"}).status == 200
    bmc.boot()
    assert bmc.current("Aspm") == "Enabled"
    assert bmc.stage({"Aspm": "Disabled"}).status == 200


def test_a_profile_forces_other_values() -> None:
    bmc = Client(tree())
    bmc.stage({"Profile": "Quiet"})
    bmc.boot()
    assert bmc.current("Iommu") == "Disabled"


def test_a_bmc_that_shows_display_names_takes_display_names() -> None:
    bmc = Client(tree(attributes={**ATTRIBUTES, "Iommu": "ENABLED"}))
    assert bmc.stage({"Iommu": "Disabled"}).ids == ["PropertyValueNotInList"]
    assert bmc.stage({"Iommu": "DISABLED"}).status == 200


def test_without_a_registry_types_are_those_of_the_values() -> None:
    bmc = Client(tree(with_registry=False))
    assert bmc.stage({"BusNumber": "9"}).ids == ["PropertyValueTypeError"]
    assert bmc.stage({"BusNumber": 9, "Iommu": "anything"}).status == 200


def test_the_bios_resource_takes_nothing_where_there_are_settings() -> None:
    refused = Client(tree()).patch(BIOS, {"Attributes": {"Iommu": "Disabled"}})
    assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD")


def test_defaults_wait_too() -> None:
    bmc = Client(tree(attributes={**ATTRIBUTES, "Iommu": "Disabled"}))
    assert bmc.post(f"{BIOS}/Actions/Bios.ResetBios").status == 204
    assert bmc.waiting() == {"Iommu": "Enabled"}


def test_settings_that_waited_when_the_dump_was_taken_wait() -> None:
    dump = tree()
    dump[f"{BIOS}/Settings"]["Attributes"] = {"Iommu": "Disabled"}
    bmc = Client(dump)
    assert bmc.waiting() == {"Iommu": "Disabled"}
    bmc.boot()
    assert bmc.current("Iommu") == "Disabled"


def test_a_settings_resource_that_lists_everything_keeps_doing_so() -> None:
    dump = tree()
    dump[f"{BIOS}/Settings"]["Attributes"] = dict(ATTRIBUTES)
    bmc = Client(dump)
    bmc.stage({"Iommu": "Disabled"})
    assert bmc.waiting() == {**ATTRIBUTES, "Iommu": "Disabled"}


def test_two_bmcs_over_one_dump_know_nothing_of_each_other() -> None:
    dump = Dump(tree())
    one, other = Client(dump), Client(dump)
    one.stage({"Iommu": "Disabled"})
    one.boot()
    assert (one.current("Iommu"), other.current("Iommu")) == ("Disabled", "Enabled")


# ---- faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "status", "word"),
    [("licence", 403, "license"), ("lockdown", 403, "ockdown"), ("bios_password", 403, "password")],
)
def test_what_is_refused_says_why(fault: str, status: int, word: str) -> None:
    bmc = Client(tree(), fault)
    refused = bmc.stage({"Iommu": "Disabled"})
    assert refused.status == status
    assert word in refused.json["error"]["message"]
    assert bmc.waiting() == {}


def test_the_bios_password_opens() -> None:
    digest = hashlib.sha256(b"simulated").hexdigest().upper()
    bmc = Client(tree(), "bios_password")
    assert bmc.stage({"Iommu": "Disabled"}, x_hprestfulapi_authtoken="WRONG").status == 403
    assert bmc.stage({"Iommu": "Disabled"}, x_hprestfulapi_authtoken=digest).status == 200


@pytest.mark.parametrize(
    ("fault", "kept"),
    [("silent_drop", {}), ("drop_first", {"BusNumber": 9}), ("drop_grayed", {"BusNumber": 9})],
)
def test_accepted_values_that_never_come_into_force(fault: str, kept: dict[str, Any]) -> None:
    bmc = Client(tree(), fault)
    assert bmc.stage({"LinkSpeed": "Gen4", "BusNumber": 9}).status == 200
    bmc.boot()
    assert bmc.get(BIOS).json["Attributes"] == {**ATTRIBUTES, **kept}
    assert bmc.waiting() == {}


def test_partial_success_takes_the_good_ones() -> None:
    bmc = Client(tree(), "partial")
    answer = bmc.stage({"Iommu": "nonsense", "BusNumber": 9})
    assert (answer.status, answer.ids) == (200, ["PropertyValueNotInList"])
    assert bmc.waiting() == {"BusNumber": 9}
    assert bmc.stage({"Iommu": "nonsense"}).status == 400


def test_lazy_checks_accept_everything_and_post_drops_what_is_wrong() -> None:
    bmc = Client(tree(), "lazy_checks")
    assert bmc.stage({"Iommu": "nonsense", "Nothing": 1, "BusNumber": 9}).status == 200
    bmc.boot()
    assert bmc.get(BIOS).json["Attributes"] == {**ATTRIBUTES, "BusNumber": 9}


def test_early_values_stand_in_bios_during_post() -> None:
    bmc = Client(tree(), "early", "silent_drop")
    bmc.stage({"Iommu": "Disabled"})
    bmc.reset()
    assert bmc.current("Iommu") == "Disabled"
    bmc.clock.forward(11)
    assert bmc.current("Iommu") == "Enabled"


def test_apply_time_refused_though_advertised() -> None:
    bmc = Client(tree(), "apply_time_refused")
    assert bmc.get(BIOS).json["@Redfish.Settings"]["SupportedApplyTimes"] == ["OnReset"]
    body = {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}, "Attributes": {"Iommu": "Disabled"}}
    assert bmc.patch(bmc.settings, body).ids == ["PropertyUnknown"]
    assert bmc.waiting() == {}
    assert bmc.stage({"Iommu": "Disabled"}).status == 200


def test_an_apply_time_that_is_not_advertised_is_refused() -> None:
    body = {"@Redfish.SettingsApplyTime": {"ApplyTime": "Immediate"}, "Attributes": {"Iommu": "Disabled"}}
    bmc = Client(tree())
    assert bmc.patch(bmc.settings, body).ids == ["PropertyValueNotInList"]


def test_settings_404_until_something_waits() -> None:
    bmc = Client(tree(), "settings_404")
    assert bmc.get(bmc.settings).status == 404
    assert bmc.stage({"Iommu": "Disabled"}).status == 200
    assert bmc.waiting() == {"Iommu": "Disabled"}


def test_settings_empty_has_no_attributes() -> None:
    bmc = Client(tree(), "settings_empty")
    assert "Attributes" not in bmc.get(bmc.settings).json


def test_put_only() -> None:
    bmc = Client(tree(), "put_only")
    assert bmc.stage({"Iommu": "Disabled"}).headers["Allow"] == "GET, HEAD, PUT"
    assert bmc.ask("PUT", bmc.settings, {"Attributes": {"Iommu": "Disabled"}}).status == 200
    assert bmc.waiting() == {"Iommu": "Disabled"}


def test_no_settings_takes_nothing_anywhere() -> None:
    bmc = Client(tree(), "no_settings")
    body = {"Attributes": {"Iommu": "Disabled"}}
    assert bmc.get(bmc.settings).status == 404
    assert bmc.patch(bmc.settings, body).status == 404
    assert bmc.patch(BIOS, body).status == 405
    assert "SettingsObject" not in bmc.get(BIOS).json["@Redfish.Settings"]


def test_trees_with_parts_missing() -> None:
    assert "SettingsObject" not in Client(tree(), "no_settings_object").get(BIOS).json["@Redfish.Settings"]
    no_bios = Client(tree(), "no_bios")
    assert "Bios" not in no_bios.get(SYSTEM).json
    assert no_bios.get(BIOS).status == 404
    no_registry = Client(tree(), "no_registry")
    assert "AttributeRegistry" not in no_registry.get(BIOS).json
    assert no_registry.get(REGISTRY).status == 404
    no_types = Client(tree(), "no_reset_types").get(SYSTEM).json["Actions"]["#ComputerSystem.Reset"]
    assert list(no_types) == ["target"]
    nulls = Client(tree(), "null_attributes").get(BIOS).json["Attributes"]
    assert set(nulls.values()) == {None}
    assert isinstance(Client(tree(), "malformed").get(BIOS).json["Attributes"], list)


def test_a_fault_that_does_not_exist_is_named_with_the_one_that_does() -> None:
    with pytest.raises(UsageError) as told:
        Client(tree(), "lisence")
    assert "licence" in told.value.hint


def test_a_fault_that_could_do_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="has no jobs"):
        Client(tree(), "job_fails")
    assert Client(tree(), "job_fails", "apply_time_job").bmc.conduct.jobs.result == "Failed"


def test_everything_says_simulated() -> None:
    bmc = Client(tree())
    for uri in (ROOT, SYSTEM, MANAGER):
        assert bmc.get(uri).json["Oem"]["Nodeprep"] == {"Simulated": True}


@pytest.mark.parametrize("found", [[], {}, {"relative": {}}, "text"])
def test_what_is_no_dump_is_refused(found: Any) -> None:
    with pytest.raises(UsageError):
        Dump(found)


def test_a_dump_without_a_root_gets_one() -> None:
    dump = {uri: body for uri, body in tree().items() if uri != f"{ROOT}/"}
    bmc = Client(dump)
    assert bmc.get(ROOT).json["Systems"] == {"@odata.id": f"{ROOT}/Systems"}
    assert bmc.current("Iommu") == "Enabled"


def test_an_error_that_a_crawler_wrote_down_is_no_resource() -> None:
    dump = {**tree(), f"{ROOT}/UpdateService": {"error": {"code": "Base.1.0.GeneralError"}}}
    assert Client(dump).get(f"{ROOT}/UpdateService").status == 404
