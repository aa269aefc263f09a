"""Sessions: opened once, renewed once, always ended; Basic where there are none."""

from __future__ import annotations

import logging

import httpx
import pytest
from fake_redfish import SECRET, SESSIONS, TARGET, FakeBmc, answer, error

from nodeprep.bmc import BmcLoginRefused
from nodeprep.bmc.redfish.errors import Malformed
from nodeprep.errors import Interrupted, UsageError

URI = "/redfish/v1/Systems/1"


def bmc_with(script: object = None) -> FakeBmc:
    return FakeBmc({URI: {"Id": "1"}}, script)  # type: ignore[arg-type]


def test_bug_25_the_session_ends_with_the_conversation() -> None:
    bmc = bmc_with()
    with bmc.connection() as connection:
        connection.get(URI)
        assert len(bmc.sessions) == 1
    assert (bmc.opened, bmc.sessions) == (1, {})


@pytest.mark.parametrize("end", [Interrupted("Ctrl-C"), ValueError("a bug"), KeyboardInterrupt()])
def test_bug_25_the_session_ends_whatever_ended_the_conversation(end: BaseException) -> None:
    bmc = bmc_with()

    def converse() -> None:
        with bmc.connection() as connection:
            connection.get(URI)
            # As the user's Ctrl-C does; the logout must not be broken off by it.
            bmc.clock.cancelled.set()
            raise end

    with pytest.raises(type(end)):
        converse()
    assert (bmc.opened, bmc.sessions) == (1, {})


def test_bug_25_no_free_session_means_basic() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        if request.method == "POST" and request.url.path == SESSIONS:
            return error(503, "IDRAC.2.8.RAC0218", "The maximum number of user sessions is reached.")
        return None

    bmc = bmc_with(script)
    with bmc.connection() as connection:
        assert connection.login == "basic"
        assert connection.get(URI).get(str, "Id") == "1"
    assert len(bmc.asked("POST", SESSIONS)) == 1
    assert bmc.asked("GET", URI)[0].headers["authorization"].startswith("Basic ")


def test_bug_25_a_lost_answer_to_the_login_opens_no_second_session() -> None:
    def script(request: httpx.Request) -> httpx.ReadError | None:
        return httpx.ReadError("reset") if request.url.path == SESSIONS else None

    bmc = bmc_with(script)
    with bmc.connection() as connection:
        assert connection.login == "basic"
    assert len(bmc.asked("POST", SESSIONS)) == 1


def test_a_logout_that_fails_is_told_and_not_raised(caplog: pytest.LogCaptureFixture) -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        return error(500, "Base.1.15.InternalError") if request.method == "DELETE" else None

    with caplog.at_level(logging.WARNING), bmc_with(script).connection() as connection:
        connection.get(URI)
    assert "stays until it expires" in caplog.text
    assert SECRET not in caplog.text


def test_basic_opens_no_session() -> None:
    bmc = bmc_with()
    with bmc.connection(login="basic") as connection:
        connection.get(URI)
    assert bmc.opened == 0


def test_bug_26_an_expired_session_is_opened_again_once() -> None:
    bmc = bmc_with()
    with bmc.connection() as connection:
        connection.get(URI)
        bmc.sessions.clear()
        assert connection.get(URI).get(str, "Id") == "1"
        assert bmc.opened == 2
    assert bmc.sessions == {}


def test_bug_26_a_new_session_that_is_refused_too_is_not_tried_for_ever() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        return error(401, "Base.1.15.NoValidSession") if request.url.path == URI else None

    bmc = bmc_with(script)
    with bmc.connection() as connection, pytest.raises(BmcLoginRefused):
        connection.get(URI)
    assert bmc.opened == 2


def test_bug_26_no_free_session_for_a_second_login_means_basic() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        return error(503, "RAC0218") if request.url.path == SESSIONS and bmc.opened else None

    bmc = bmc_with(script)
    with bmc.connection() as connection:
        bmc.sessions.clear()
        assert connection.get(URI).get(str, "Id") == "1"
        assert connection.login == "basic"


def test_a_wrong_password_is_tried_once_and_told_nowhere() -> None:
    bmc = bmc_with()
    wrong = type(TARGET)("node01", "redfish", "bmc.test", 443, "admin", "battery-staple")
    with pytest.raises(BmcLoginRefused) as caught, bmc.connection(target=wrong):
        pass
    assert len(bmc.asked("POST", SESSIONS)) == 1
    # This BMC repeats the password in its message.
    assert "battery-staple" not in f"{caught.value} {caught.value!r} {caught.value.hint}"
    assert "***" in str(caught.value)


def test_a_wrong_password_over_basic_is_tried_once() -> None:
    bmc = FakeBmc(script=lambda _: error(401, "Base.1.15.NoValidSession"))
    with pytest.raises(BmcLoginRefused), bmc.connection(login="basic"):
        pass
    assert [request.method for request in bmc.requests] == ["GET", "GET"]


def test_a_root_that_wants_a_login_gets_one() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        known = {"x-auth-token", "authorization"} & set(request.headers)
        return error(401, "x") if request.url.path == "/redfish/v1/" and not known else None

    with bmc_with(script).connection() as connection:
        assert connection.root.get(str, "RedfishVersion") == "1.15.0"


def test_a_session_without_a_name_is_not_used() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        return answer({}, 201, X_Auth_Token="t") if request.url.path == SESSIONS else None

    with bmc_with(script).connection() as connection:
        assert connection.login == "basic"


def test_the_session_s_location_may_be_a_url_of_the_bmc_s_own_name() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        if request.method == "POST" and request.url.path == SESSIONS:
            return answer({}, 201, X_Auth_Token="t", Location=f"https://idrac-7.lan{SESSIONS}/9")
        return answer({}, 204) if request.method == "DELETE" else None

    bmc = bmc_with(script)
    with bmc.connection():
        pass
    assert [request.url.path for request in bmc.requests if request.method == "DELETE"] == [f"{SESSIONS}/9"]
    assert {request.url.host for request in bmc.requests} == {"bmc.test"}


def test_what_is_no_redfish_service_is_told_so() -> None:
    bmc = FakeBmc(script=lambda _: httpx.Response(200, html="<html>Welcome</html>"))
    with pytest.raises(Malformed, match="not JSON"), bmc.connection():
        pass
    bmc = FakeBmc(script=lambda _: answer({"hello": "world"}))
    with pytest.raises(Malformed, match="not a Redfish service root"), bmc.connection():
        pass


def test_a_target_of_another_protocol_is_refused() -> None:
    ipmi = type(TARGET)("node01", "ipmi", "bmc.test", 623, "admin", SECRET)
    with pytest.raises(UsageError):
        FakeBmc().connection(target=ipmi)
