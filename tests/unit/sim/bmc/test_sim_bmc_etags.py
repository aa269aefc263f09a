"""If-Match against the settings resource, in the ways that real BMCs have."""

from __future__ import annotations

from sim_bmc_client import BIOS, RESET, Client, tree

CHANGE = {"Iommu": "Disabled"}


def test_an_etag_is_checked_where_it_is_given() -> None:
    bmc = Client(tree())
    assert bmc.get(bmc.settings).headers["ETag"] == 'W/"100"'
    refused = bmc.stage(CHANGE, if_match='W/"99"')
    assert (refused.status, refused.ids) == (412, ["PreconditionFailed"])
    assert bmc.stage(CHANGE, if_match='W/"100"').status == 200


def test_an_etag_changes_with_its_resource_and_with_no_other() -> None:
    bmc = Client(tree())
    before, bios = bmc.get(bmc.settings).headers["ETag"], bmc.get(BIOS).headers["ETag"]
    bmc.stage(CHANGE)
    after = bmc.get(bmc.settings)
    assert after.headers["ETag"] == after.json["@odata.etag"] != before
    assert bmc.get(BIOS).headers["ETag"] == bios
    assert bmc.stage({"BusNumber": 9}, if_match=before).status == 412
    bmc.boot()
    assert bmc.get(BIOS).headers["ETag"] != bios


def test_the_etag_of_another_resource_never_fits() -> None:
    bmc = Client(tree())
    assert bmc.stage(CHANGE, if_match=bmc.get(BIOS).headers["ETag"]).status == 412


def test_required() -> None:
    bmc = Client(tree(), "etag_required")
    refused = bmc.stage(CHANGE)
    assert (refused.status, refused.ids) == (428, ["PreconditionRequired"])
    assert bmc.stage(CHANGE, if_match="*").status == 200


def test_none() -> None:
    bmc = Client(tree(), "etag_none")
    answer = bmc.get(bmc.settings)
    assert "ETag" not in answer.headers
    assert "@odata.etag" not in answer.json
    assert bmc.stage(CHANGE, if_match='"anything"').status == 200


def test_weak_matches_as_given() -> None:
    bmc = Client(tree(etag='"100"'), "etag_weak")
    assert bmc.stage(CHANGE, if_match='"100"').status == 412
    assert bmc.stage(CHANGE, if_match=bmc.get(bmc.settings).headers["ETag"]).status == 200


def test_strong_never_matches_as_given() -> None:
    bmc = Client(tree(), "etag_strong")
    given = bmc.get(bmc.settings).headers["ETag"]
    assert given == 'W/"100"'
    assert bmc.stage(CHANGE, if_match=given).status == 412
    assert bmc.stage(CHANGE, if_match='"100"').status == 200


def test_star_is_the_only_way() -> None:
    bmc = Client(tree(), "etag_star")
    given = bmc.get(bmc.settings).headers["ETag"]
    assert bmc.stage(CHANGE, if_match=given).status == 428
    assert bmc.stage(CHANGE, if_match=given.removeprefix("W/")).status == 412
    assert bmc.stage(CHANGE, if_match="*").status == 200


def test_quotes_twice() -> None:
    bmc = Client(tree(), "etag_double")
    answer = bmc.get(bmc.settings)
    assert answer.headers["ETag"] == '""100""'
    assert answer.json["@odata.etag"] == '"100"'
    assert bmc.stage(CHANGE, if_match='""100""').status == 412
    assert bmc.stage(CHANGE, if_match='"100"').status == 200


def test_dummy() -> None:
    bmc = Client(tree(), "etag_dummy")
    assert bmc.get(bmc.settings).headers["ETag"] == "Dummyetag"
    assert bmc.stage(CHANGE, if_match="Dummyetag").status == 412
    assert bmc.stage(CHANGE, if_match="*").status == 200


def test_a_race_is_lost_once() -> None:
    bmc = Client(tree(), "etag_race")
    given = bmc.get(bmc.settings).headers["ETag"]
    assert bmc.stage(CHANGE, if_match=given).status == 412
    assert bmc.stage(CHANGE, if_match=given).status == 200


def test_an_action_has_no_etag() -> None:
    bmc = Client(tree())
    assert bmc.post(RESET, {"ResetType": "ForceRestart"}, if_match="*").status == 412
    assert not bmc.bmc.state.host.in_post
