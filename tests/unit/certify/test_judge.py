"""The verdict fails closed: what was not asked, answered and good does not certify."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from nodeprep.certify.judge import Judgement, conclude, judge
from nodeprep.checks import Context, all_checks
from nodeprep.model.policy import Waiver
from nodeprep.model.result import CheckResult

WAIVER = Waiver(check="a", owner="ops", until=date(2027, 1, 31), why="slot is x8")


def result(status: Any, check: str = "a", reason: str = "because", subject: str = "node") -> CheckResult:
    return CheckResult(id=check, subject=subject, status=status, reason=reason)


def conclusion(context: Context, *results: CheckResult, expected: Any = None, load: bool = True) -> Judgement:
    ids = {each.id for each in results} if expected is None else expected
    return conclude(context, results, expected=ids, under_load=load)


def with_waivers(context: Context, *waivers: Waiver, expired: tuple[Waiver, ...] = ()) -> Context:
    return replace(context, spec=replace(context.spec, waivers=waivers, expired_waivers=expired))


def test_a_whole_and_good_run_certifies(context: Context) -> None:
    judgement = conclusion(context, result("PASS"), result("SKIPPED", "b", "no NVLink on this part"))
    assert (judgement.verdict, judgement.reasons, judgement.simulated) == ("certified", (), False)


def test_the_rule_over_every_set_of_four_statuses(context: Context) -> None:
    for statuses in itertools.product(("PASS", "FAIL", "SKIPPED", "ERROR"), repeat=4):
        results = [result(status, f"check{index}") for index, status in enumerate(statuses)]
        verdict = conclusion(context, *results).verdict
        if "FAIL" in statuses:
            assert verdict == "rejected"
        elif "ERROR" in statuses or "PASS" not in statuses:
            assert verdict == "inconclusive"
        else:
            assert verdict == "certified"


def test_no_random_set_with_an_unwaived_fail_or_error_certifies(context: Context) -> None:
    dice = random.Random(20261130)  # noqa: S311
    for _ in range(3000):
        results = tuple(
            result(
                dice.choice(("PASS", "PASS", "PASS", "FAIL", "SKIPPED", "ERROR")),
                dice.choice("abcdef"),
                dice.choice(("because", "")),
                dice.choice(("node", "0000:17:00.0")),
            )
            for _ in range(dice.randrange(8))
        )
        waived = set(dice.sample("abcdef", dice.randrange(3)))
        waivers = [
            replace(WAIVER, check=check, host=dice.choice(("*", "node0?", "other"))) for check in waived
        ]
        answered_for = {waiver.check for waiver in waivers if waiver.host != "other"}
        judgement = conclusion(with_waivers(context, *waivers), *results, expected="abc")
        open_ones = [
            each for each in results if each.status in ("FAIL", "ERROR") and each.id not in answered_for
        ]
        silent = set("abc") - {each.id for each in results}
        if open_ones or silent:
            assert judgement.verdict != "certified"
        if judgement.verdict == "certified":
            assert any(each.status == "PASS" for each in judgement.checks)
            assert judgement.reasons == ()
        else:
            assert judgement.reasons


def test_a_check_that_gave_no_result_is_an_error(context: Context) -> None:
    judgement = conclusion(context, result("PASS"), expected=["a", "b"])
    assert judgement.verdict == "inconclusive"
    assert judgement.reasons == ("b: the check gave no result",)


def test_no_checks_do_not_certify(context: Context) -> None:
    assert conclusion(context).verdict == "inconclusive"
    assert conclusion(context, load=False).reasons == ("no check ran",)


def test_skipped_needs_a_reason(context: Context) -> None:
    judgement = conclusion(context, result("PASS", "b"), result("SKIPPED", reason=" "))
    assert judgement.reasons == ("a: skipped without a reason",)


@pytest.mark.parametrize("status", ["FAIL", "ERROR"])
def test_a_waiver_turns_it_into_skipped_and_is_shown(context: Context, status: Any) -> None:
    judgement = conclusion(with_waivers(context, WAIVER), result(status), result("PASS", "b"))
    assert judgement.verdict == "certified"
    assert judgement.checks[0] == replace(result("SKIPPED"), waiver=WAIVER, waived_status=status)


def test_a_waiver_of_another_host_or_check_does_not_count(context: Context) -> None:
    for waiver in (replace(WAIVER, host="node08"), replace(WAIVER, check="b")):
        judgement = conclusion(with_waivers(context, waiver), result("FAIL"), result("PASS", "c"))
        assert judgement.verdict == "rejected"


def test_a_waiver_leaves_what_passes_alone(context: Context) -> None:
    judgement = conclusion(with_waivers(context, WAIVER), result("PASS"))
    assert judgement.checks[0].waiver is None


def test_everything_waived_proves_nothing(context: Context) -> None:
    judgement = conclusion(with_waivers(context, WAIVER), result("FAIL"))
    assert judgement.verdict == "inconclusive"
    assert judgement.reasons == ("no check passed: nothing was proven",)


@pytest.mark.parametrize(
    ("waiver", "covers"),
    [
        (replace(WAIVER, subject="0000:17:*"), True),
        (replace(WAIVER, subject="0000:3b:00.0"), False),
        (replace(WAIVER, subject="node"), False),
        (replace(WAIVER, status="FAIL"), True),
        (replace(WAIVER, status="ERROR"), False),
    ],
)
def test_a_waiver_can_be_for_one_subject_and_one_status(
    context: Context, waiver: Waiver, covers: bool
) -> None:
    results = (result("FAIL", subject="0000:17:00.0"), result("PASS", "b"))
    judgement = conclusion(with_waivers(context, waiver), *results)
    assert judgement.verdict == ("certified" if covers else "rejected")
    expired = conclusion(with_waivers(context, expired=(waiver,)), *results)
    assert any("was not applied" in reason for reason in expired.reasons) == covers


def test_a_second_waiver_covers_what_the_first_does_not(context: Context) -> None:
    waivers = (replace(WAIVER, subject="0000:17:00.0"), replace(WAIVER, subject="0000:3b:00.0", owner="lab"))
    results = [result("FAIL", subject=subject) for subject in ("0000:17:00.0", "0000:3b:00.0")]
    judgement = conclusion(with_waivers(context, *waivers), *results, result("PASS", "b"))
    assert [each.waiver and each.waiver.owner for each in judgement.checks] == ["ops", "lab", None]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"asked_level": "extended"}, "the probe ran at level quick, and extended was asked for"),
        ({"asked_workload": "other"}, "the probe ran workload vit-g, and other was asked for"),
    ],
)
def test_a_probe_of_another_level_or_workload_does_not_certify(
    context: Context, asked: dict[str, str], says: str
) -> None:
    judgement = conclude(context, [result("PASS")], expected=["a"], under_load=True, **asked)  # type: ignore[arg-type]
    assert (judgement.verdict, judgement.reasons) == ("inconclusive", (says,))
    whole = judge(context.spec, context.before, after=read_on(context), probe=context.probe, **asked)  # type: ignore[arg-type]
    assert says in whole.reasons


def test_a_probe_as_asked_certifies(context: Context) -> None:
    judged = conclude(
        context,
        [result("PASS")],
        expected=["a"],
        under_load=True,
        asked_level="quick",
        asked_workload="vit-g",
    )
    assert judged.verdict == "certified"


def test_an_expired_waiver_is_told_and_not_applied(context: Context) -> None:
    judgement = conclusion(with_waivers(context, expired=(WAIVER,)), result("FAIL"), result("PASS", "b"))
    assert judgement.verdict == "rejected"
    assert judgement.reasons == (
        "a: because",
        "a: the waiver by ops ended on 2027-01-31 and was not applied",
    )


def test_an_expired_waiver_nobody_needs_does_not_matter(context: Context) -> None:
    assert conclusion(with_waivers(context, expired=(WAIVER,)), result("PASS")).verdict == "certified"


def test_the_subject_is_named_in_the_reason(context: Context) -> None:
    judgement = conclusion(context, result("FAIL", subject="0000:17:00.0"))
    assert judgement.reasons == ("a 0000:17:00.0: because", "no check passed: nothing was proven")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"/injected": "flip:block=7,bit=0"}, "a fault was injected on purpose (flip:block=7,bit=0)"),
        ({"/state": "interrupted", "/error": "SIGTERM"}, "the probe was interrupted: SIGTERM"),
        ({"/state": "failed", "/error": ""}, "the probe was failed: no reason given"),
        (
            {"/gpus/1/state": "failed", "/gpus/1/error": "worker died"},
            "GPU 0000:3b:00.0 was failed: worker died",
        ),
        ({"/gpus/1/state": "skipped"}, "GPU 0000:3b:00.0 was skipped"),
        ({"/gpus/1/pci_address": "0000:17:00.0"}, "GPU 0000:3b:00.0 was not loaded"),
        ({"/gpus": []}, "the probe loaded no GPU"),
        (
            {"/gpus/1/uuid": "GPU-of-node08"},
            "the probe loaded another GPU at 0000:3b:00.0: GPU-of-node08, not "
            "GPU-0a1b2c3d-1b0c-40a2-388f-cb077f563275",
        ),
        ({"/gpus/1/uuid": ""}, "the probe loaded another GPU at 0000:3b:00.0: of no UUID"),
        (
            {"/gpus/1/pci_address": "0000:99:00.0"},
            "the probe loaded GPU 0000:99:00.0, which NVML did not list before",
        ),
    ],
)
def test_a_probe_that_was_not_whole_does_not_certify(
    context: Context, probe: Any, changes: dict[str, Any], says: str
) -> None:
    judgement = conclusion(replace(context, probe=probe(changes)), result("PASS"))
    assert judgement.verdict == "inconclusive"
    assert any(says in reason for reason in judgement.reasons), judgement.reasons


def test_no_waiver_covers_an_injected_fault(context: Context, probe: Any) -> None:
    injected = replace(with_waivers(context, WAIVER), probe=probe({"/injected": "flip:block=7,bit=0"}))
    assert conclusion(injected, result("FAIL"), result("PASS", "b")).verdict == "inconclusive"


def test_an_injected_fault_that_was_found_is_rejected(context: Context, probe: Any) -> None:
    injected = replace(context, probe=probe({"/injected": "flip:block=7,bit=0"}))
    assert conclusion(injected, result("FAIL")).verdict == "rejected"


def test_without_a_probe_there_is_no_certificate(context: Context) -> None:
    absent = replace(context, probe=None, probe_absent_reason="torch is missing")
    judgement = conclusion(absent, result("PASS"))
    assert judgement.verdict == "inconclusive"
    assert judgement.reasons == ("the node was not loaded: torch is missing",)


def test_effect_checks_alone_need_no_probe(context: Context) -> None:
    absent = replace(context, probe=None, after=None)
    assert conclusion(absent, result("PASS"), load=False).verdict == "certified"


def test_without_facts_after_the_load_there_is_no_certificate(context: Context) -> None:
    judgement = conclusion(replace(context, after=None), result("PASS"))
    assert judgement.reasons == ("the node was not observed after the load",)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"/boot/boot_id": {"state": "ok", "value": "another"}}, "the node rebooted during the run"),
        ({"/boot/boot_id": {"state": "error", "detail": "x"}}, "whether the node rebooted"),
        (
            {"/dmi/board_serial": {"state": "ok", "value": "BSN-0008"}},
            "another machine answered: the board serial changed during the run, from BSN-0007 to BSN-0008",
        ),
        ({"/dmi/product_uuid": {"state": "ok", "value": "u"}}, "the product UUID changed during the run"),
        ({"/dmi/product_serial": {"state": "ok", "value": "s"}}, "the product serial changed during the run"),
        (
            {"/nvml/gpus/value/1/uuid": {"state": "ok", "value": "GPU-other"}},
            "the GPUs changed during the run: gone GPU-0a1b2c3d-1b0c-40a2-388f-cb077f563275, new GPU-other",
        ),
        (
            {"/pci/devices/value/0/link/sta_width_lanes": {"state": "ok", "value": 8}},
            "pci.0000:16:01.0.link_lanes changed during the run, from 16 to 8",
        ),
        (
            {"/nvml/gpus/value/0/power/limit_w": {"state": "ok", "value": 700.0}},
            "gpu.0000:17:00.0.power_limit_w changed during the run, from 650 to 700",
        ),
        ({"/nvml/gpus": {"state": "error", "detail": "hung"}}, "the GPUs cannot be told from others: hung"),
    ],
)
def test_a_node_that_changed_under_way_does_not_certify(
    context: Context, facts: Any, changes: dict[str, Any], says: str
) -> None:
    judgement = conclusion(replace(context, after=facts(changes)), result("PASS"))
    assert judgement.verdict == "inconclusive"
    assert any(says in reason for reason in judgement.reasons), judgement.reasons


NO = {"state": "not_supported", "detail": "the machine has no DMI identity"}
DENIED = {"state": "error", "detail": "Permission denied"}
SERIALS = ("product_serial", "product_uuid", "board_serial")


def test_a_machine_whose_serials_cannot_be_read_does_not_certify(context: Context, facts: Any) -> None:
    unnamed = facts({f"/dmi/{name}": DENIED for name in SERIALS})
    judgement = conclusion(replace(context, before=unnamed), result("PASS"))
    assert judgement.verdict == "inconclusive"
    assert "cannot be told from another" in judgement.reasons[0]
    assert "as root" in judgement.reasons[0]


def test_placeholders_do_not_stand_in_for_unreadable_serials(context: Context, facts: Any) -> None:
    unnamed = facts(
        {
            "/dmi/product_serial": {"state": "ok", "value": "To Be Filled By O.E.M."},
            "/dmi/product_uuid": DENIED,
            "/dmi/board_serial": {"state": "ok", "value": "00000000"},
        }
    )
    assert conclusion(replace(context, before=unnamed), result("PASS")).verdict == "inconclusive"


def test_a_machine_without_smbios_is_told_by_its_gpus(context: Context, facts: Any) -> None:
    guest = facts({f"/dmi/{name}": NO for name in SERIALS})
    assert conclusion(replace(context, before=guest, after=guest), result("PASS")).verdict == "certified"


def test_a_gpu_without_a_uuid_does_not_certify(context: Context, facts: Any) -> None:
    unnamed = facts({"/nvml/gpus/value/1/uuid": {"state": "error", "detail": "GPU is lost"}})
    judgement = conclusion(replace(context, before=unnamed, after=unnamed), result("PASS"))
    assert judgement.reasons == (
        "GPU 0000:3b:00.0 cannot be told from another: UUID unreadable: GPU is lost",
    )


def test_a_node_without_gpus_does_not_certify(context: Context, facts: Any) -> None:
    empty = facts({"/nvml/gpus/value": []})
    judgement = conclusion(replace(context, before=empty, after=empty), result("PASS"))
    assert judgement.verdict == "inconclusive"


def test_what_a_healthy_node_does_under_load_is_no_change(context: Context, facts: Any) -> None:
    after = facts(
        {
            "/pci/devices/value/0/link/sta_speed_gts": {"state": "ok", "value": 2.5},
            "/nvml/gpus/value/0/ecc/volatile_corrected": {"state": "ok", "value": 4},
            "/nvml/gpus/value/0/temperature/gpu_c": {"state": "ok", "value": 71},
            "/memory/total_bytes": {"state": "ok", "value": 2163000000000 - 600 * 1024**2},
        }
    )
    assert conclusion(replace(context, after=after), result("PASS")).verdict == "certified"


@pytest.mark.parametrize("part", ["before", "after", "probe", "backend"])
def test_one_simulated_part_makes_all_simulated(context: Context, facts: Any, probe: Any, part: str) -> None:
    changed = {
        "before": lambda: replace(context, before=facts({"/simulated": True})),
        "after": lambda: replace(context, after=facts({"/simulated": True})),
        "probe": lambda: replace(context, probe=probe({"/simulated": True})),
        "backend": lambda: replace(context, probe=probe({"/backend": "numpy"})),
    }[part]()
    judgement = conclusion(changed, result("PASS"))
    assert (judgement.verdict, judgement.simulated) == ("certified", True)


def read_on(context: Context) -> Any:
    """Facts from after the load, whose kernel log reads on from where the first look ended."""
    assert context.after is not None
    log = replace(context.after.kernel_log, since=context.before.log_cursor)
    return replace(context.after, kernel_log=log)


def test_a_healthy_node_is_certified_by_all_checks(context: Context) -> None:
    judgement = judge(context.spec, context.before, after=read_on(context), probe=context.probe)
    assert judgement.reasons == ()
    assert judgement.verdict == "certified"
    assert {each.id for each in judgement.checks} == set(all_checks())


def test_the_effect_checks_alone(context: Context) -> None:
    judgement = judge(context.spec, context.before, phases=("static",))
    assert judgement.verdict == "certified"
    static = {check.id for check in all_checks().values() if check.phase == "static"}
    assert {each.id for each in judgement.checks} == static


def test_a_node_whose_driver_hangs_is_inconclusive(context: Context, facts: Any) -> None:
    hung = facts({"/nvml/gpus": {"state": "error", "detail": "NVML hung in nvmlInit_v2"}})
    judgement = judge(context.spec, hung, probe_absent_reason="the GPUs could not be read: NVML hung")
    assert judgement.verdict == "inconclusive"
    assert any("NVML hung" in reason for reason in judgement.reasons)


def test_a_found_flip_is_rejected_by_all_checks(context: Context, probe: Any) -> None:
    mismatch = {"iteration": 3, "block": 7, "expected": "aa", "got": "ab", "confirmed": True}
    found = probe(
        {
            "/gpus/0/digests/value/mismatch_count": 1,
            "/gpus/0/digests/value/mismatches": [mismatch],
        }
    )
    judgement = judge(context.spec, context.before, after=read_on(context), probe=found)
    assert judgement.verdict == "rejected"
    assert judgement.reasons[0].startswith("probe_bitwise 0000:17:00.0: ")


def test_the_first_reason_is_the_cause_and_not_its_consequence(context: Context) -> None:
    results = [
        result("FAIL", "copies", subject="gpu1"),
        result("FAIL", "copies", subject="gpu2"),
        result("FAIL", "width", subject="gpu1"),
    ]
    judged = conclude(context, results, expected=(), under_load=False, explains={"width": ("copies",)})
    assert [reason.split(":")[0] for reason in judged.reasons[:3]] == [
        "copies gpu2",
        "width gpu1",
        "copies gpu1",
    ]
