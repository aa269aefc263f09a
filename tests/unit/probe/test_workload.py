"""Workloads: strictness, FLOPs, memory, digest."""

from __future__ import annotations

import dataclasses
import json

import pytest

from nodeprep.node.workload_file import KEYS, SHIPPED, shipped
from nodeprep.probe import workload
from nodeprep.probe.problem import UsageProblem

TINY = {key: value for key, value in shipped("tiny").items() if key != "about"}


def test_vit_g_is_the_model_of_the_story():
    vit = workload.load("vit-g")
    assert vit.tokens == 12289
    assert vit.parameters == pytest.approx(3.28e9, rel=0.002)
    # 1.037 s at 572 TFLOP/s, as measured on an H200.
    assert vit.flops == pytest.approx(1.037 * 572e12, rel=0.002)


def test_flops_follow_the_formula_by_hand():
    tiny = workload.load("tiny")
    t, d, m = 17, 64, 256
    assert tiny.flops == 16 * (2 * t * (4 * d * d + 2 * d * m) + 4 * t * t * d)


def test_parameters_are_counted_one_by_one():
    from nodeprep.probe import model

    tiny = workload.load("tiny")

    def size(tensors):
        total = 0
        for tensor in tensors:
            count = 1
            for edge in tensor.shape:
                count *= edge
            total += count
        return total

    assert tiny.parameters == tiny.depth * size(model.block(tiny)) + size(model.embedding(tiny))


def test_memory_covers_what_was_measured_but_not_twice_that():
    need = workload.load("vit-g").memory_bytes / 2**30
    assert 12.3 < need < 2 * 12.3


def test_digest_is_over_the_parameters_alone():
    first = workload.parse(dict(TINY), "a")
    again = workload.parse(dict(reversed(TINY.items())), "b")
    other = workload.parse({**TINY, "seed": 1}, "c")
    assert first.digest == again.digest
    assert first.digest != other.digest
    assert first.document()["digest"] == first.digest


def test_a_key_at_its_default_moves_no_digest():
    plain = workload.parse(TINY, "a")
    for name, key in KEYS.items():
        if key.group == "more":
            said = workload.parse({**TINY, name: key.default}, "b")
            assert said.digest == plain.digest, name
    assert workload.parse({**TINY, "pcie_share": 1}, "c").digest == plain.digest
    assert workload.parse({**TINY, "batch_least": 1}, "d").digest == plain.digest
    assert workload.parse({**TINY, "pcie_share": 0.5}, "e").digest != plain.digest
    assert workload.parse({**TINY, "about": "anything"}, "f").digest == plain.digest


def test_small_and_large_batches_take_turns():
    dynamic = workload.load("vit-g-dynamic")
    assert dynamic.batches == (1, 8, 2, 7, 3, 6, 4, 5)
    assert sorted(dynamic.batches) == list(range(1, 9))
    assert workload.load("vit-g").batches == (5,)
    # A reference and a comparison of each.
    assert dynamic.least_iterations == 16


def test_a_training_step_is_four_passes():
    assert workload.load("vit-g-train").flops == 4 * workload.load("vit-g").flops


def test_the_canonical_model_has_its_published_size():
    assert workload.load("vit-g-14").parameters == pytest.approx(1.87e9, rel=0.01)


def test_each_mode_needs_more_memory_than_plain_inference():
    vit = workload.load("vit-g")
    for change in (
        {"mode": "training"},
        {"launch": "graph"},
        {"input": "prefetched"},
        {"batch": 6},
        {"memory_pool_gib": 40},
    ):
        assert dataclasses.replace(vit, **change).memory_bytes > vit.memory_bytes, change


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_files_load(name):
    assert workload.load(name).name == name


def test_a_file_may_leave_out_what_has_a_default(tmp_path):
    data = {key: TINY[key] for key in TINY if key not in ("seed", "dtype", "launch")}
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**data, "name": "mine"}))
    assert workload.load(str(file)).dtype == "fp16"


def test_all_faults_are_reported_at_once():
    data = {**TINY, "widht": 3, "depth": "16", "batch": True, "dtype": "fp8"}
    del data["heads"]
    with pytest.raises(UsageProblem) as caught:
        workload.parse(data, "mine.json")
    text = caught.value.message
    assert "mine.json: 5 problems" in text
    assert "widht: unknown key; did you mean width?" in text
    assert "heads: missing" in text
    assert "depth: must be a whole number, is '16'" in text
    assert "batch: must be a whole number, is True" in text
    assert "dtype: must be one of fp16, bf16, fp32, is 'fp8'" in text


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"heads": 5}, "cannot be divided by heads 5"),
        ({"image_width": 33}, "image_width: 33 cannot be divided by patch 8"),
        ({"width": 60, "heads": 4}, "must be a multiple of 8"),
        ({"width": 65536, "heads": 4, "ffn": 65536}, "is too large"),
        ({"batch": 4096, "image_height": 8192, "image_width": 8192}, "batch: an input of"),
        ({"batch": 0}, "batch: must be between 1 and 4096"),
        ({"launch": "lazy"}, "launch: must be one of explicit, graph"),
        ({"batch_least": 2}, "batch_least: 2 is more than batch 1"),
        ({"ffn": 260}, "ffn: must be a multiple of 8"),
        ({"pcie_share": 1.5}, "pcie_share: must be between 0 and 1"),
        ({"burst_duty": 0.5}, "burst_duty: needs burst_period_s"),
        ({"gradient_norm_max": 1.0}, "there is no gradient in inference"),
        ({"mode": "training", "kernels": "triton"}, "triton has no backward pass"),
        ({"launch": "graph", "input": "copied"}, "a graph replays no copy from pageable memory"),
        ({"about": 3}, "about: must be a text"),
        ({"name": ""}, "name: must be a text"),
    ],
)
def test_shapes_that_cannot_be(change, complaint):
    with pytest.raises(UsageProblem) as caught:
        workload.parse({**TINY, **change}, "mine.json")
    assert complaint in caught.value.message


def test_a_name_with_a_typing_error_gets_a_suggestion():
    with pytest.raises(UsageProblem, match="unknown workload 'vitg'") as caught:
        workload.load("vitg")
    assert "vit-g" in caught.value.hint


@pytest.mark.parametrize("content", ["", "[1]", "{"])
def test_files_that_are_no_workload(tmp_path, content):
    file = tmp_path / "mine.json"
    file.write_text(content)
    with pytest.raises(UsageProblem, match=r"mine\.json"):
        workload.load(str(file))


def test_a_missing_file(tmp_path):
    with pytest.raises(UsageProblem, match="No such file"):
        workload.load(str(tmp_path / "none.json"))
