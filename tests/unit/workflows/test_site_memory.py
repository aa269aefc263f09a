"""What a site remembers: written whole, read with doubt, trusted by rule."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodeprep.cli.golden import show
from nodeprep.errors import ExitCode, UsageError
from nodeprep.fleet.disk import DiskError
from nodeprep.model.codec import encode
from nodeprep.model.golden import answers, bits_of
from nodeprep.model.probe import ProbeResult
from nodeprep.model.sighting import Sighting, build_of, sightings_of
from nodeprep.workflows import golden
from nodeprep.workflows.home import Home
from nodeprep.workflows.site_memory import SiteMemory
from tests.cases.base.documents import context

ONE = Sighting(
    kind="seen",
    time="2026-11-30T10:00:00Z",
    model="NVIDIA H200",
    build="torch 2.11.0",
    workload="vit-g",
    workload_digest="4aa2",
    node="a",
    gpu="GPU-1",
    depth=16,
    digests={"5": ("b0", "out")},
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def probe(**changes: object) -> ProbeResult:
    result = context(probe={f"/{key}": value for key, value in changes.items()}).probe
    assert result is not None
    return result


def test_what_was_written_is_read_again_in_its_order(home: Home) -> None:
    memory = SiteMemory(home)
    assert memory.recall("n").sightings == ()
    memory.remember([ONE, replace(ONE, node="b")])
    memory.remember([replace(ONE, node="c")])
    records = memory.recall("n")
    assert [one.node for one in records.sightings] == ["a", "b", "c"]
    assert records.sightings[0] == ONE
    assert (records.node, records.damaged, records.trouble) == ("n", 0, "")


def test_a_changed_bit_in_the_file_is_no_sighting(home: Home) -> None:
    memory = SiteMemory(home)
    memory.remember([ONE, replace(ONE, node="b")])
    memory.path.write_bytes(memory.path.read_bytes().replace(b'"b0"', b'"b1"', 1))
    records = memory.recall()
    assert [one.node for one in records.sightings] == ["b"]
    assert records.damaged == 1


@pytest.mark.parametrize("keep", [1, 20, 200])
def test_half_a_line_of_a_killed_writer_spoils_nothing_else(home: Home, keep: int) -> None:
    memory = SiteMemory(home)
    memory.remember([ONE])
    whole = memory.path.read_bytes()
    memory.path.write_bytes(whole + whole[:keep])
    memory.remember([replace(ONE, node="b")])
    records = memory.recall()
    assert [one.node for one in records.sightings] == ["a", "b"]
    assert records.damaged == 1


def _write(path: Path, node: str) -> None:
    memory = SiteMemory(Home(path))
    for number in range(40):
        memory.remember([replace(ONE, node=node, gpu=f"GPU-{node}-{number}")])


def test_two_writers_at_once_lose_and_mix_nothing(home: Home) -> None:
    writers = [
        multiprocessing.get_context("spawn").Process(target=_write, args=(home.path, node)) for node in "xy"
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    records = SiteMemory(home).recall()
    assert records.damaged == 0
    for node in "xy":
        seen = [one.gpu for one in records.sightings if one.node == node]
        assert seen == [f"GPU-{node}-{number}" for number in range(40)]


def test_a_memory_that_cannot_be_read_says_so_and_does_not_raise(home: Home) -> None:
    SiteMemory(home).path.mkdir(parents=True)
    assert "Is a directory" in SiteMemory(home).recall().trouble


def test_a_full_disk_is_a_disk_error(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nodeprep.workflows.site_memory.os.write", full)
    with pytest.raises(DiskError):
        SiteMemory(home).remember([ONE])


def test_a_good_run_teaches_a_line_for_each_gpu() -> None:
    result = probe()
    lines = list(sightings_of(result, node="n", host="h", time="t"))
    assert [line.gpu for line in lines] == [run.uuid for run in result.gpus]
    assert lines[0].build == build_of(result)
    assert lines[0].build.startswith("torch ")
    assert set(lines[0].digests) == {"5"}


@pytest.mark.parametrize(
    "change",
    [
        {"simulated": True},
        {"injected": "flip:block=7,bit=0"},
        {"state": "failed"},
        {"versions": {"python": "3.11"}},
        {"gpus/*/digests/mismatch_count": 1},
        {"gpus/*/digests/iterations_compared": 0},
        {"gpus/*/digests": "error: lost"},
        {"gpus/*/state": "failed"},
    ],
)
def test_a_doubtful_run_teaches_nothing(change: dict[str, object]) -> None:
    assert list(sightings_of(probe(**change), node="n", host="h", time="t")) == []


def test_one_node_is_not_enough_and_two_are() -> None:
    assert answers([]).standing == "unknown"
    assert answers([ONE, replace(ONE, gpu="GPU-2")]).standing == "first_seen"
    both = answers([ONE, replace(ONE, gpu="GPU-2", node="b")])
    assert (both.standing, both.leading) == ("confirmed", bits_of(ONE.digests))


def test_a_gpu_that_moves_to_another_node_confirms_nothing() -> None:
    assert answers([ONE, replace(ONE, node="b")]).standing == "first_seen"


def test_two_answers_of_equal_weight_are_a_dispute() -> None:
    other = replace(ONE, gpu="GPU-2", node="b", digests={"5": ("c0", "cut")})
    assert answers([ONE, other]).standing == "disputed"
    third = replace(other, gpu="GPU-3", node="c")
    assert answers([ONE, other, third]).leading == bits_of(other.digests)


def test_show_learn_and_forget(home: Home, tmp_path: Path) -> None:
    assert golden.listed(home).entries == ()
    SiteMemory(home).remember([ONE])
    (entry,) = golden.listed(home).entries
    assert (entry.standing, entry.gpus, entry.answers[0].nodes) == ("first_seen", 1, ("a",))

    file = tmp_path / "result.json"
    file.write_bytes(encode(probe()))
    learned = golden.vouch(home, file, why="vendor's reference node")
    assert [one.kind for one in learned] == ["vouched"]
    vouched = next(one for one in golden.listed(home).entries if one.key == golden.key_of(learned[0]))
    assert (vouched.standing, vouched.vouched_why) == ("vouched", "vendor's reference node")

    golden.forget(home, vouched.key[:8], why="it was the wrong cuBLAS")
    assert [one.key for one in golden.listed(home).entries] == [entry.key]
    kinds = [one.kind for one in SiteMemory(home).recall().sightings]
    assert kinds == ["seen", "vouched", "forgotten"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"simulated": True}, "nothing in it can be vouched for"),
        ({"gpus/0/digests/reference": ["x"]}, "do not agree"),
    ],
)
def test_what_nobody_can_vouch_for(
    home: Home, tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    file = tmp_path / "result.json"
    file.write_bytes(encode(probe(**change)))
    with pytest.raises(UsageError, match=complaint):
        golden.vouch(home, file, why="because")
    assert SiteMemory(home).recall().sightings == ()


def test_a_reason_is_needed_and_a_key_that_exists(home: Home) -> None:
    SiteMemory(home).remember([ONE])
    with pytest.raises(UsageError, match="--why is empty"):
        golden.forget(home, golden.key_of(ONE), why=" ")
    for key in ("", "zz"):
        with pytest.raises(UsageError, match="entries begin with"):
            golden.forget(home, key, why="because")


def test_lines_are_json_behind_a_checksum(home: Home) -> None:
    SiteMemory(home).remember([ONE])
    checksum, _, text = SiteMemory(home).path.read_text(encoding="utf-8").partition(" ")
    assert len(checksum) == 8
    assert json.loads(text)["schema"] == "nodeprep.sighting/1"


@pytest.mark.parametrize(("verdict", "kept"), [("certified", 1), ("inconclusive", 1), ("rejected", 0)])
def test_a_rejected_node_teaches_nothing(home: Home, verdict: str, kept: int) -> None:
    from nodeprep.workflows.certify import _remember

    told = _remember(SiteMemory(home), (ONE,), SimpleNamespace(verdict=verdict))  # type: ignore[arg-type]
    assert told == ""
    assert len(SiteMemory(home).recall().sightings) == kept


def test_a_memory_that_cannot_be_written_costs_no_certificate(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nodeprep.workflows.certify import _remember

    def full(*_: object) -> None:
        raise DiskError("the disk is full")

    monkeypatch.setattr(SiteMemory, "remember", full)
    certified = SimpleNamespace(verdict="certified")
    told = _remember(SiteMemory(home), (ONE,), certified)  # type: ignore[arg-type]
    assert "not kept for later comparison: the disk is full" in told


def test_a_memory_that_cannot_be_read_is_not_shown_as_empty(home, monkeypatch, capsys):
    monkeypatch.setenv("NODEPREP_HOME", str(home.path))
    SiteMemory(home).path.mkdir(parents=True)
    assert show(json=False, quiet=False, verbose=False) == ExitCode.INCONCLUSIVE
    told = capsys.readouterr()
    assert "cannot be read" in told.err
    assert "nothing is known" not in told.out
