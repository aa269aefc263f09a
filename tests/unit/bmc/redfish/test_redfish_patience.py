"""Busy BMCs, and connections that end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest
from fake_redfish import FakeBmc, answer, error

from nodeprep.bmc import BmcUnreachable
from nodeprep.bmc.redfish.errors import AnswerLost, NotReady, Refused
from nodeprep.bmc.redfish.patience import retry_after_s

URI = "/redfish/v1/Systems/1"
RESET = f"{URI}/Actions/ComputerSystem.Reset"


def saying(*first: httpx.Response | Exception, on: str = URI) -> FakeBmc:
    """A BMC that says these first, and then serves."""
    left: Iterator[httpx.Response | Exception] = iter(first)

    def script(request: httpx.Request) -> httpx.Response | Exception | None:
        return next(left, None) if request.url.path == on else None

    return FakeBmc({URI: {"Id": "1"}}, script)


def test_bug_11_not_ready_is_asked_again_with_growing_pauses() -> None:
    not_ready = error(400, "IDRAC.2.8.SWC0700", "The configuration values cannot be accessed.")
    bmc = saying(not_ready, not_ready, not_ready)
    with bmc.connection() as connection:
        assert connection.get(URI).get(str, "Id") == "1"
    assert bmc.clock.pauses == [0.5, 1.0, 2.0]


def test_bug_11_and_not_for_ever() -> None:
    bmc = saying(*[error(400, "IDRAC.2.8.SWC0700", "iDRAC is not ready")] * 100)
    with bmc.connection(patience_s=20) as connection, pytest.raises(NotReady, match="SWC0700"):
        connection.get(URI)
    assert bmc.clock.time < 20


def test_that_a_bmc_is_busy_is_told_once_and_for_how_long_at_most() -> None:
    said: list[str] = []
    bmc = saying(*[answer({}, 503, Retry_After="1")] * 5)
    with bmc.connection(patience_s=40, notify=said.append) as connection:
        connection.get(URI)
        connection.get(URI)
    assert len(said) == 1
    assert "is busy (HTTP 503): asking again, at most 40 s" in said[0]


@pytest.mark.parametrize("header", ["7", "Mon, 30 Nov 2026 12:00:07 GMT"])
def test_retry_after_is_kept_in_both_forms(header: str) -> None:
    now = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
    assert retry_after_s({"retry-after": header}, now) == 7


@pytest.mark.parametrize("header", ["", "soon", "-3"])
def test_an_unreadable_retry_after_is_none(header: str) -> None:
    assert retry_after_s({"retry-after": header}) == 0


def test_a_503_is_asked_again_not_sooner_than_it_says() -> None:
    bmc = saying(answer({}, 503, Retry_After="9"))
    with bmc.connection() as connection:
        connection.get(URI)
    assert bmc.clock.pauses == [9.0]


def test_a_503_that_asks_for_more_than_there_is_ends_at_once() -> None:
    bmc = saying(answer({}, 503, Retry_After="900"))
    with bmc.connection() as connection, pytest.raises(NotReady):
        connection.get(URI)
    assert bmc.clock.pauses == []


@pytest.mark.parametrize(
    "key",
    [
        "iLO.2.15.UnableToModifyDuringSystemPOST",
        "iLO.2.15.InvalidOperationForSystemState",
        "IDRAC.2.8.SYS518",
    ],
)
def test_busy_in_other_words(key: str) -> None:
    bmc = saying(error(400, key))
    with bmc.connection() as connection:
        connection.patch(URI, {"AssetTag": "x"})
    assert len(bmc.asked("PATCH")) == 2


def test_busy_in_words_only() -> None:
    bmc = saying(
        error(400, "Base.1.5.GeneralError", "The service is not ready: it is still starting. Retry.")
    )
    with bmc.connection() as connection:
        connection.get(URI)
    assert bmc.clock.pauses == [0.5]


def test_a_reset_that_does_not_fit_the_power_state_is_refused_at_once() -> None:
    bmc = saying(error(400, "iLO.2.15.InvalidOperationForSystemState"), on=RESET)
    with bmc.connection() as connection, pytest.raises(Refused):
        connection.post(RESET, {"ResetType": "GracefulShutdown"})
    assert bmc.clock.pauses == []


def test_an_action_may_be_asked_again_when_the_bmc_said_it_did_nothing() -> None:
    bmc = saying(error(503, "Base.1.15.ServiceTemporarilyUnavailable"), on=RESET)
    with bmc.connection() as connection:
        connection.post(RESET, {"ResetType": "On"})
    assert len(bmc.asked("POST", RESET)) == 2


def test_bug_35_a_reset_of_the_kept_connection_is_tried_again_on_a_new_one() -> None:
    bmc = saying(httpx.ReadError("Connection reset by peer"))
    with bmc.connection() as connection:
        before = bmc.connections
        told = connection.patch(URI, {"AssetTag": "x"})
        assert bmc.connections == before + 1
    assert told.after_lost_answer
    assert len(bmc.asked("PATCH")) == 2


def test_bug_26_an_answer_that_is_cut_off_is_asked_for_again() -> None:
    bmc = saying(httpx.RemoteProtocolError("peer closed connection without sending complete message body"))
    with bmc.connection() as connection:
        assert connection.get(URI).get(str, "Id") == "1"


def test_connections_that_end_again_and_again_are_given_up() -> None:
    bmc = saying(*[httpx.ReadError("reset")] * 100)
    with bmc.connection() as connection, pytest.raises(BmcUnreachable, match="gives no answer to GET"):
        connection.get(URI)
    assert len(bmc.asked("GET", URI)) == 4


def test_an_action_is_sent_once_and_over_a_new_connection() -> None:
    bmc = saying(httpx.ReadError("reset"), on=RESET)
    with bmc.connection() as connection:
        connection.get(URI)
        before = bmc.connections
        with pytest.raises(AnswerLost, match="may have been carried out, or not"):
            connection.post(RESET, {"ResetType": "ForceRestart"})
        assert bmc.connections == before + 1
    assert len(bmc.asked("POST", RESET)) == 1


def test_a_connection_that_is_refused_may_be_tried_again_even_for_an_action() -> None:
    bmc = saying(httpx.ConnectError("Connection refused"), on=RESET)
    with bmc.connection() as connection:
        connection.post(RESET, {"ResetType": "On"})
    assert len(bmc.asked("POST", RESET)) == 2


def test_a_get_forgives_two_stumbles_and_a_patch_none() -> None:
    bmc = saying(*[error(500, "Base.1.15.InternalError")] * 2)
    with bmc.connection() as connection:
        connection.get(URI)
    bmc = saying(error(500, "Base.1.15.InternalError"))
    with bmc.connection() as connection, pytest.raises(Refused, match="InternalError"):
        connection.patch(URI, {})
    assert len(bmc.asked("PATCH")) == 1


def _hangs(bmc: FakeBmc, *, on: str, times: int = 1000) -> None:
    """The BMC takes the connection and the request, and is silent for as long as it is waited for."""
    left = iter(range(times))

    def script(request: httpx.Request) -> httpx.Response | Exception | None:
        if request.url.path != on or next(left, None) is None:
            return None
        bmc.clock.time += request.extensions["timeout"]["read"]
        return httpx.ReadTimeout("no answer in time")

    bmc.script = script


def test_a_bmc_that_never_answered_is_asked_twice_and_given_up() -> None:
    bmc = FakeBmc()
    _hangs(bmc, on="/redfish/v1/")
    with pytest.raises(BmcUnreachable, match="no answer in time"), bmc.connection():
        pass
    assert len(bmc.requests) == 2
    assert 30 <= bmc.clock.time <= 40


def test_a_first_request_that_was_lost_is_repeated() -> None:
    bmc = FakeBmc({URI: {"Id": "1"}})
    _hangs(bmc, on="/redfish/v1/", times=1)
    with bmc.connection() as connection:
        assert connection.get(URI).get(str, "Id") == "1"


def test_a_bmc_that_has_answered_keeps_its_patience() -> None:
    bmc = FakeBmc({URI: {"Id": "1"}})
    with bmc.connection(patience_s=300) as connection:
        _hangs(bmc, on=URI, times=3)
        assert connection.get(URI).get(str, "Id") == "1"
    waited = {request.extensions["timeout"]["read"] for request in bmc.asked("GET", URI)}
    assert (len(bmc.asked("GET", URI)), waited) == (4, {60.0})


def test_a_bmc_that_says_later_has_answered() -> None:
    bmc = saying(answer({}, 503, Retry_After="9"), answer({}, 503, Retry_After="40"), on="/redfish/v1/")
    with bmc.connection():
        pass
    assert bmc.clock.pauses == [9.0, 40.0]


def test_a_bmc_that_ends_its_first_connections_is_not_silent() -> None:
    ended = [httpx.RemoteProtocolError("Server disconnected")] * 3
    bmc = saying(*ended, on="/redfish/v1/")
    with bmc.connection():
        pass
    assert len(bmc.asked("GET", "/redfish/v1/")) == 4
