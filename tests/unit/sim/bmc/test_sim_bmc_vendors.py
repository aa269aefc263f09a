"""How BMCs of each vendor behave, told from what a dump says of its maker."""

from __future__ import annotations

from typing import Any

import pytest
from sim_bmc_client import ATTRIBUTES, BIOS, MANAGER, REGISTRY, ROOT, SYSTEM, Client, tree

from nodeprep.sim.bmc import Dump
from nodeprep.sim.bmc.vendors import vendor_of

ON_RESET = {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}
CHANGE = {"Iommu": "Disabled"}
JOBS = f"{MANAGER}/Oem/Dell/Jobs"


@pytest.mark.parametrize(
    ("maker", "settings", "vendor"),
    [
        ("Dell Inc.", "Settings", "dell"),
        ("HPE", "settings", "hpe"),
        ("Lenovo", "Pending", "lenovo"),
        ("Lenovo", "SD", "ami"),
        ("Supermicro", "SD", "supermicro"),
        ("Supermicro", "Settings", "openbmc"),
        ("NVIDIA", "SD", "ami"),
        ("NVIDIA", "Settings", "openbmc"),
        ("GIGABYTE", None, "ami"),
        ("AMI", "Settings", "ami"),
        ("Somebody", "SD", "ami"),
        ("Somebody", "Settings", "generic"),
    ],
)
def test_vendors_are_told_from_the_dump(maker: str, settings: str | None, vendor: str) -> None:
    assert vendor_of(Dump(tree(maker, settings=settings))) == vendor


# ---- Dell: jobs -------------------------------------------------------------------------------------


def dell(*faults: str) -> Client:
    return Client(tree("Dell Inc."), *faults)


def with_job(bmc: Client, values: dict[str, Any] | None = None) -> Any:
    return bmc.patch(bmc.settings, {**ON_RESET, "Attributes": values or CHANGE})


def job_state(bmc: Client, number: int = -1) -> str:
    members = bmc.get(JOBS).json["Members"]
    return str(bmc.get(members[number]["@odata.id"]).json["JobState"])


def test_dell_applies_with_a_job_and_only_with_one() -> None:
    bmc = dell()
    assert bmc.stage(CHANGE).status == 200
    bmc.boot()
    assert (bmc.current("Iommu"), bmc.waiting()) == ("Enabled", CHANGE)
    made = bmc.post(JOBS, {"TargetSettingsURI": bmc.settings})
    assert made.status == 200
    assert job_state(bmc) == "Scheduled"
    bmc.boot()
    assert (bmc.current("Iommu"), bmc.waiting(), job_state(bmc)) == ("Disabled", {}, "Completed")


def test_dell_an_apply_time_makes_the_job() -> None:
    bmc = dell()
    answer = with_job(bmc)
    task = answer.headers["Location"]
    assert (answer.status, bmc.get(task).json["TaskState"]) == (202, "Pending")
    bmc.reset()
    assert (bmc.get(task).json["TaskState"], job_state(bmc)) == ("Running", "Running")
    bmc.clock.forward(11)
    assert (bmc.get(task).json["TaskState"], bmc.get(task).json["TaskStatus"]) == ("Completed", "OK")
    assert bmc.current("Iommu") == "Disabled"


def test_collections_expand_where_the_service_says_so() -> None:
    dump = tree("Dell Inc.")
    plain = Client(dump)
    with_job(plain)
    question = f"{JOBS}?$expand=*($levels=1)"
    assert list(plain.get(question).json["Members"][0]) == ["@odata.id"]
    dump[f"{ROOT}/"]["ProtocolFeaturesSupported"] = {"ExpandQuery": {"ExpandAll": True}}
    able = Client(dump)
    with_job(able)
    assert able.get(question).json["Members"][0]["JobState"] == "Scheduled"
    assert able.get(f"{JOBS}?%24expand=*").json["Members"][0]["JobState"] == "Scheduled"
    assert able.get(f"{ROOT}/Systems?$expand=.").json["Members"][0]["PowerState"] == "On"


def test_dell_committed_settings_take_no_others() -> None:
    bmc = dell()
    with_job(bmc)
    for answer in (
        bmc.stage({"BusNumber": 9}),
        with_job(bmc, {"BusNumber": 9}),
        bmc.post(JOBS, {"TargetSettingsURI": bmc.settings}),
        bmc.post(f"{bmc.settings}/Actions/Oem/DellManager.ClearPending"),
    ):
        assert answer.status == 400
    assert "already committed" in bmc.stage({"BusNumber": 9}).json["error"]["message"]
    assert bmc.waiting() == CHANGE


