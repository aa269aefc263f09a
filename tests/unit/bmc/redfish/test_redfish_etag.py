"""ETags and If-Match: forms, order, and who never gets one."""

from __future__ import annotations

import httpx
import pytest
from fake_redfish import FakeBmc, answer, error

from nodeprep.bmc.redfish.bios import read_bios
from nodeprep.bmc.redfish.errors import PreconditionFailed
from nodeprep.bmc.redfish.etag import candidates, normalised, read_etag
from nodeprep.bmc.redfish.resource import Resource
from nodeprep.bmc.redfish.service import read_service
from nodeprep.bmc.redfish.settings_write import write_settings

SETTINGS = "/redfish/v1/Systems/1/Bios/SD"
BODY = {"Attributes": {"A": "1"}}


def tree(etag: str = 'W/"17"') -> dict[str, object]:
    return {
        "/redfish/v1/Systems": {"Members": [{"@odata.id": "/redfish/v1/Systems/1"}]},
        "/redfish/v1/Systems/1": {"Bios": {"@odata.id": "/redfish/v1/Systems/1/Bios"}, "Manufacturer": "AMI"},
        "/redfish/v1/Systems/1/Bios": {
            "@odata.etag": '"of-bios"',
            "@Redfish.Settings": {"ETag": "1103906B", "SettingsObject": {"@odata.id": SETTINGS}},
            "Attributes": {"A": "0"},
        },
        SETTINGS: {"@odata.etag": etag, "Attributes": {}},
    }


def taking(*accepted: str, status: int = 412) -> FakeBmc:
    """A BMC that takes only these values of If-Match."""

    def script(request: httpx.Request) -> httpx.Response | None:
        if request.method == "PATCH" and request.headers.get("if-match", "") not in accepted:
            return error(
                status, "Base.1.15.PreconditionFailed" if status == 412 else "Base.1.5.PreconditionRequired"
            )
        return None

    return FakeBmc(tree(), script)


def sent(bmc: FakeBmc) -> list[str]:
    return [request.headers.get("if-match", "") for request in bmc.asked("PATCH")]


def test_bug_02_a_weak_etag_is_tried_as_given_then_strong_then_any() -> None:
    bmc = taking("*")
    with bmc.connection() as connection:
        told = connection.patch(SETTINGS, BODY, etag_from=connection.get(SETTINGS))
    assert sent(bmc) == ['W/"17"', '"17"', "*"]
    assert told.if_match == "*"


def test_bug_02_precondition_required_as_400_is_understood_too() -> None:
    bmc = taking('"17"', status=400)
    with bmc.connection() as connection:
        connection.patch(SETTINGS, BODY, etag_from=connection.get(SETTINGS))
    assert sent(bmc) == ['W/"17"', '"17"']


def test_bug_02_when_no_form_is_taken_it_ends_with_what_was_tried() -> None:
    bmc = taking()
    with bmc.connection() as connection, pytest.raises(PreconditionFailed) as caught:
        connection.patch(SETTINGS, BODY, etag_from=connection.get(SETTINGS))
    assert (caught.value.tried, caught.value.changed) == (('W/"17"', '"17"', "*"), False)
    assert '"17"' in caught.value.hint


def test_a_resource_that_somebody_else_changed_is_not_overwritten() -> None:
    bmc = taking("*")
    with bmc.connection() as connection:
        read = connection.get(SETTINGS)
        bmc.resources[SETTINGS] = {"@odata.etag": 'W/"18"', "Attributes": {"A": "somebody's"}}
        with pytest.raises(PreconditionFailed, match="changed by somebody else") as caught:
            connection.patch(SETTINGS, BODY, etag_from=read)
    assert caught.value.changed
    assert sent(bmc) == ['W/"17"']


def test_bug_32_an_etag_that_changes_at_every_look_is_no_change() -> None:
    bmc = taking('"18"')
    with bmc.connection() as connection:
        read = connection.get(SETTINGS)
        bmc.resources[SETTINGS] = tree('W/"18"')[SETTINGS]
        connection.patch(SETTINGS, BODY, etag_from=read)
    assert sent(bmc) == ['W/"17"', 'W/"18"', '"18"']


