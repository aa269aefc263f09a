"""Logins, readiness, and what breaks on the way."""

from __future__ import annotations

import email.utils
import time

import pytest
from sim_bmc_client import BIOS, PASSWORD, RESET, ROOT, SESSIONS, SYSTEM, USER, Client, tree

from nodeprep.sim.bmc.wire import Link

LOGIN = {"UserName": USER, "Password": PASSWORD}


def logged_in(bmc: Client) -> str:
    """Open a session and use it from now on. Returns where it is."""
    bmc.login = {}
    answer = bmc.post(SESSIONS, LOGIN)
    assert answer.status == 201
    bmc.login = {"x-auth-token": answer.headers["X-Auth-Token"]}
    return answer.headers["Location"]


def test_the_root_is_open_and_nothing_else() -> None:
    bmc = Client(tree())
    bmc.login = {}
    assert bmc.get(ROOT).status == bmc.get(f"{ROOT}/").status == bmc.get("/redfish").status == 200
    refused = bmc.get(SYSTEM)
    assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, 'Basic realm="BMC"')
    # Nobody learns without a login what there is.
    assert bmc.get(f"{ROOT}/Nothing").status == 401


@pytest.mark.parametrize(
    "header", ["Basic YWRtaW46d3Jvbmc=", "Basic ?", "Bearer secret", "Basic", "Basic /w=="]
)
def test_wrong_logins(header: str) -> None:
    bmc = Client(tree())
    bmc.login = {"authorization": header}
    assert bmc.get(SYSTEM).status == 401


def test_a_session_opens_and_is_closed() -> None:
    bmc = Client(tree())
    place = logged_in(bmc)
    assert bmc.get(SYSTEM).status == 200
    assert bmc.get(SESSIONS).json["Members"] == [{"@odata.id": place}]
    assert bmc.get(place).json["UserName"] == USER
    assert bmc.ask("DELETE", place).status == 204
    assert bmc.get(SYSTEM).status == 401
    assert bmc.bmc.state.sessions.ids() == []


@pytest.mark.parametrize(
    "body", [{}, {"UserName": USER}, {**LOGIN, "Password": "wrong"}, {**LOGIN, "Password": 7}]
)
def test_a_session_needs_the_right_login(body: dict[str, object]) -> None:
    bmc = Client(tree())
    bmc.login = {}
    assert bmc.post(SESSIONS, body).status == 401


def test_a_session_that_is_not_used_ends_and_one_in_use_lives() -> None:
    bmc = Client(tree())
    logged_in(bmc)
    for _ in range(3):
        bmc.clock.forward(200)
        assert bmc.get(SYSTEM).status == 200
    bmc.clock.forward(301)
    assert bmc.get(SYSTEM).ids == ["NoValidSession"]


def test_session_faults() -> None:
    limited = Client(tree(), "session_limit")
    assert [limited.post(SESSIONS, LOGIN).status for _ in range(3)] == [201, 201, 503]
    expiring = Client(tree(), "session_expiry")
    logged_in(expiring)
    assert [expiring.get(SYSTEM).status for _ in range(6)] == [200] * 5 + [401]
    taken = Client(tree(), "sessions_taken")
    assert taken.post(SESSIONS, LOGIN).ids == ["SessionLimitExceeded"]
    assert taken.get(SYSTEM).status == 200


def test_ways_to_log_in() -> None:
    assert Client(tree(), "no_basic").get(SYSTEM).status == 401
    none = Client(tree(), "no_sessions")
    assert none.post(SESSIONS, LOGIN).status == none.get(SESSIONS).status == 404
    anybody = Client(tree(), "no_login")
    anybody.login = {}
    assert anybody.get(SYSTEM).status == 200


# ---- readiness --------------------------------------------------------------------------------------


def test_busy_comes_every_third_time() -> None:
    bmc = Client(tree(), "busy")
    answers = [bmc.get(SYSTEM) for _ in range(6)]
    assert [answer.status for answer in answers] == [200, 200, 503] * 2
    assert answers[2].headers["Retry-After"] == "1"
    assert answers[2].ids == ["ServiceTemporarilyUnavailable"]


