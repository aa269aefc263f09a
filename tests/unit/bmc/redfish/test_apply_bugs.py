"""Public bugs of Redfish clients, by their number in the field notes, as far as apply is concerned."""

from __future__ import annotations

from pathlib import Path

import bios_trees
import httpx
import pytest
from bios_bench import Bench

from nodeprep.bmc.bios import parse_settings
from nodeprep.errors import PolicyError
from nodeprep.sim.bmc.messages import Message

SETTINGS = f"{bios_trees.BIOS}/Settings"
ON_RESET = {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    # Hundreds of runs: power cuts of the controller are not what is judged here.
    monkeypatch.setattr("os.fsync", lambda _: None)


def results(done: object) -> dict[str, str]:
    return {one.name: one.result for one in done.outcomes}  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["Settings", "SD", "Pending"])
def test_bug_01_without_settings_object_the_usual_places_are_tried(name: str, tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(settings=name), tmp_path, faults=("no_settings_object",))
    assert bench.apply("iommu=disabled").state == "applied"


@pytest.mark.parametrize("fault", ["etag_weak", "etag_strong", "etag_star"])
def test_bug_02_forms_of_the_etag_are_tried_in_their_order(fault: str, tmp_path: Path) -> None:
    bench = Bench(bios_trees.ami(), tmp_path, faults=(fault,))
    assert bench.apply("iommu=disabled").state == "applied"


@pytest.mark.parametrize("fault", ["etag_double", "etag_dummy"])
def test_bug_03_damaged_etags_are_mended_or_replaced(fault: str, tmp_path: Path) -> None:
    assert Bench(bios_trees.ami(), tmp_path, faults=(fault,)).apply("iommu=disabled").state == "applied"


def test_bug_04_dell_is_told_on_reset_and_makes_a_job(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path)
    done = bench.apply("iommu=disabled")
    assert bench.patches() == [{**ON_RESET, "Attributes": {"IommuSupport": "Disabled"}}]
    assert done.job
    assert bench.apply("iommu=disabled").state == "unchanged"


def test_bug_04_values_that_wait_without_a_job_get_one(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path)
    bench.bmc.state.settings.stage({"IommuSupport": "Disabled"}, 1)
    done = bench.apply("iommu=disabled")
    assert (done.state, bench.patches(), len(bench.bmc.state.jobs.all())) == ("applied", [], 1)


def test_bug_05_numbers_and_booleans_are_sent_as_such(tmp_path: Path) -> None:
    attributes = {"Socket0Pcie0AdvertiseACS": False, "Socket0Pcie1AdvertiseACS": False}
    bench = Bench(bios_trees.small("NVIDIA", attributes=attributes), tmp_path, faults=("no_registry",))
    bench.apply("acs=enabled")
    assert bench.patches() == [{"Attributes": dict.fromkeys(attributes, True)}]


