"""The check table and the table across the rack."""

from __future__ import annotations

from fixture_run import WAIVER, address, finding, healthy, results, run_view

from nodeprep.reports import _checks


def test_worst_comes_first_whatever_the_order_of_the_results():
    rows = _checks.rows(
        results(
            2,
            finding("z_skip", "node", "SKIPPED", "no fabric"),
            finding("a_error", "node", "ERROR", "unreadable"),
            finding("b_fail", "node", "FAIL", "too few"),
            finding("c_waived", "node", "SKIPPED", "off", waiver=WAIVER, waived_status="FAIL"),
        ),
        {},
    )
    kinds = [row.kind for row in rows]
    assert kinds[:4] == ["fail", "error", "waived", "skipped"]
    assert set(kinds[4:]) == {"pass"}


def test_passes_of_one_check_share_a_line_and_keep_every_figure_and_reason():
    rows = _checks.rows(results(3), {"temperature_margin_load": "temperature margin"})
    (row,) = [row for row in rows if row.id == "temperature_margin_load"]
    assert row.title == "temperature margin"
    assert row.measured == "19 … 21"
    assert [(each.address, each.measured) for each in row.subjects] == [
        (address(0), "19"),
        (address(1), "20"),
        (address(2), "21"),
    ]
    assert all(each.reason.startswith(each.address) for each in row.subjects)


def test_where_limits_differ_each_subject_tells_its_own():
    (row,) = _checks.rows(
        [
            finding("power_limit", address(gpu), "PASS", "as wanted", measured=watts, limit=watts, unit="W")
            for gpu, watts in enumerate((651.0, 465.0))
        ],
        {},
    )
    assert row.limit == "each its own"
    assert [(each.measured, each.limit) for each in row.subjects] == [("651", "651"), ("465", "465")]


def test_skips_for_different_reasons_do_not_share_a_line():
    rows = _checks.rows(
        [
            finding("fabric", address(gpu), "SKIPPED", why)
            for gpu, why in enumerate(("no fabric", "no figure"))
        ],
        {},
    )
    assert [row.reason for row in rows] == ["no fabric", "no figure"]


def test_fails_and_errors_always_stand_alone():
    rows = _checks.rows(
        [
            finding("ecc_on", address(gpu), status, "same reason")
            for status in ("FAIL", "ERROR")
            for gpu in (0, 1)
        ],
        {},
    )
    assert [(row.kind, len(row.subjects)) for row in rows] == [
        ("fail", 1),
        ("fail", 1),
        ("error", 1),
        ("error", 1),
    ]


def test_a_waiver_tells_who_until_when_why_and_what_it_covers():
    (row,) = _checks.rows(
        [finding("persistence", "node", "SKIPPED", "off", waiver=WAIVER, waived_status="FAIL")], {}
    )
    assert row.word == "WAIVED"
    assert (
        row.waiver
        == "was FAIL; ops@example.org answers for it until 2027-01-31: daemon arrives with image 14"
    )


def test_the_rack_table_puts_what_fails_on_most_nodes_first():
    nodes = run_view(gpus=7).nodes
    table = _checks.matrix(nodes, {})
    assert [row.fails for row in table] == sorted((row.fails for row in table), reverse=True)
    presence = next(row for row in table if row.id == "gpu_presence")
    assert (presence.fails, presence.errors) == (1, 1)
    assert [cell.kind for cell in presence.cells] == [
        "pass",
        "pass",
        "fail",
        "pass",
        "pass",
        "error",
        None,
        None,
        None,
    ]
    assert presence.cells[2].title.startswith("FAIL node: ")


def test_a_cell_counts_the_subjects_that_fail():
    bad = [finding("ecc_on", address(gpu), "FAIL", "off") for gpu in range(3)]
    view = healthy("gpu01", 0, 4)
    changed = _with_checks(view, results(4, *bad))
    row = next(row for row in _checks.matrix([changed], {}) if row.id == "ecc_on")
    assert (row.cells[0].kind, row.cells[0].text) == ("fail", "3")


def _with_checks(view, checks):
    from dataclasses import replace

    return replace(view, certificate=replace(view.certificate, checks=checks))
