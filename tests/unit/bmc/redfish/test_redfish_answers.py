"""What answers mean: refusals by their kind, redirects, packed and damaged bodies, messages."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from typing import Any

import httpx
import pytest
from fake_redfish import SECRET, FakeBmc, answer, error

from nodeprep.bmc.redfish.errors import (
    LicenceNeeded,
    LockedDown,
    Malformed,
    Missing,
    PasswordNeeded,
    RedfishError,
    Refused,
)
from nodeprep.bmc.redfish.messages import read_messages

URI = "/redfish/v1/Systems/1/Bios/Settings"


def patched(response: httpx.Response) -> Any:
    bmc = FakeBmc(script=lambda request: response if request.method == "PATCH" else None)
    with bmc.connection() as connection:
        return connection.patch(URI, {"Attributes": {}})


def got(*responses: httpx.Response) -> Any:
    left = iter(responses)
    bmc = FakeBmc(script=lambda request: next(left) if request.url.path.startswith("/redfish/v1/S") else None)
    with bmc.connection(login="basic") as connection:
        return connection.get(URI)


def test_bug_29_a_missing_licence_is_an_error_of_its_own() -> None:
    # Supermicro's words.
    text = "Not licensed to perform this request. The following licenses DCMS were needed"
    with pytest.raises(LicenceNeeded, match="DCMS") as caught:
        patched(error(403, "SMC.1.0.OemLicenseNotPassed", text))
    assert caught.value.told("OemLicenseNotPassed")
    assert caught.value.status == 403


def test_bug_35_a_lockdown_is_an_error_of_its_own() -> None:
    with pytest.raises(LockedDown):
        patched(error(403, "IDRAC.2.8.SYS403", "Unable to modify because System Lockdown mode is enabled."))


def test_a_bios_password_is_an_error_of_its_own() -> None:
    with pytest.raises(PasswordNeeded):
        patched(error(400, "iLO.2.15.BIOSPasswordRequired", "BIOS Administrator password required"))


def test_bug_12_a_refusal_keeps_the_words_and_their_keys() -> None:
    with pytest.raises(Refused, match="already committed") as caught:
        patched(error(400, "IDRAC.2.8.SYS011", "Pending configuration values are already committed"))
    assert caught.value.told("SYS011")
    assert type(caught.value) is Refused


def test_bug_10_partial_success_tells_which_attributes_failed() -> None:
    info = {
        "MessageId": "IDRAC.2.8.SYS409",
        "Message": "Unable to set value disabled",
        "RelatedProperties": ["#/Attributes/ProcCStates"],
    }
    told = patched(answer({"@Message.ExtendedInfo": [{"MessageId": "Base.1.12.Success"}, info]}))
    assert [message.key for message in told.messages] == ["Success", "SYS409"]
    assert told.messages[1].about == ("#/Attributes/ProcCStates",)


def test_missing_is_not_malformed() -> None:
    with pytest.raises(Missing) as caught:
        got(error(404, "Base.1.15.ResourceMissingAtURI"))
    assert (caught.value.uri, caught.value.path, caught.value.status) == (URI, "", 404)
    for body in (b"<html>", b"[1]", b'{"cut', b"\x1f\x8bdamaged", b"\xff\xfe{}"):
        with pytest.raises(Malformed):
            got(httpx.Response(200, content=body))
    with pytest.raises(Malformed, match="is empty"):
        got(httpx.Response(200))


def test_packed_bodies_said_to_be_packed_and_not() -> None:
    packed = gzip.compress(json.dumps({"RegistryEntries": {}}).encode())
    assert got(httpx.Response(200, content=packed, headers={"Content-Encoding": "gzip"})).body
    assert got(httpx.Response(200, content=packed)).body
    with pytest.raises(Malformed, match="cut off"):
        got(httpx.Response(200, content=packed[:-9]))


def test_a_redirect_on_the_same_bmc_keeps_method_and_body() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        if request.url.path == URI:
            return answer({}, 308, Location=f"{URI}/")
        return None

    bmc = FakeBmc(script=script)
    with bmc.connection() as connection:
        connection.patch(URI, {"Attributes": {"A": 1}})
    first, second = bmc.asked("PATCH")
    assert (second.url.path, second.content) == (f"{URI}/", first.content)
    assert second.headers["x-auth-token"] == first.headers["x-auth-token"]


@pytest.mark.parametrize(
    "there", ["https://evil.test/redfish", "http://bmc.test/x", "https://bmc.test:8443/x", "//evil.test/x"]
)
def test_a_redirect_to_elsewhere_is_refused(there: str) -> None:
    bmc = FakeBmc(script=lambda request: answer({}, 308, Location=there) if request.url.path == URI else None)
    with bmc.connection() as connection, pytest.raises(RedfishError, match="another place"):
        connection.get(URI)
    assert {request.url.host for request in bmc.requests} == {"bmc.test"}


def test_redirects_in_circles_end() -> None:
    with pytest.raises(RedfishError, match="in circles"):
        got(*[answer({}, 308, Location=URI)] * 10)


def test_a_patch_does_not_become_a_get() -> None:
    with pytest.raises(Refused):
        patched(answer({}, 302, Location="/redfish/v1/"))


def test_no_word_of_a_bmc_carries_the_password() -> None:
    with pytest.raises(Refused) as caught:
        patched(error(400, "Base.1.5.ActionParameterValueFormatError", f"the value {SECRET} is bad"))
    assert SECRET not in f"{caught.value} {caught.value.messages}"


def test_good_answers_of_odd_content_are_good() -> None:
    assert patched(httpx.Response(200, html="<html>ok</html>")).good
    told = patched(answer({}, 202, Location="/redfish/v1/TaskService/Tasks/JID_1"))
    assert told.location == "/redfish/v1/TaskService/Tasks/JID_1"


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        ({"error": {"@Message.ExtendedInfo": [{"MessageId": "A.1.0.X"}]}}, ["A.1.0.X"]),
        # iLO 4.
        ({"error": {"@Message.ExtendedInfo": [{"MessageID": "iLO.0.10.X"}]}}, ["iLO.0.10.X"]),
        ({"@Message.ExtendedInfo": {"MessageId": "A.1.0.X"}}, ["A.1.0.X"]),
        ({"Attributes": {"B@Message.ExtendedInfo": [{"MessageId": "A.1.0.X"}]}}, ["A.1.0.X"]),
        ({"error": {"code": "A.1.0.X", "message": "words"}}, ["A.1.0.X"]),
        ({"error": {"@Message.ExtendedInfo": [None, 3, {"MessageId": None, "MessageArgs": None}]}}, [""]),
        ({"error": "words"}, []),
        ([], []),
    ],
)
def test_messages_are_found_wherever_they_stand(body: Any, ids: list[str]) -> None:
    assert [message.id for message in read_messages(body)] == ids


def test_a_page_of_html_as_refusal_is_quoted_short() -> None:
    with pytest.raises(Refused, match="Bad Gateway") as caught:
        patched(httpx.Response(502, html=f"<html><h1>Bad  Gateway</h1>{'x' * 5000}"))
    assert len(str(caught.value)) < 500


def test_bug_33_the_package_takes_no_other_one_s_name() -> None:
    code = "import sys, nodeprep.bmc.redfish.connection; print('redfish' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