def test_dell_the_same_values_again_name_no_job() -> None:
    bmc = dell()
    with_job(bmc)
    again = with_job(bmc)
    assert (again.status, "Location" in again.headers) == (200, False)
    assert len(bmc.get(JOBS).json["Members"]) == 1


def test_dell_a_deleted_job_takes_its_settings_along() -> None:
    bmc = dell()
    with_job(bmc)
    job = bmc.get(JOBS).json["Members"][0]["@odata.id"]
    assert bmc.ask("DELETE", job).status == 204
    assert (bmc.waiting(), bmc.get(job).status) == ({}, 404)


def test_dell_clears_what_is_not_committed() -> None:
    bmc = dell()
    bmc.stage(CHANGE)
    assert bmc.post(f"{bmc.settings}/Actions/Oem/DellManager.ClearPending").status == 204
    assert bmc.waiting() == {}
    assert bmc.post(JOBS, {"TargetSettingsURI": bmc.settings}).status == 400


@pytest.mark.parametrize(
    ("fault", "state", "value", "waits"),
    [
        ("job_fails", "Failed", "Enabled", {}),
        ("job_errors", "CompletedWithErrors", "Disabled", {}),
        ("job_stuck", "New", "Enabled", CHANGE),
    ],
)
def test_dell_jobs_that_end_badly(fault: str, state: str, value: str, waits: dict[str, Any]) -> None:
    bmc = dell(fault)
    with_job(bmc)
    bmc.boot()
    assert (job_state(bmc), bmc.current("Iommu"), bmc.waiting()) == (state, value, waits)


def test_dell_a_boot_before_the_job_is_scheduled_does_not_run_it() -> None:
    bmc = dell("job_slow")
    with_job(bmc)
    bmc.reset()
    bmc.clock.forward(3)
    assert job_state(bmc) == "Scheduled"
    bmc.clock.forward(10)
    assert (job_state(bmc), bmc.current("Iommu")) == ("Scheduled", "Enabled")
    bmc.boot()
    assert (job_state(bmc), bmc.current("Iommu")) == ("Completed", "Disabled")


def test_dell_a_foreign_job_holds_the_settings_and_a_raid_job_does_not() -> None:
    assert with_job(dell("job_foreign")).status == 400
    raid = dell("job_raid")
    assert raid.get(raid.get(JOBS).json["Members"][0]["@odata.id"]).json["JobType"] == "RAIDConfiguration"
    assert with_job(raid).status == 202


def test_dell_a_locked_queue_and_an_unnamed_job() -> None:
    locked = dell("job_lock")
    answer = with_job(locked)
    assert (answer.status, answer.headers["Retry-After"], locked.waiting()) == (503, "1", {})
    unnamed = with_job(dell("job_unnamed"))
    assert (unnamed.status, "Location" in unnamed.headers) == (202, False)


def test_dell_sessions_end_with_rac0218() -> None:
    bmc = dell("sessions_taken")
    answer = bmc.post(f"{ROOT}/SessionService/Sessions", {"UserName": "admin", "Password": "secret"})
    assert (answer.status, answer.ids) == (503, ["RAC0218"])


# ---- HPE --------------------------------------------------------------------------------------------


def hpe() -> Client:
    dump = tree("HPE", settings="settings")
    dump[BIOS]["@odata.id"] = f"{BIOS}/"
    return Client(dump)


def test_hpe_accepts_nonsense_and_tells_after_post() -> None:
    bmc = hpe()
    answer = bmc.stage({"Iommu": "nonsense", "BusNumber": 9})
    assert (answer.status, answer.ids) == (200, ["SystemResetRequired"])
    assert "Messages" not in bmc.get(f"{BIOS}/").json["@Redfish.Settings"]
    bmc.boot()
    told = bmc.get(f"{BIOS}/").json
    (message,) = told["@Redfish.Settings"]["Messages"]
    assert message["MessageId"] == "Base.1.4.PropertyValueNotInList"
    assert message["RelatedProperties"] == ["#/Attributes/Iommu"]
    assert told["@Redfish.Settings"]["Time"]
    assert told["Attributes"] == {**ATTRIBUTES, "BusNumber": 9}


def test_hpe_takes_nothing_in_post() -> None:
    bmc = hpe()
    bmc.reset()
    answer = bmc.stage(CHANGE)
    assert (answer.status, answer.ids) == (400, ["UnableToModifyDuringSystemPOST"])
    bmc.clock.forward(11)
    assert bmc.stage(CHANGE).status == 200


def test_hpe_redirects_to_the_slash_and_knows_no_case() -> None:
    bmc = hpe()
    moved = bmc.get(BIOS)
    assert (moved.status, moved.headers["Location"]) == (308, f"{BIOS}/")
    assert bmc.get(f"{BIOS.lower()}/").status == 200
    assert Client(tree("Lenovo", settings="Pending")).get(BIOS.lower()).status == 404


