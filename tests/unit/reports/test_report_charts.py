"""Telemetry on its way to the charts: nothing of interest may get lost, nothing may be invented."""

from __future__ import annotations

import json
from dataclasses import replace

from fixture_run import address, healthy, node, results, run_view

from nodeprep.model.probe import Phase
from nodeprep.model.run import HostRecord, NodeView, TelemetrySeries
from nodeprep.reports import _charts, _gpus


def charts(view, max_points=600):
    return _charts.node_charts(view, _gpus.marks(view), max_points)


def unpack(packed, scale=1):
    values, last = [], 0
    for step in packed:
        last += step or 0
        values.append(None if step is None else last / scale)
    return values


def series(gpu, times, **columns):
    return TelemetrySeries(
        gpu=address(gpu),
        simulated=True,
        period_ms=500.0,
        columns={"t_s": tuple(times), **{name: tuple(values) for name, values in columns.items()}},
    )


def telemetry_only(*all_series):
    return NodeView(record=HostRecord(host="a"), telemetry=all_series)


def test_thinning_keeps_every_peak_in_its_place():
    times = [index * 0.5 for index in range(10_000)]
    column = [100.0] * 10_000
    column[4321], column[4322] = 974.0, 3.0
    edges = [times[-1] * index / 300 for index in range(301)]
    thinned = _charts.thin(times, column, edges)
    assert len(thinned) == 600
    assert (max(thinned), min(thinned)) == (974.0, 3.0)
    place = thinned.index(974.0)
    assert place // 2 == int(times[4321] / (times[-1] / 300))
    assert thinned[place + 1] == 3.0, "the order within a bucket is the order of the samples"


def test_thinning_leaves_a_gap_where_every_sample_failed():
    thinned = _charts.thin([0, 1, 2, 3], [1.0, None, None, 4.0], [0.0, 1.0, 2.0, 3.0])
    assert thinned == [1.0, 1.0, None, None, 4.0, 4.0]


def test_what_the_page_unpacks_is_what_was_measured():
    view = telemetry_only(
        series(
            0,
            [0.0, 0.5, 1.0, 1.5],
            power_w=[100.2, None, float("nan"), 640.0],
            pcie_rx_gbps=[0.12, 24.26, 1, 2],
        )
    )
    data = charts(view).data
    assert unpack(data["times"][0], 1000) == [0.0, 0.5, 1.0, 1.5]
    assert unpack(data["charts"]["power_w"]["series"][0]) == [100, None, None, 640]
    assert unpack(data["charts"]["pcie_rx_gbps"]["series"][0], 10) == [0.1, 24.3, 1, 2]


def test_short_runs_are_not_thinned_and_long_ones_say_so():
    assert charts(healthy("a", 0, 2, samples=150)).thinned == ""
    long = charts(healthy("a", 0, 2, samples=5000))
    assert long.thinned == "5000 samples a series, drawn as 600 points that keep the extremes"
    assert all(len(points) == 600 for chart in long.data["charts"].values() for points in chart["series"])


def test_gpus_sampled_at_the_same_times_share_them():
    same = charts(
        telemetry_only(*(series(gpu, [0.0 + gpu / 50, 1.0 + gpu / 50], power_w=[1, 2]) for gpu in range(3)))
    )
    assert len(same.data["times"]) == 1
    apart = charts(telemetry_only(*(series(gpu, [0.0 + gpu, 1.0 + gpu], power_w=[1, 2]) for gpu in range(3))))
    assert len(apart.data["times"]) == 3


def test_samples_without_a_time_are_left_out_of_every_column():
    data = charts(telemetry_only(series(0, [0.0, None, 2.0], power_w=[1.0, 2.0, 3.0]))).data
    assert unpack(data["charts"]["power_w"]["series"][0]) == [1, 3]


def test_a_column_shorter_than_the_others_ends_in_a_gap():
    data = charts(telemetry_only(series(0, [0.0, 1.0, 2.0], power_w=[1.0]))).data
    assert unpack(data["charts"]["power_w"]["series"][0]) == [1, None, None]


def test_the_slow_gpu_is_the_odd_one_out_in_what_it_is_slow_in():
    found = charts(node("a", 0, 8, results(8), slow=4))
    odd = {name: chart["odd"] for name, chart in found.data["charts"].items()}
    assert odd == {
        "power_w": [4],
        "temperature_c": [4],
        "sm_mhz": [4],
        "pcie_rx_gbps": [],
        "pcie_tx_gbps": [],
    }
    power = next(chart for chart in found.charts if chart.column == "power_w")
    assert power.odd == ("5b:00.0: 500 W, median of the node 640 W",)


