"""BIOS settings: where they are, what is in effect, what is staged, and where changes go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest
from fake_redfish import TARGET, FakeBmc, answer, error
from trees import BIOS, SETTINGS, SYSTEM, tree

from nodeprep.bmc import BmcUnreachable
from nodeprep.bmc.redfish.bios import BiosSettings, read_bios
from nodeprep.bmc.redfish.errors import Malformed, Missing, Refused
from nodeprep.bmc.redfish.service import read_service, vendor_word
from nodeprep.bmc.redfish.settings_write import write_settings
from nodeprep.errors import UsageError


def read(resources: dict[str, Any], script: Any = None) -> BiosSettings:
    with FakeBmc(resources, script).connection() as connection:
        return read_bios(connection, read_service(connection))


@pytest.mark.parametrize("name", ["Settings", "SD", "Pending"])
def test_bug_01_a_settings_resource_that_bios_does_not_name_is_found(name: str) -> None:
    bios = {"@Redfish.Settings": {"ETag": "Dummyetag", "Messages": []}}
    place = f"{BIOS}/{name}"
    found = read(tree({"A": "0"}, bios=bios, more={place: {"@odata.etag": '"7"', "Attributes": {"A": "1"}}}))
    assert (found.write_uris, found.pending) == ((place,), {"A": "1"})
    assert found.settings is not None
    assert found.settings.etag == '"7"'


def test_bug_22_settings_that_can_be_written_and_not_read() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        if request.method == "PATCH":
            return answer({}, 204) if request.url.path == f"{BIOS}/SD" else error(404, "x")
        return None

    bmc = FakeBmc(tree({"A": "0"}), script)
    with bmc.connection() as connection:
        found = read_bios(connection, read_service(connection))
        assert (found.settings, found.pending) == (None, {})
        assert write_settings(connection, found, found.body({"A": "1"})).uri == f"{BIOS}/SD"


def test_bug_22_a_named_settings_resource_may_be_missing_while_nothing_is_staged() -> None:
    found = read(tree({"A": "0"}, settings=True))
    assert (found.settings, found.write_uris, found.pending) == (None, (SETTINGS,), {})


def test_bug_22_settings_without_attributes_stage_nothing() -> None:
    found = read(tree({"A": "0", "Id": "x"}, settings={"Id": "SD", "Name": "pending"}))
    assert found.pending == {}


def test_bug_06_a_staged_change_is_taken_back_by_staging_the_value_in_effect() -> None:
    found = read(tree({"A": "Enabled", "B": 1}, settings={"Attributes": {"A": "Disabled", "B": 1}}))
    assert found.pending == {"A": "Disabled"}
    assert found.effective == {"A": "Disabled", "B": 1}
    assert found.differences({"A": "Enabled", "B": 1}) == {"A": "Enabled"}
    assert found.differences({"A": "Disabled"}) == {}


def test_true_is_not_one() -> None:
    found = read(tree({"A": 1}, settings={"Attributes": {"A": True}}))
    assert found.pending == {"A": True}
    assert found.differences({"A": 1}) == {"A": 1}


def test_bug_17_a_flat_body_is_read_and_written_flat() -> None:
    bios = {
        "Id": "bios",
        "Name": "BIOS",
        "Type": "HpBios.1.2.0",
        "MaxPcieSpeed": "MaxSupported",
        "N": 3,
        "links": {"Settings": {"href": f"{BIOS}/Settings"}},
    }
    found = read(tree(bios=bios, more={SETTINGS: {"Id": "settings", "MaxPcieSpeed": "PcieGen1", "N": 3}}))
    assert found.flat
    assert (found.current, found.pending) == (
        {"MaxPcieSpeed": "MaxSupported", "N": 3},
        {"MaxPcieSpeed": "PcieGen1"},
    )
    assert found.write_uris == (SETTINGS,)
    assert found.body({"N": 4}) == {"N": 4}


def test_bug_30_a_flat_body_without_settings_is_written_where_it_stands_at_last() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        if request.method == "PATCH":
            return answer({}, 202) if request.url.path == BIOS else error(404, "x")
        return None

    bmc = FakeBmc(tree(bios={"Quiet Boot": "Enabled"}), script)
    with bmc.connection() as connection:
        found = read_bios(connection, read_service(connection))
        assert write_settings(connection, found, found.body({"Quiet Boot": "Disabled"})).status == 202


def test_bug_19_bios_itself_is_not_written_when_it_names_its_settings() -> None:
    bmc = FakeBmc(tree({"A": "0"}, settings={"Attributes": {}}))
    with bmc.connection() as connection:
        found = read_bios(connection, read_service(connection))
        write_settings(connection, found, found.body({"A": "1"}))
    assert [request.url.path for request in bmc.asked("PATCH")] == [SETTINGS]


def test_a_place_with_put_instead_of_patch_gets_a_put_without_if_match() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        return error(405, "x", Allow="GET, PUT") if request.method == "PATCH" else None

    bmc = FakeBmc(tree({"A": "0"}, settings={"@odata.etag": '"1"', "Attributes": {}}), script)
    with bmc.connection() as connection:
        found = read_bios(connection, read_service(connection))
        write_settings(connection, found, found.body({"A": "1"}))
    (put,) = bmc.asked("PUT")
    assert "if-match" not in put.headers


def test_a_bmc_that_takes_settings_nowhere_says_so() -> None:
    bmc = FakeBmc(tree({"A": "0"}), lambda request: error(404, "x") if request.method == "PATCH" else None)
    with bmc.connection() as connection:
        found = read_bios(connection, read_service(connection))
        with pytest.raises(Missing, match="takes BIOS settings at none of"):
            write_settings(connection, found, found.body({"A": "1"}))


def test_a_refusal_is_not_mistaken_for_a_wrong_place() -> None:
    bmc = FakeBmc(tree({"A": "0"}), lambda request: error(400, "x") if request.method == "PATCH" else None)
    with bmc.connection() as connection:
        found = read_bios(connection, read_service(connection))
        with pytest.raises(Refused):
            write_settings(connection, found, found.body({"A": "1"}))
    assert len(bmc.asked("PATCH")) == 1


def test_bug_31_null_values_are_kept_as_unknown_and_stage_nothing() -> None:
    found = read(
        tree({"SysPassword": None, "A": "0"}, settings={"Attributes": {"SysPassword": None, "A": None}})
    )
    assert found.current == {"SysPassword": None, "A": "0"}
    assert found.pending == {}


def test_objects_as_values_are_read_and_written_as_objects() -> None:
    speed = {"AllowableValues": ["Auto", "Gen3"], "current_value": "Auto", "default_value": "Auto"}
    found = read(tree({"PCIE Link Speed": speed, "NUMA": "NPS1"}))
    assert found.current == {"PCIE Link Speed": "Auto", "NUMA": "NPS1"}
    assert found.offered == {"PCIE Link Speed": ("Auto", "Gen3")}
    assert found.write_uris == (BIOS,)
    written = found.body({"PCIE Link Speed": "Gen3", "NUMA": "NPS2"})
    assert written == {"Attributes": {"PCIE Link Speed": {"current_value": "Gen3"}, "NUMA": "NPS2"}}


def test_bug_04_the_apply_time_is_known_and_sent_when_asked_for() -> None:
    bios = {
        "@Redfish.Settings": {"SettingsObject": {"@odata.id": SETTINGS}, "SupportedApplyTimes": ["OnReset"]}
    }
    found = read(tree({"A": "0"}, bios=bios))
    assert found.apply_times == ("OnReset",)
    assert found.body({"A": "1"}, apply_time="OnReset") == {
        "@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"},
        "Attributes": {"A": "1"},
    }
    assert found.body({"A": "1"}) == {"Attributes": {"A": "1"}}


def test_bug_16_what_became_of_the_settings_applied_last_can_be_asked() -> None:
    about = {
        "SettingsObject": {"@odata.id": SETTINGS},
        "Messages": [{"MessageId": "Base.1.0.PropertyUnknown", "MessageArgs": ["Nonsense"]}],
        "Time": "2024-06-10T20:01:29+00:00",
    }
    found = read(tree({"A": "0"}, bios={"@Redfish.Settings": about}))
    assert [(message.key, message.arguments) for message in found.applied_messages] == [
        ("PropertyUnknown", ("Nonsense",))
    ]
    assert found.applied_time == "2024-06-10T20:01:29+00:00"


def test_bug_10_firmware_without_bios_settings_is_told_so() -> None:
    resources = tree({"A": "0"})
    del resources[BIOS]
    with pytest.raises(Missing, match="no BIOS settings over Redfish"):
        read(resources)


def test_bios_is_looked_for_where_it_always_is_when_the_system_names_none() -> None:
    assert read(tree({"A": "0"}, system={"Bios": None})).current == {"A": "0"}


@pytest.mark.parametrize("attributes", [["A"], "A", 7])
def test_attributes_of_another_kind_are_malformed(attributes: Any) -> None:
    with pytest.raises(Malformed, match="Attributes is not an object"):
        read(tree(attributes))


def test_no_attributes_are_missing_and_empty_ones_malformed() -> None:
    with pytest.raises(Missing, match="has no Attributes"):
        read(tree())
    with pytest.raises(Malformed, match="no setting with a value"):
        read(tree({}))


def test_a_bmc_that_goes_silent_has_not_no_settings() -> None:
    def script(request: httpx.Request) -> httpx.ReadError | None:
        return httpx.ReadError("reset") if request.url.path == SETTINGS else None

    with pytest.raises(BmcUnreachable):
        read(tree({"A": "0"}, settings={"Attributes": {}}), script)


# Who it is


def test_the_host_is_chosen_among_systems_that_are_none() -> None:
    resources = tree({"A": "0"}, more={"/redfish/v1/Systems/HGX_Baseboard_0": {"SystemType": "Physical"}})
    members = [{"@odata.id": "/redfish/v1/Systems/HGX_Baseboard_0"}, {"@odata.id": SYSTEM}]
    resources["/redfish/v1/Systems"] = {"Members": members}
    with FakeBmc(resources).connection() as connection:
        assert read_service(connection).system.uri == SYSTEM


def test_several_hosts_are_not_chosen_among() -> None:
    resources = tree({"A": "0"}, more={"/redfish/v1/Systems/2": {"Bios": {"@odata.id": "/x"}}})
    resources["/redfish/v1/Systems"] = {
        "Members": [{"@odata.id": SYSTEM}, {"@odata.id": "/redfish/v1/Systems/2"}]
    }
    bmc = FakeBmc(resources)
    with (
        bmc.connection() as connection,
        pytest.raises(UsageError, match="several systems: 1, 2") as caught,
    ):
        read_service(connection)
    assert "--system" in caught.value.hint
    with bmc.connection(target=replace(TARGET, system="2")) as connection:
        assert read_service(connection).system.uri == "/redfish/v1/Systems/2"
    with (
        bmc.connection(target=replace(TARGET, system="3")) as connection,
        pytest.raises(UsageError, match="no system '3'") as caught,
    ):
        read_service(connection)
    assert caught.value.hint == "there are: 1, 2"


def test_a_service_without_systems_is_told_so() -> None:
    bmc = FakeBmc({"/redfish/v1/Systems": {"Members": []}})
    with bmc.connection() as connection, pytest.raises(Missing, match="has no system"):
        read_service(connection)


def test_names_that_are_null_are_empty() -> None:
    manager = {"/redfish/v1/Managers": {"Members": [{"@odata.id": "/m"}]}, "/m": {"FirmwareVersion": None}}
    system = {"Manufacturer": None, "Model": 7, "BiosVersion": None}
    with FakeBmc(tree({"A": "0"}, system=system, more=manager)).connection() as connection:
        found = read_service(connection).identity
    assert (found.vendor, found.model, found.bios, found.bmc_firmware) == ("unknown", "", "", "")


@pytest.mark.parametrize(
    ("told", "word"),
    [
        (("Dell Inc. PowerEdge R750",), "dell"),
        (("HPE ProLiant DL385",), "hpe"),
        (("Hewlett-Packard",), "hpe"),
        (("HPE HPE Cray EX235n",), "cray"),
        (("HPE HPE Cray XD670",), "hpe"),
        (("GIGABYTE H262-Z63-00", "AMI"), "gigabyte"),
        (("Giga Computing",), "gigabyte"),
        (("Supermicro SYS-821GE-TNHR",), "supermicro"),
        (("NVIDIA DGXH100",), "nvidia"),
        (("", "AMI"), "ami"),
        (("To be filled by O.E.M.", ""), "unknown"),
    ],
)
def test_makers_by_one_word(told: tuple[str, ...], word: str) -> None:
    assert vendor_word(*told) == word