def test_hpe_registries_come_compressed() -> None:
    answer = hpe().get(REGISTRY)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.json["RegistryEntries"]["Attributes"]
    plain = Client(tree()).get(REGISTRY)
    assert "Content-Encoding" not in plain.headers


def test_hpe_a_restart_of_an_off_host_is_an_invalid_operation() -> None:
    bmc = hpe()
    bmc.reset("ForceOff")
    assert bmc.reset("ForceRestart").ids == ["InvalidOperationForSystemState"]


def test_ilo4_is_flat_and_a_nested_body_does_nothing() -> None:
    flat = {name: value for name, value in ATTRIBUTES.items() if name != "Sriov"}
    dump = tree("HP", settings="Settings", bios=flat, with_registry=False)
    dump[f"{BIOS}/Settings"] = {"@odata.id": f"{BIOS}/Settings", **flat}
    bmc = Client(dump)
    assert bmc.bmc.conduct.vendor == "hpe_ilo4"
    assert bmc.patch(bmc.settings, {"Attributes": CHANGE}).ids == ["SystemResetRequired"]
    bmc.boot()
    assert bmc.get(BIOS).json["Iommu"] == "Enabled"
    bmc.patch(bmc.settings, CHANGE)
    assert bmc.get(bmc.settings).json["Iommu"] == "Disabled"
    bmc.boot()
    assert bmc.get(BIOS).json["Iommu"] == "Disabled"


def test_cray_holds_objects_and_takes_them_at_the_bios_resource() -> None:
    speed = {"AllowableValues": ["Auto", "Gen4"], "current_value": "Auto", "reset_type": "Cold"}
    bmc = Client(tree("Cray", settings=None, attributes={"PCIE Link Speed": speed}, with_registry=False))
    body = {"Attributes": {"PCIE Link Speed": {"current_value": "Gen4"}}}
    assert bmc.patch(BIOS, body).status == 200
    assert bmc.current("PCIE Link Speed")["current_value"] == "Auto"
    bmc.boot()
    assert bmc.current("PCIE Link Speed") == {**speed, "current_value": "Gen4"}


# ---- the others -------------------------------------------------------------------------------------


def test_lenovo_refuses_the_apply_time_that_it_advertises() -> None:
    bmc = Client(tree("Lenovo", settings="Pending"))
    assert with_job(bmc).ids == ["PropertyUnknown"]


def test_lenovo_drops_what_a_preset_grays_out_unless_the_preset_goes() -> None:
    bmc = Client(tree("Lenovo", settings="Pending"))
    bmc.stage({"LinkSpeed": "Gen4"})
    bmc.boot()
    assert bmc.current("LinkSpeed") == "Auto"
    bmc.stage({"LinkSpeed": "Gen4", "Profile": "Custom"})
    bmc.boot()
    assert bmc.current("LinkSpeed") == "Gen4"


def test_ami_needs_if_match_and_answers_without_words() -> None:
    bmc = Client(tree("AMI", settings="SD"))
    assert "Attributes" not in bmc.get(bmc.settings).json
    assert bmc.stage(CHANGE).status == 428
    answer = bmc.stage(CHANGE, if_match=bmc.get(bmc.settings).headers["ETag"])
    assert (answer.status, answer.response.body) == (204, b"")


def test_gigabyte_has_no_settings_object_and_no_settings_until_something_waits() -> None:
    bmc = Client(tree("GIGABYTE", settings=None))
    assert bmc.settings == f"{BIOS}/SD"
    assert [bmc.get(f"{BIOS}/{name}").status for name in ("Settings", "SD", "Pending")] == [404, 404, 404]
    assert bmc.stage(CHANGE, if_match="*").status == 204
    assert bmc.waiting() == CHANGE


def test_supermicro_takes_settings_at_both_places() -> None:
    bmc = Client(tree("Supermicro", settings="SD"))
    assert bmc.patch(BIOS, {"Attributes": CHANGE}).status == 202
    assert bmc.waiting() == CHANGE
    assert bmc.patch(bmc.settings, {"Attributes": {"BusNumber": 9}}, if_match='"old"').status == 412


def test_openbmc_says_of_an_absent_attribute_that_it_is_a_wrong_value() -> None:
    bmc = Client(tree("NVIDIA", settings="Settings"))
    refused = bmc.stage({"Absent": 1})
    assert refused.ids == ["PropertyValueNotInList"]
    assert "Absent" in refused.json["error"]["message"]
    assert "ETag" not in bmc.get(bmc.settings).headers
    assert bmc.get(SYSTEM).status == 200