@pytest.mark.parametrize(("staged", "ours"), [({"A": "1"}, True), ({"A": "1", "B": "x"}, False)])
def test_a_change_of_our_own_whose_answer_was_lost_is_not_somebody_else_s(
    staged: dict[str, str], ours: bool
) -> None:
    """The first try is carried out and its answer lost; the second meets a tag that the first one made."""

    def script(request: httpx.Request) -> httpx.Response | Exception | None:
        if request.method != "PATCH":
            return None
        if len(bmc.asked("PATCH")) == 1:
            bmc.resources[SETTINGS] = {"@odata.etag": 'W/"18"', "Attributes": staged}
            return httpx.ReadError("reset")
        return None if request.headers["if-match"] == 'W/"18"' else error(412, "PreconditionFailed")

    bmc = FakeBmc(tree(), script)
    with bmc.connection() as connection:
        read = connection.get(SETTINGS)
        if ours:
            assert connection.patch(SETTINGS, BODY, etag_from=read).after_lost_answer
        else:
            with pytest.raises(PreconditionFailed, match="changed by somebody else"):
                connection.patch(SETTINGS, BODY, etag_from=read)
    assert sent(bmc) == ['W/"17"', 'W/"17"', *(['W/"18"'] if ours else [])]


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ('""abc""', '"abc"'),
        ('W/""abc""', 'W/"abc"'),
        ('"W/"abc""', 'W/"abc"'),
        ("abc", '"abc"'),
        ('w/"abc"', 'W/"abc"'),
        ('"abc"', '"abc"'),
        ('""', ""),
    ],
)
def test_bug_03_etags_quoted_twice_or_not_at_all_are_put_right(written: str, form: str) -> None:
    assert normalised(written) == form


def test_bug_03_the_header_comes_before_the_body_and_the_body_stands_in_for_it() -> None:
    assert read_etag('""abc""', {"@odata.etag": '"other"'}) == '""abc""'
    assert read_etag(None, {"@odata.etag": '"other"'}) == '"other"'
    assert read_etag(" ", {"@odata.etag": None}) == ""
    assert candidates('""abc""') == ('""abc""', '"abc"', "*")


def test_a_dummy_is_no_etag() -> None:
    assert read_etag("Dummyetag", {"@odata.etag": '"Dummyetag"'}) == ""
    assert candidates("") == ("", "*")
    assert read_etag(None, {"@odata.etag": "\u00e4\n"}) == ""


def test_bug_24_if_match_comes_from_the_settings_resource() -> None:
    bmc = FakeBmc(tree())
    with bmc.connection() as connection:
        bios = read_bios(connection, read_service(connection))
        write_settings(connection, bios, bios.body({"A": "1"}))
    assert sent(bmc) == ['W/"17"']


def test_bug_23_actions_never_carry_if_match() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        if request.method == "POST" and "Actions" in request.url.path and "if-match" in request.headers:
            return error(412, "IDRAC.2.8.SYS430")
        return answer({}, 204) if "Actions" in request.url.path else None

    bmc = FakeBmc(tree(), script)
    with bmc.connection() as connection:
        connection.get(SETTINGS)
        reset = connection.post("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", {"ResetType": "On"})
    assert reset.status == 204
    assert all("if-match" not in request.headers for request in bmc.requests)


def test_without_an_etag_none_is_sent_and_any_when_one_is_missed() -> None:
    bmc = FakeBmc({SETTINGS: {"Attributes": {}}})
    with bmc.connection() as connection:
        connection.patch(SETTINGS, BODY, etag_from=connection.get(SETTINGS))
    assert sent(bmc) == [""]
    bmc = taking("*", status=428)
    with bmc.connection() as connection:
        connection.patch(SETTINGS, BODY, etag_from=Resource(SETTINGS, {}))
    assert sent(bmc) == ["", "*"]
