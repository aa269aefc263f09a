"""Power, resets and POST of simulated hosts."""

from __future__ import annotations

import pytest
from sim_bmc_client import MANAGER, RESET, ROOT, SYSTEM, TYPES, Client, tree

CHANGE = {"Iommu": "Disabled"}


def power(bmc: Client) -> str:
    return str(bmc.get(SYSTEM).json["PowerState"])


def progress(bmc: Client) -> str:
    return str(bmc.get(SYSTEM).json["BootProgress"]["LastState"])


def test_off_and_on() -> None:
    bmc = Client(tree())
    assert (power(bmc), progress(bmc)) == ("On", "OSRunning")
    assert bmc.reset("ForceOff").status == 204
    assert (power(bmc), progress(bmc)) == ("Off", "None")
    assert bmc.reset("On").status == 204
    assert (power(bmc), progress(bmc)) == ("On", "SystemHardwareInitializationComplete")
    bmc.clock.forward(11)
    assert progress(bmc) == "OSRunning"


def test_graceful_requests_take_their_time() -> None:
    bmc = Client(tree())
    bmc.reset("GracefulShutdown")
    assert power(bmc) == "On"
    bmc.clock.forward(1)
    assert power(bmc) == "Off"
    bmc.reset("PushPowerButton")
    assert power(bmc) == "On"


def test_a_graceful_restart_applies_settings() -> None:
    bmc = Client(tree())
    bmc.stage(CHANGE)
    bmc.boot("GracefulRestart")
    assert bmc.current("Iommu") == "Disabled"


@pytest.mark.parametrize("kind", ["ForceRestart", "GracefulRestart", "GracefulShutdown", "ForceOff"])
def test_what_needs_a_running_host_is_refused_when_it_is_off(kind: str) -> None:
    bmc = Client(tree(system={"PowerState": "Off"}))
    refused = bmc.reset(kind)
    assert refused.status == 409
    assert "the host is off" in refused.json["error"]["message"]
    assert power(bmc) == "Off"


def test_nmi_changes_nothing() -> None:
    bmc = Client(tree())
    bmc.stage(CHANGE)
    bmc.boot("Nmi")
    assert bmc.current("Iommu") == "Enabled"


@pytest.mark.parametrize("kind", ["PowerCycle", "forcerestart", None, 7])
def test_only_the_types_of_the_dump_are_taken(kind: object) -> None:
    assert "PowerCycle" not in TYPES
    refused = Client(tree()).post(RESET, {"ResetType": kind} if kind else {})
    assert refused.status == 400
    assert "ForceRestart" in refused.json["error"]["message"]


def test_types_in_the_action_info() -> None:
    info = f"{SYSTEM}/ResetActionInfo"
    actions = {"#ComputerSystem.Reset": {"target": RESET, "@Redfish.ActionInfo": info}}
    parameters = [{"Name": "ResetType", "AllowableValues": ["PowerCycle"]}]
    dump = {**tree(system={"Actions": actions}), info: {"@odata.id": info, "Parameters": parameters}}
    bmc = Client(dump)
    assert bmc.reset("ForceRestart").status == 400
    assert bmc.reset("PowerCycle").status == 204


def test_an_action_info_that_the_dump_lacks_is_made_up_and_says_so() -> None:
    info = f"{SYSTEM}/ResetActionInfo"
    actions = {"#ComputerSystem.Reset": {"target": RESET, "@Redfish.ActionInfo": info}}
    answer = Client(tree(system={"Actions": actions})).get(info).json
    assert "ForceRestart" in answer["Parameters"][0]["AllowableValues"]
    assert answer["Oem"]["Nodeprep"] == {"Simulated": True}


# ---- faults -----------------------------------------------------------------------------------------


def test_a_restart_that_hangs_needs_off_and_a_wait_and_on() -> None:
    bmc = Client(tree(), "restart_hangs")
    bmc.stage(CHANGE)
    bmc.reset("ForceRestart")
    bmc.clock.forward(1000)
    assert progress(bmc) == "SystemHardwareInitializationComplete"
    bmc.reset("ForceOff")
    bmc.clock.forward(1)
    assert bmc.reset("On").status == 204
    assert power(bmc) == "Off"
    bmc.clock.forward(2)
    bmc.boot("On")
    assert (power(bmc), bmc.current("Iommu")) == ("On", "Disabled")


def test_a_slow_off_refuses_on_until_it_is_off() -> None:
    bmc = Client(tree(), "off_slow")
    bmc.reset("ForceOff")
    assert power(bmc) == "PoweringOff"
    assert bmc.reset("On").status == 409
    bmc.clock.forward(3)
    assert power(bmc) == "Off"
    assert bmc.reset("On").status == 204


def test_an_on_too_soon_is_lost() -> None:
    bmc = Client(tree(), "on_lost")
    bmc.reset("ForceOff")
    assert bmc.reset("On").status == 204
    bmc.clock.forward(60)
    assert power(bmc) == "Off"
    bmc.reset("On")
    assert power(bmc) == "On"


def test_an_ignored_graceful_request_needs_force() -> None:
    bmc = Client(tree(), "graceful_ignored")
    assert bmc.reset("GracefulShutdown").status == 204
    bmc.clock.forward(1000)
    assert power(bmc) == "On"
    bmc.reset("ForceOff")
    assert power(bmc) == "Off"


def test_a_post_that_never_ends() -> None:
    bmc = Client(tree(), "post_hangs")
    bmc.stage(CHANGE)
    bmc.boot()
    bmc.clock.forward(10_000)
    assert (progress(bmc), bmc.current("Iommu")) == ("SystemHardwareInitializationComplete", "Enabled")


def test_a_slow_post() -> None:
    bmc = Client(tree(), "post_slow", post_s=1)
    bmc.reset()
    bmc.clock.forward(9)
    assert progress(bmc) != "OSRunning"
    bmc.clock.forward(2)
    assert progress(bmc) == "OSRunning"


def test_resets_refused() -> None:
    bmc = Client(tree(), "reset_refused")
    assert bmc.reset().status == 409
    assert not bmc.bmc.state.host.in_post


# ---- a host of one's own ----------------------------------------------------------------------------


class OwnHost:
    """Stands for a virtual machine."""

    power = "On"
    in_post = False
    boots_begun = 0
    boots_done = 0

    def reset(self, kind: str) -> None:
        self.kind = kind
        self.boots_begun += 1
        self.boots_done = self.boots_begun


def test_another_host_can_stand_behind_the_bmc() -> None:
    host, staged, promoted = OwnHost(), [], []
    bmc = Client(tree(), host=host, on_staged=staged.append, on_promoted=promoted.append)
    bmc.stage(CHANGE)
    assert (staged, promoted) == ([CHANGE], [])
    bmc.reset("ForceRestart")
    assert host.kind == "ForceRestart"
    assert bmc.current("Iommu") == "Disabled"
    assert promoted == [CHANGE]


def test_resets_of_the_usual_host_can_be_heard() -> None:
    heard: list[str] = []
    bmc = Client(tree(), on_reset=heard.append)
    bmc.reset("ForceRestart")
    bmc.reset("nonsense")
    bmc.post(f"{MANAGER}/Actions/Manager.Reset")
    assert heard == ["ForceRestart"]
    assert bmc.get(ROOT).status == 200
