"""Which GPUs share a port or a NUMA node, and how many NVLinks carry a pair."""

from __future__ import annotations

from nodeprep.probe.peers import groups
from nodeprep.probe.peers.groups import Group
from nodeprep.probe.peers.stage import nvlinks_between

A, B, C, D = (f"0000:{bus}:00.0" for bus in ("18", "19", "63", "64"))


def ok(value):
    return {"state": "ok", "value": value}


def hops(**shared):
    """Each GPU behind the ports given for it, a port of its own last."""
    names = {"a": A, "b": B, "c": C, "d": D}
    return {names[key]: [*ports, f"own-{key}", names[key]] for key, ports in shared.items()}


def unknown_numa(paths):
    return dict.fromkeys(paths, ok(-1))


def test_gpus_behind_one_switch_are_a_group_named_by_its_root_port():
    paths = hops(a=["root1", "switch1"], b=["root1", "switch1"], c=["root2"], d=["root3"])
    found = groups.group(paths, unknown_numa(paths))
    assert found.shared == (Group("port", "root1", (A, B)),)
    assert found.common_port == ""


def test_nested_switches_are_groups_each_smallest_first():
    paths = hops(a=["root1", "s1"], b=["root1", "s1"], c=["root1", "s2"], d=["root2"])
    found = groups.group(paths, unknown_numa(paths))
    assert found.shared == (Group("port", "s1", (A, B)), Group("port", "root1", (A, B, C)))


def test_a_port_above_all_gpus_belongs_to_the_round_of_all():
    paths = hops(a=["root"], b=["root"])
    found = groups.group(paths, unknown_numa(paths))
    assert found.shared == ()
    assert groups.rounds(found, list(paths))[-1] == Group("all", "root", (A, B))


def test_numa_nodes_are_groups_unless_a_port_already_is():
    paths = hops(a=["r1"], b=["r1"], c=["r2"], d=["r3"])
    numa = {A: ok(0), B: ok(0), C: ok(1), D: ok(1)}
    found = groups.group(paths, numa)
    assert found.shared == (Group("port", "r1", (A, B)), Group("numa", "1", (C, D)))


def test_rounds_begin_with_each_alone_and_end_with_all():
    paths = hops(a=["r1"], b=["r1"], c=["r2"])
    rounds = groups.rounds(groups.group(paths, unknown_numa(paths)), list(paths))
    assert [each.kind for each in rounds] == ["alone", "alone", "alone", "port", "all"]
    assert rounds[-1].gpus == (A, B, C)


def test_a_bus_that_cannot_be_read_is_said(tmp_path):
    found = groups.find(str(tmp_path), [A])
    assert "sys/bus/pci/devices" in found.unread
    assert found.shared == ()


def links(*remotes, down=0):
    up = [{"active": ok(True), "remote": ok(remote), "index": n} for n, remote in enumerate(remotes)]
    lost = {"active": ok(False), "remote": {"state": "not_supported", "detail": "inactive"}, "index": 99}
    return ok([*up, *[lost] * down])


def test_all_links_to_switches_carry_every_pair_also_those_that_are_down():
    found = {A: links("switch", "switch", down=1), B: links("switch", "switch", "switch")}
    assert nvlinks_between(found, A, B) == ok(3)


def test_direct_links_carry_only_their_pair():
    found = {A: links(B, B, C), B: links(A, A), C: links(A)}
    assert nvlinks_between(found, A, B) == ok(2)
    assert nvlinks_between(found, B, C) == ok(0)


def test_links_that_lead_nobody_knows_where_are_not_counted():
    unknown = ok([{"active": ok(True), "remote": {"state": "not_supported", "detail": "?"}, "index": 0}])
    assert nvlinks_between({A: unknown, B: links("switch")}, A, B)["state"] == "not_supported"
    broken = {"state": "error", "detail": "NVML hung"}
    assert nvlinks_between({A: links("switch"), B: broken}, A, B) == broken
