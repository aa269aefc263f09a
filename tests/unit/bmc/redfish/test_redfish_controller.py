"""Power, event logs and identity over Redfish, behind the same interface as IPMI."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from nodeprep.bmc import (
    BmcIdentity,
    BmcLoginRefused,
    BmcRefused,
    BmcUnreachable,
    LogMark,
    Marks,
    OutOfBand,
    connect,
    gather,
    power_cycle_to_recover,
    set_marks,
)
from nodeprep.bmc.event_log import LogPlace
from nodeprep.bmc.redfish.errors import Missing, NotTrusted, RedfishError
from nodeprep.bmc.target import BmcTarget, TlsTrust
from nodeprep.errors import ApplyFailed, Interrupted
from nodeprep.model.codec import decode, encode
from nodeprep.sim.bmc import Dump, SimulatedBmc, serving, tls_in
from nodeprep.sim.bmc.wire import Link

SECRET = "correct-horse-4711"
ROOT = "/redfish/v1"
SYSTEM, MANAGER = f"{ROOT}/Systems/1", f"{ROOT}/Managers/1"
TYPES = ("On", "ForceOff", "ForceRestart", "PowerCycle")


def tree(maker: str = "Acme", *logs: str, types: tuple[str, ...] = TYPES, **system: Any) -> dict[str, Any]:
    """A system and a manager, with logs named OWNER/ID."""
    made: dict[str, Any] = {
        ROOT: {
            "@odata.id": ROOT,
            "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot",
            "RedfishVersion": "1.6.0",
            "Vendor": maker,
            "Systems": {"@odata.id": f"{ROOT}/Systems"},
            "Managers": {"@odata.id": f"{ROOT}/Managers"},
            "ProtocolFeaturesSupported": {"ExpandQuery": {"NoLinks": True}},
        },
        f"{ROOT}/Systems": {"Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {
            "@odata.id": SYSTEM,
            "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
            "Manufacturer": maker,
            "Model": "X1",
            "SerialNumber": "SN1 ",
            "UUID": "5E3C0F7A-2B1D-4C55-9E0A-0123456789AB",
            "PowerState": "On",
            "LogServices": {"@odata.id": f"{SYSTEM}/LogServices"},
            "Actions": {
                "#ComputerSystem.Reset": {
                    "target": f"{SYSTEM}/Actions/ComputerSystem.Reset",
                    "ResetType@Redfish.AllowableValues": list(types),
                }
            },
            **system,
        },
        f"{ROOT}/Managers": {"Members": [{"@odata.id": MANAGER}]},
        MANAGER: {
            "@odata.id": MANAGER,
            "@odata.type": "#Manager.v1_5_0.Manager",
            "FirmwareVersion": "1.2.3",
            "LogServices": {"@odata.id": f"{MANAGER}/LogServices"},
        },
    }
    for owner, uri in (("Systems", SYSTEM), ("Managers", MANAGER)):
        own = [f"{uri}/LogServices/{log.split('/')[1]}" for log in logs if log.startswith(owner)]
        made[f"{uri}/LogServices"] = {"Members": [{"@odata.id": one} for one in own]}
        for one in own:
            name = one.rsplit("/", 1)[1]
            made[one] = {"@odata.id": one, "Id": name, "Entries": {"@odata.id": f"{one}/Entries"}}
    return made


class Served:
    def __init__(self, bmc: SimulatedBmc, target: BmcTarget) -> None:
        self.bmc = bmc
        self.target = target

    @property
    def logs(self) -> Any:
        return self.bmc.state.logs


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tls_in(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def serve(tls: Any) -> Iterator[Callable[..., Served]]:
    with ExitStack() as stack:

        def start(dump: dict[str, Any], *faults: str, **options: Any) -> Served:
            bmc = SimulatedBmc(
                Dump(dump), user="admin", password=SECRET, faults=faults, post_s=0.1, **options
            )
            (served,) = stack.enter_context(serving([bmc], tls=tls))
            trust = TlsTrust(ca=tls.ca)
            return Served(
                bmc, BmcTarget("node01", "redfish", "127.0.0.1", served.port, "admin", SECRET, trust)
            )

        yield start


def test_power_and_identity(serve: Callable[..., Served]) -> None:
    served = serve(tree())
    with connect(served.target) as controller:
        assert controller.power_state().on
        assert controller.identity() == BmcIdentity(
            0, 0, "1.2.3", "5e3c0f7a-2b1d-4c55-9e0a-0123456789ab", "Acme", "X1", "SN1"
        )
        assert controller.set_power("off")
        assert not controller.power_state().on
        with pytest.raises(BmcRefused, match="power is off"):
            controller.set_power("cycle")
        assert controller.set_power("on")
        assert controller.power_state().on
        assert controller.set_power("reset")
    assert served.bmc.state.sessions.ids() == []


@pytest.mark.parametrize(
    ("system", "error"),
    [({"PowerState": None}, "has no PowerState"), ({"PowerState": "Sideways"}, "no state of power")],
)
def test_a_power_state_that_is_not_told_is_not_off(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch, system: dict[str, Any], error: str
) -> None:
    served = serve(tree())
    monkeypatch.setattr(type(served.bmc.state.host), "power", property(lambda _: system["PowerState"]))
    with connect(served.target) as controller, pytest.raises(BmcRefused, match=error):
        controller.power_state()


def test_recovery_with_a_power_cycle(serve: Callable[..., Served]) -> None:
    resets: list[str] = []
    served = serve(tree(), on_reset=resets.append)
    done = power_cycle_to_recover(served.target, verify_s=10)
    assert (done.was_on, done.actions, done.acknowledged) == (True, ("cycle",), True)
    assert resets == ["PowerCycle"]


def test_recovery_goes_by_off_and_on_where_the_bmc_has_no_power_cycle(serve: Callable[..., Served]) -> None:
    resets: list[str] = []
    served = serve(
        tree("HPE", types=("On", "ForceOff", "ForceRestart", "PushPowerButton")), on_reset=resets.append
    )
    done = power_cycle_to_recover(served.target, verify_s=10)
    assert (done.actions, done.seen_off) == (("off", "on"), True)
    assert resets == ["ForceOff", "On"]


def test_recovery_of_a_bmc_that_refuses_every_reset_fails_and_says_so(serve: Callable[..., Served]) -> None:
    served = serve(tree(), "reset_refused")
    with pytest.raises(ApplyFailed, match="resets are refused"):
        power_cycle_to_recover(served.target, verify_s=2)


def test_a_lost_answer_to_a_reset_is_no_acknowledgement_and_is_not_repeated(
    serve: Callable[..., Served],
) -> None:
    resets: list[str] = []
    served = serve(tree(), "lost_answer", "no_sessions", on_reset=resets.append)
    with connect(served.target) as controller:
        assert controller.set_power("cycle") is False
    assert resets == ["PowerCycle"]


def test_a_power_button_is_pressed_only_for_a_host_that_is_off(serve: Callable[..., Served]) -> None:
    served = serve(tree(types=("PushPowerButton", "ForceOff")))
    with connect(served.target) as controller:
        with pytest.raises(BmcRefused, match="no type of reset to on"):
            controller.set_power("on")
        controller.set_power("off")
        assert controller.set_power("on")
        assert controller.power_state().on


def test_wrong_password_wrong_certificate_and_nobody_there(serve: Callable[..., Served]) -> None:
    served = serve(tree())
    good = served.target
    wrong = BmcTarget("node01", "redfish", "127.0.0.1", good.port, "admin", "wrong", good.tls)
    with pytest.raises(BmcLoginRefused), connect(wrong):
        pass
    strange = BmcTarget(
        "node01", "redfish", "127.0.0.1", good.port, "admin", SECRET, TlsTrust(fingerprint="0" * 64)
    )
    with pytest.raises(NotTrusted), connect(strange):
        pass
    dead = BmcTarget("node01", "redfish", "127.0.0.1", 1, "admin", SECRET, good.tls)
    with pytest.raises(BmcUnreachable), connect(dead, connect_s=1.0):
        pass


def test_a_bmc_that_stops_answering_costs_no_more_than_the_operation_time(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve(tree())
    with connect(served.target, operation_s=1.0) as controller:
        monkeypatch.setattr(served.bmc._gate, "before", lambda *_, **__: Link.HANG)
        began = time.monotonic()
        with pytest.raises(BmcUnreachable):
            controller.power_state()
        assert time.monotonic() - began < 9
        monkeypatch.undo()


def news_of(serve: Callable[..., Served], dump: dict[str, Any], old: int, new: int) -> Any:
    served = serve(dump)
    for number in range(old):
        served.logs.add(f"old {number}")
    with connect(served.target) as controller:
        mark = decode(encode(controller.log_mark()), LogMark, source="x")
        for number in range(new):
            served.logs.add(f"new {number}", severity="Critical")
        return controller.log_since(mark)


@pytest.mark.parametrize(
    ("maker", "log"),
    [
        ("Dell Inc.", "Managers/Sel"),
        ("HPE", "Systems/IML"),
        ("GIGABYTE", "Managers/SEL"),
        ("Lenovo", "Systems/PlatformLog"),
        ("OpenBMC", "Systems/EventLog"),
        ("Supermicro", "Managers/Log1"),
    ],
)
@pytest.mark.parametrize(("old", "new"), [(0, 0), (0, 3), (3, 0), (3, 2), (120, 3), (120, 130), (0, 70)])
def test_only_what_came_after_the_mark(
    serve: Callable[..., Served], maker: str, log: str, old: int, new: int
) -> None:
    news = news_of(serve, tree(maker, log), old, new)
    assert news.note == ""
    assert [entry.text.split("Critical: ")[-1] for entry in news.entries] == [f"new {n}" for n in range(new)]
    if new:
        first = news.entries[0]
        assert first.record == f"{log.split('/')[1]}/{old + 1}"
        assert first.time.startswith("20")
        assert json.loads(first.raw)["Message"] == "new 0"


@pytest.mark.parametrize("maker", ["Dell Inc.", "HPE", "GIGABYTE"])
def test_a_log_that_was_cleared_says_so(serve: Callable[..., Served], maker: str) -> None:
    served = serve(tree(maker, "Managers/SEL"))
    for number in range(60):
        served.logs.add(f"old {number}")
    with connect(served.target) as controller:
        mark = controller.log_mark()
        served.logs.clear()
        served.logs.add("after")
        news = controller.log_since(mark)
    assert [entry.text for entry in news.entries] == ["SEL: OK: after"]
    assert "cleared after the mark" in news.note


def test_an_event_that_is_counted_on_its_old_entry_is_news(serve: Callable[..., Served]) -> None:
    served = serve(tree("HPE", "Systems/IML"))
    served.logs.add("Uncorrectable PCI Express Error", Oem={"Hpe": {"Count": 1}})
    with connect(served.target) as controller:
        mark = controller.log_mark()
        served.logs.change(Oem={"Hpe": {"Count": 2}})
        news = controller.log_since(mark)
    assert [entry.text for entry in news.entries] == ["IML: OK: Uncorrectable PCI Express Error"]


def test_a_clock_that_was_set_back_does_not_hide_an_event(serve: Callable[..., Served]) -> None:
    served = serve(tree("Acme", "Managers/SEL"))
    for number in range(10):
        served.logs.add(f"old {number}")
    with connect(served.target) as controller:
        mark = controller.log_mark()
        served.logs.add("new", Created="1970-01-01T00:00:07+00:00")
        news = controller.log_since(mark)
    assert [(entry.text, entry.time[:4]) for entry in news.entries] == [("SEL: OK: new", "1970")]


def test_logins_dumps_and_post_codes_are_no_events_of_the_host(serve: Callable[..., Served]) -> None:
    others = ("Systems/SL", "Managers/IEL", "Managers/AuditLog", "Systems/PostCodes", "Systems/Dump")
    served = serve(tree("Acme", "Systems/IML", *others))
    with connect(served.target) as controller:
        assert list(controller.log_mark().logs) == [f"{SYSTEM}/LogServices/IML/Entries"]


def test_logins_in_dells_lifecycle_log_are_left_out(serve: Callable[..., Served]) -> None:
    served = serve(tree("Dell Inc.", "Managers/Lclog"))
    with connect(served.target) as controller:
        mark = controller.log_mark()
        served.logs.add("Successfully logged in", Oem={"Dell": {"Category": "Audit"}})
        served.logs.add("A fatal error", Oem={"Dell": {"Category": "System Health"}})
        assert [entry.text for entry in controller.log_since(mark).entries] == ["Lclog: OK: A fatal error"]


def test_a_bmc_without_an_event_log_is_an_error_and_not_an_empty_log(serve: Callable[..., Served]) -> None:
    served = serve(tree())
    with connect(served.target) as controller, pytest.raises(Missing, match="no event log"):
        controller.log_mark()


def test_a_log_that_was_not_readable_at_the_mark_is_told(serve: Callable[..., Served]) -> None:
    served = serve(tree("Acme", "Managers/SEL"))
    with connect(served.target) as controller:
        news = controller.log_since(LogMark("", "", 0, {"/redfish/v1/other": LogPlace({})}))
    assert news.entries == ()
    assert "not known" in news.note


def test_a_log_that_is_no_longer_found_is_told_and_the_others_are_read(serve: Callable[..., Served]) -> None:
    dump = tree("Acme", "Systems/IML", "Managers/SEL")
    # The manager names it still, and answers 404.
    del dump[f"{MANAGER}/LogServices/SEL"]
    served = serve(dump)
    sel = f"{MANAGER}/LogServices/SEL/Entries"
    with connect(served.target) as controller:
        mark = controller.log_mark()
        before = LogMark("", "", 0, {**mark.logs, sel: LogPlace({})})
        served.logs.add("new")
        news = controller.log_since(before)
    assert [entry.text for entry in news.entries] == ["IML: OK: new"]
    assert "a log cannot be looked for" in news.note
    assert f"{sel} was there at the mark and is not found now" in news.note


def test_the_only_log_that_cannot_be_looked_at_is_not_taken_for_none(serve: Callable[..., Served]) -> None:
    dump = tree("Acme", "Managers/SEL")
    del dump[f"{MANAGER}/LogServices/SEL"]
    with connect(serve(dump).target) as controller:
        for ask in (controller.log_mark, lambda: controller.log_since(LogMark("", "", 0, {}))):
            with pytest.raises(RedfishError) as caught:
                ask()
            assert "no event log" not in str(caught.value)


def test_evidence_of_a_node_that_hangs(serve: Callable[..., Served]) -> None:
    served = serve(tree("Dell Inc.", "Managers/Sel"))
    ways = OutOfBand(bmc=served.target)
    marks = decode(encode(set_marks(ways)), Marks, source="x")
    served.logs.add("A bus fatal error was detected on a component at bus 23", severity="Critical")
    found = gather(ways, marks)
    assert found.power.value is not None
    assert found.power.value.on
    assert found.log.value is not None
    assert "bus fatal error" in found.log.value.entries[0].text


def test_breaking_off_from_another_thread(serve: Callable[..., Served]) -> None:
    served = serve(tree(), "slow")
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    began = time.monotonic()
    with pytest.raises(Interrupted), connect(served.target, cancelled=cancelled) as controller:
        controller.power_state()
    assert time.monotonic() - began < 8