def test_bug_06_a_staged_change_is_taken_back_though_nothing_differs_in_effect(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    bench.bmc.state.settings.stage({"IommuSupport": "Disabled"}, 1)
    done = bench.apply("iommu=enabled")
    assert bench.patches() == [{"Attributes": {"IommuSupport": "Enabled"}}]
    assert (done.state, bench.waiting) == ("applied", {})


@pytest.mark.parametrize("fault", ["job_fails", "job_errors"])
def test_bug_07_values_that_read_back_are_not_enough_when_the_job_fails(fault: str, tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path, faults=("early", fault))
    done = bench.apply("iommu=disabled")
    assert done.state in ("failed", "partial")
    assert "did not end well" in done.error


def test_bug_07_values_shown_early_are_not_taken_for_in_effect(tmp_path: Path) -> None:
    bench = Bench(bios_trees.ami(), tmp_path, faults=("early", "silent_drop"))
    assert results(bench.apply("iommu=disabled")) == {"IommuSupport": "lost"}


def test_bug_07_success_is_told_after_post_also_where_post_cannot_be_seen(tmp_path: Path) -> None:
    bench = Bench(bios_trees.ami(), tmp_path, faults=("early",), post_s=200.0)
    begun = bench.clock.time
    assert bench.apply("iommu=disabled").state == "applied"
    assert bench.clock.time - begun > 200.0
    assert bench.bmc.state.settings.current["IommuSupport"] == "Disabled"


def test_bug_08_an_apply_time_is_enough_and_no_job_is_posted(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path)
    bench.apply("iommu=disabled")
    assert [path for method, path, _ in bench.sent if method == "POST" and "Jobs" in path] == []


def test_bug_09_an_answer_that_names_no_job_is_followed_by_the_job_that_is_there(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path, faults=("job_unnamed",))
    done = bench.apply("iommu=disabled")
    assert (done.state, done.job.rsplit("/", 1)[-1]) == ("applied", bench.bmc.state.jobs.all()[0].id)


def test_bug_10_a_job_that_stays_new_is_not_reset_into_nothing(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path, faults=("job_stuck",))
    done = bench.apply("iommu=disabled")
    assert (done.state, bench.resets) == ("failed", [])
    assert "is not scheduled" in done.error


def test_bug_10_a_job_that_stays_new_is_waited_for_no_longer_than_the_deadline(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path, faults=("job_stuck",))
    begun = bench.clock.time
    done = bench.apply("iommu=disabled", deadline_s=10.0)
    assert (done.state, bench.resets) == ("failed", [])
    assert "is not scheduled after 10 s" in done.error
    assert bench.clock.time - begun < 20.0
    assert len([line for line in bench.said if "at most 10 s" in line]) == 1


def test_bug_10_a_new_job_is_waited_for(tmp_path: Path) -> None:
    assert Bench(bios_trees.dell(), tmp_path, faults=("job_slow",)).apply("iommu=disabled").state == "applied"


def test_bug_10_some_of_a_batch_are_refused_and_the_rest_takes_effect(tmp_path: Path) -> None:
    seen: list[str] = []

    def refuse_once(method: str, path: str) -> httpx.Response | None:
        if method != "PATCH" or seen:
            return None
        seen.append(path)
        message = {
            "MessageId": "IDRAC.2.8.SYS409",
            "Message": "Unable to complete the operation because the value is not valid.",
            "RelatedProperties": ["#/Attributes/PciSlot2LinkSpeed"],
            "Severity": "Warning",
        }
        return httpx.Response(400, json={"error": {"@Message.ExtendedInfo": [message]}})

    bench = Bench(bios_trees.small(), tmp_path, script=refuse_once)
    done = bench.apply("iommu=disabled", "pcie_link_gen=3")
    assert done.state == "partial"
    assert results(done) == {
        "IommuSupport": "taken",
        "PciSlot1LinkSpeed": "taken",
        "PciSlot2LinkSpeed": "refused",
    }
    assert "SYS409" in next(one.detail for one in done.outcomes if one.result == "refused")


def test_bug_11_not_ready_with_status_400_is_tried_again(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path, faults=("not_ready_400",))
    assert bench.apply("iommu=disabled").state == "applied"


def test_bug_12_a_committed_configuration_is_a_conflict_and_never_deleted(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path, faults=("job_foreign",))
    done = bench.apply("iommu=disabled")
    assert (done.state, bench.patches(), bench.resets) == ("failed", [], [])
    assert "JID_" in done.error
    assert len(bench.bmc.state.jobs.all()) == 1
    assert not [path for method, path in bench.requests if method == "DELETE" and "Jobs" in path]


def test_bug_13_jobs_of_other_kinds_must_end_first(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path, faults=("job_raid",))
    assert any("RAIDConfiguration" in reason for reason in bench.plan("iommu=disabled").blocked_by)
    done = bench.apply("iommu=disabled")
    assert (done.state, bench.patches(), bench.resets) == ("failed", [], [])


def test_bug_14_what_is_read_only_until_another_setting_changed_is_written_after_it(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    assert bench.plan("aspm=disabled").knobs[0].status == "refused"
    assert bench.apply("aspm=disabled", "xhci_handoff=disabled").state == "applied"


def test_bug_15_a_reset_is_needed_though_no_registry_says_so(tmp_path: Path) -> None:
    bench = Bench(bios_trees.hpe(), tmp_path)
    assert bench.plan("iommu=disabled").needs_reset
    assert bench.apply("iommu=disabled").resets == 1


def test_bug_16_a_200_for_what_post_then_refuses_is_no_success(tmp_path: Path) -> None:
    attributes = {**bios_trees.VALUES, "PciSlot3LinkSpeed": "Auto"}
    bench = Bench(bios_trees.hpe(attributes=attributes), tmp_path)
    bench.bmc.state.settings.validator.problem = (  # type: ignore[method-assign]
        lambda name, *_: _refused(name) if name == "IommuSupport" else None
    )
    done = bench.apply("iommu=disabled")
    assert results(done) == {"IommuSupport": "lost"}
    assert "BiosAttributeModificationNotAllowed" in done.outcomes[0].detail


def _refused(name: str) -> object:
    return Message("iLO.2.14.BiosAttributeModificationNotAllowed", f"{name} cannot be changed", (name,))


def test_bug_17_a_flat_bios_gets_a_flat_body(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small("HPE", flat=True, full=True), tmp_path)
    assert bench.apply("iommu=disabled").state == "applied"
    assert bench.patches() == [{"IommuSupport": "Disabled"}]


def test_bug_18_the_host_is_reset_and_not_the_bmc(tmp_path: Path) -> None:
    bench = Bench(bios_trees.hpe(), tmp_path)
    bench.apply("iommu=disabled")
    actions = {path for method, path, _ in bench.sent if method == "POST" and "Actions" in path}
    assert actions == {bios_trees.RESET}


def test_bug_19_the_settings_resource_is_written_and_not_bios(tmp_path: Path) -> None:
    bench = Bench(bios_trees.hpe(), tmp_path)
    bench.apply("iommu=disabled")
    assert {path for method, path, _ in bench.sent if method == "PATCH"} == {SETTINGS}


def test_bug_20_values_that_a_preset_drops_are_told_as_lost_with_the_preset(tmp_path: Path) -> None:
    attributes = {**bios_trees.VALUES, "OperatingModes_ChooseOperatingMode": "MaximumPerformance"}
    bench = Bench(bios_trees.lenovo(attributes=attributes), tmp_path, faults=("silent_drop",))
    done = bench.apply("iommu=disabled")
    assert results(done) == {"IommuSupport": "lost"}
    assert "set it to CustomMode" in done.outcomes[0].detail


def test_bug_21_an_apply_time_that_is_advertised_and_refused_is_left_out(tmp_path: Path) -> None:
    bench = Bench(bios_trees.lenovo(), tmp_path)
    assert bench.apply("iommu=disabled").state == "applied"
    values = {"Attributes": {"IommuSupport": "Disabled"}}
    assert bench.patches() == [{**ON_RESET, **values}, values]


@pytest.mark.parametrize("fault", ["settings_404", "settings_empty", "put_only"])
def test_bug_22_a_settings_resource_that_cannot_be_read_or_patched_is_written(
    fault: str, tmp_path: Path
) -> None:
    assert Bench(bios_trees.ami(), tmp_path, faults=(fault,)).apply("iommu=disabled").state == "applied"


def test_bug_23_actions_carry_no_if_match(tmp_path: Path) -> None:
    bench = Bench(bios_trees.ami(), tmp_path)
    bench.apply("iommu=disabled")
    posts = [
        headers
        for (method, _), headers in zip(bench.requests, bench.headers, strict=True)
        if method == "POST"
    ]
    assert len(posts) > 1
    assert not any("if-match" in headers for headers in posts)


def test_bug_24_if_match_is_that_of_the_settings_resource(tmp_path: Path) -> None:
    bench = Bench(bios_trees.ami(), tmp_path)
    tag = bench.bmc.state.etag(f"{bios_trees.BIOS}/SD")
    bench.apply("iommu=disabled")
    sent = [headers["if-match"] for headers in bench.headers if "if-match" in headers]
    assert sent[0].removeprefix("W/") == tag.removeprefix("W/")


def test_bug_24_a_change_by_somebody_else_is_looked_at_before_writing_again(tmp_path: Path) -> None:
    bench = Bench(bios_trees.ami(), tmp_path, faults=("etag_race",))
    assert bench.apply("iommu=disabled").state == "applied"


@pytest.mark.parametrize("fault", ["", "licence", "job_fails", "post_hangs"])
def test_bug_25_no_session_stays_however_it_ends(fault: str, tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path, faults=(fault,) if fault else ())
    bench.apply("iommu=disabled", deadline_s=300.0)
    assert bench.bmc.state.sessions.ids() == []


def test_bug_26_sessions_that_expire_on_the_way_are_opened_again(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path, faults=("session_expiry",))
    assert bench.apply("iommu=disabled").state == "applied"


def test_bug_28_an_attribute_this_machine_has_not_is_never_sent(tmp_path: Path) -> None:
    attributes = {name: value for name, value in bios_trees.VALUES.items() if name != "XhciHandOff"}
    bench = Bench(bios_trees.ami(attributes=attributes), tmp_path)
    done = bench.apply("xhci_handoff=disabled", "iommu=disabled")
    assert [knob.status for knob in done.before.knobs] == ["unsupported", "change"]
    assert bench.patches() == [{"Attributes": {"IommuSupport": "Disabled"}}]
    assert done.after is not None
    assert not done.after.in_desired_state


@pytest.mark.parametrize(
    ("fault", "words"),
    [("licence", "licence"), ("lockdown", "lockdown"), ("bios_password", "setup password")],
)
def test_bug_29_licence_lockdown_and_password_are_told_apart_and_final(
    fault: str, words: str, tmp_path: Path
) -> None:
    bench = Bench(bios_trees.small("Supermicro", settings="SD"), tmp_path, faults=(fault,))
    done = bench.apply("iommu=disabled")
    assert (done.state, bench.resets) == ("failed", [])
    assert words in done.hint
    assert len(bench.patches()) == 1
    assert results(done) == {"IommuSupport": "unwritten"}


def test_bug_30_x11_takes_a_flat_body_on_bios(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small("Supermicro", settings=None, flat=True), tmp_path)
    done = bench.apply("iommu=disabled")
    assert (done.state, bench.current["IommuSupport"]) == ("applied", "Disabled")


def test_bug_31_values_that_read_null_are_told_as_unread_and_never_as_taken(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path, faults=("null_attributes",))
    done = bench.apply("iommu=disabled")
    assert "taken" not in results(done).values()
    assert done.state != "applied"


def test_bug_34_what_the_bmc_says_is_not_what_the_host_runs_with(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    assert any("seen on the host" in note for note in bench.apply("iommu=disabled").notes)
    assert not any("seen on the host" in note for note in bench.apply("iommu=disabled").notes)
    locked = Bench(bios_trees.small(), tmp_path / "locked", faults=("lockdown",))
    done = locked.apply("iommu=disabled")
    assert done.state == "failed"
    assert not any("seen on the host" in note for note in done.notes)


def test_bug_35_the_host_is_switched_off_and_on_where_a_restart_hangs(tmp_path: Path) -> None:
    bench = Bench(bios_trees.lenovo(), tmp_path, faults=("restart_hangs", "graceful_ignored"))
    assert bench.apply("iommu=disabled").state == "applied"
    assert "ForceRestart" not in bench.resets


def test_bug_35_a_reset_whose_answer_is_lost_is_not_sent_twice(tmp_path: Path) -> None:
    lost: list[str] = []

    def lose(method: str, path: str) -> httpx.Response | None:
        if method == "POST" and path == bios_trees.RESET and not lost:
            lost.append(path)
            bench.bmc.state.host.reset("GracefulShutdown")
            raise httpx.ReadError("RST")
        return None

    bench = Bench(bios_trees.hpe(), tmp_path, script=lose)
    assert bench.apply("iommu=disabled").state == "applied"
    assert bench.resets == ["GracefulShutdown", "On"]


def test_bug_35_a_lockdown_that_can_be_read_blocks_before_anything_is_written(tmp_path: Path) -> None:
    dump = bios_trees.dell()
    dump.resources[f"{bios_trees.MANAGER}/Attributes"] = {
        "Attributes": {"Lockdown.1.SystemLockdown": "Enabled"}
    }
    bench = Bench(dump, tmp_path)
    assert "locked down" in bench.plan("iommu=disabled").blocked_by[0]
    done = bench.apply("iommu=disabled")
    assert (done.state, bench.patches(), done.restore_file) == ("failed", [], "")


def test_unknown_knobs_never_reach_a_bmc() -> None:
    with pytest.raises(PolicyError):
        parse_settings(["pcie_gen=4"])