def test_busy_in_other_words() -> None:
    assert "Retry-After" not in [Client(tree(), "busy_always", "busy_bare")][0].get(SYSTEM).headers
    dated = [bmc.get(SYSTEM) for bmc in [Client(tree(), "busy_date")] for _ in range(3)][-1]
    when = email.utils.parsedate_to_datetime(dated.headers["Retry-After"]).timestamp()
    assert -1 <= when - time.time() <= 2


def test_not_ready_after_the_start_and_after_a_reset() -> None:
    bmc = Client(tree(), "not_ready")
    assert (bmc.get(SYSTEM).status, bmc.get(ROOT).status) == (503, 200)
    bmc.clock.forward(3)
    assert bmc.get(SYSTEM).status == 200
    bmc.reset()
    assert bmc.get(SYSTEM).ids == ["ServiceInUnknownState"]


def test_not_ready_in_dells_words() -> None:
    refused = Client(tree("Dell Inc."), "not_ready_400").get(SYSTEM)
    assert (refused.status, refused.ids) == (400, ["SWC0700"])


# ---- the connection ---------------------------------------------------------------------------------


def test_connections_that_break() -> None:
    drop = Client(tree(), "drop")
    assert [drop.get(SYSTEM).link for _ in range(3)] == [Link.DELIVER, Link.DELIVER, Link.DROP]
    rst = Client(tree(), "rst")
    assert [rst.ask("GET", SYSTEM, turn=turn).link for turn in (0, 1)] == [Link.DELIVER, Link.RESET]
    half = Client(tree(), "half")
    assert [half.get(SYSTEM).link for _ in range(3)] == [Link.DELIVER, Link.DELIVER, Link.HALF]
    assert Client(tree(), "close").get(SYSTEM).link is Link.CLOSE
    assert Client(tree(), "hang").get(ROOT).link is Link.HANG
    assert Client(tree(), "slow").get(ROOT).response.delay_s == 2


def test_a_dropped_request_is_not_carried_out_and_one_with_a_lost_answer_is() -> None:
    drop = Client(tree(), "drop")
    drop.get(SYSTEM)
    drop.get(SYSTEM)
    drop.stage({"Iommu": "Disabled"})
    assert drop.bmc.state.settings.waiting == {}
    lost = Client(tree(), "lost_answer")
    logged_in(lost)
    assert lost.stage({"Iommu": "Disabled"}).link is Link.DROP
    assert lost.waiting() == {"Iommu": "Disabled"}
    assert lost.stage({"BusNumber": 9}).link is Link.DELIVER


def test_errors_in_other_forms() -> None:
    bare = Client(tree(), "errors_bare").get(f"{ROOT}/Nothing")
    assert (bare.status, bare.response.body) == (404, b"")
    page = Client(tree(), "errors_html").get(f"{ROOT}/Nothing")
    assert (page.headers["Content-Type"], page.response.body[:6]) == ("text/html", b"<html>")


def test_a_redirect_abroad_is_one_of_bios_only() -> None:
    bmc = Client(tree(), "redirect_abroad")
    assert bmc.get(BIOS).headers["Location"] == f"https://other-bmc.invalid{BIOS}"
    assert bmc.get(SYSTEM).status == 200


@pytest.mark.parametrize("body", [b"{", b"[1]", b"\xff", b'"text"'])
def test_bodies_that_are_no_object(body: bytes) -> None:
    from nodeprep.sim.bmc.wire import Request

    bmc = Client(tree())
    answer = bmc.bmc.handle(Request("PATCH", bmc.settings, bmc.login, body))
    assert answer.status == 400
    assert bmc.waiting() == {}


def test_methods_that_nothing_has() -> None:
    bmc = Client(tree())
    assert bmc.ask("DELETE", BIOS).status == 405
    assert bmc.ask("POST", BIOS, {}).status == 405
    assert bmc.get(RESET).status == 405
    assert bmc.ask("BREW", SYSTEM).status == 405