def test_ordinary_scatter_has_no_odd_one():
    found = charts(node("a", 0, 8, results(8)))
    assert all(chart["odd"] == [] for chart in found.data["charts"].values())


def flat(gpu, watts, samples=5):
    return series(gpu, [float(at) for at in range(samples)], power_w=[watts] * samples)


def test_two_gpus_have_no_odd_one_three_can():
    two = charts(telemetry_only(flat(0, 100.0), flat(1, 600.0)))
    three = charts(telemetry_only(flat(0, 100.0), flat(1, 600.0), flat(2, 600.0)))
    assert two.data["charts"]["power_w"]["odd"] == []
    assert three.data["charts"]["power_w"]["odd"] == [0]


def test_a_gpu_that_was_hardly_sampled_is_not_called_odd():
    view = telemetry_only(flat(0, 100.0, samples=2), *(flat(gpu, 600.0) for gpu in range(1, 5)))
    assert charts(view).data["charts"]["power_w"]["odd"] == []


def test_a_slow_ramp_is_not_an_odd_gpu():
    ramp = series(0, [0.0, 1.0, 2.0, 3.0, 4.0], power_w=[70.0, 350.0, 600.0, 601.0, 600.0])
    view = telemetry_only(ramp, *(flat(gpu, 600.0) for gpu in range(1, 5)))
    assert charts(view).data["charts"]["power_w"]["odd"] == []


def test_link_width_is_drawn_only_where_it_says_something():
    assert "link_width_lanes" not in charts(node("a", 0, 8, results(8))).data["charts"]
    narrow = charts(node("a", 0, 8, results(8), narrow=2)).data["charts"]["link_width_lanes"]
    assert (narrow["odd"], narrow["step"]) == ([2], True)


def test_limits_are_lines():
    data = charts(node("a", 0, 2, results(2))).data["charts"]
    assert data["power_w"]["lines"] == [[651.0, "enforced limit 651 W"]]
    assert data["temperature_c"]["lines"] == [[87.0, "slowdown 87 °C"]]


def late_by(view, gpu, seconds):
    shifted = tuple(
        replace(phase, start_s=phase.start_s + seconds, end_s=phase.end_s + seconds)
        for phase in view.telemetry[gpu].phases
    )
    telemetry = list(view.telemetry)
    telemetry[gpu] = replace(telemetry[gpu], phases=shifted)
    return replace(view, telemetry=tuple(telemetry))


def test_gpus_in_step_share_their_phases():
    found = charts(late_by(node("a", 0, 3, results(3)), 1, 1.0))
    assert found.data["phases"][0] == ("warm-up", 0.0, 8.0)
    assert found.data["own_phases"] == []
    assert found.phases.endswith("compute 14–68 s, cool-down 68–75 s")


def test_a_gpu_out_of_step_keeps_its_own_phases():
    found = charts(late_by(node("a", 0, 3, results(3)), 1, 20.0))
    assert found.staggered
    assert [own[2] for own in found.data["own_phases"]] == [
        ("compute", 14.0, 68.0),
        ("compute", 34.0, 88.0),
        ("compute", 14.0, 68.0),
    ]


def test_a_gpu_is_compared_in_its_own_compute_phase():
    late = 40
    times = [float(at) for at in range(100)]

    def one(gpu, start):
        watts = [600.0 if start <= at < start + 20 else 80.0 for at in times]
        return replace(
            series(gpu, times, power_w=watts),
            phases=(Phase(name="compute", start_s=start, end_s=start + 19),),
        )

    found = charts(telemetry_only(*(one(gpu, 10 if gpu else late) for gpu in range(4))))
    assert found.data["charts"]["power_w"]["odd"] == []
    assert "median during compute 600 to 600 W" in found.charts[0].summary


def test_phases_come_from_the_probe_result_when_the_series_has_none():
    view = node("a", 0, 2, results(2))
    view = replace(view, telemetry=tuple(replace(each, phases=()) for each in view.telemetry))
    assert charts(view).data["phases"][2] == ("compute", 14.0, 68.0)


def test_no_samples_no_charts():
    assert charts(telemetry_only()) is None
    assert charts(telemetry_only(series(0, []))) is None


def test_a_large_rack_gets_fewer_points_a_series_never_too_few():
    few = run_view(gpus=8).nodes
    assert _charts.points_per_series(few) == 600
    view = healthy("a", 0, 8)
    hundred = _charts.points_per_series([view] * 100)
    assert _charts.MIN_POINTS <= hundred < 120
    assert _charts.points_per_series([view] * 10_000) == _charts.MIN_POINTS


def test_eight_nodes_of_eight_gpus_stay_small():
    view = healthy("a", 0, 8, samples=5000)
    one = len(json.dumps(charts(view).data, separators=(",", ":")))
    assert one * 8 < 1_000_000
