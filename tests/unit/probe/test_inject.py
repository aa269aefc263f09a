"""Faults on request."""

from __future__ import annotations

import pytest

from nodeprep.probe import inject, workload
from nodeprep.probe.problem import UsageProblem

TINY = workload.load("tiny")


def test_the_short_form_chooses_a_place():
    flip = inject.parse("flip:block=7,bit=0", TINY)
    assert (flip.block, flip.bit, flip.tensor) == (7, 0, "fc1")
    assert 0 <= flip.index < 64 * 256
    assert flip == inject.parse("flip:bit=0,block=7", TINY)
    assert flip.iteration >= 2


def test_everything_can_be_said():
    flip = inject.parse("flip:block=0,bit=15,tensor=qkv,index=12287,iteration=9", TINY)
    assert flip == inject.Flip(block=0, bit=15, tensor="qkv", index=12287, iteration=9)


def test_one_gpu_of_several_can_be_meant():
    flip = inject.parse("flip:block=7,bit=0,gpu=0000:1B:00.0", TINY)
    assert flip.on("0000:1b:00.0")
    assert not flip.on("0000:1c:00.0")
    assert inject.parse("flip:block=7,bit=0", TINY).on("0000:1c:00.0")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("flop:block=1,bit=0", "cannot read the fault"),
        ("flip:block=1", "block and bit are needed"),
        ("flip:block=1,bit=0,bit=1", "cannot read 'bit=1'"),
        ("flip:block=x,bit=0", "block must be a whole number"),
        ("flip:block=16,bit=0", "block must be between 0 and 15"),
        ("flip:block=1,bit=16", "bit must be between 0 and 15"),
        ("flip:block=1,bit=0,tensor=mlp", "no matrix 'mlp'"),
        ("flip:block=1,bit=0,tensor=proj,index=4096", "index must be between 0 and 4095"),
        ("flip:block=1,bit=0,iteration=1", "iteration must be between 2"),
        ("flip:block=1,bit=0,colour=3", "cannot read 'colour=3'"),
    ],
)
def test_what_is_refused(text, complaint):
    with pytest.raises(UsageProblem) as caught:
        inject.parse(text, TINY)
    assert complaint in caught.value.message
    assert caught.value.hint


GPUS = ("0000:1b:00.0", "0000:1c:00.0")


@pytest.mark.parametrize(
    ("text", "addresses", "says"),
    [
        ("hang:rank=2", GPUS, "between 0 and 1"),
        ("hang:rank=0", GPUS[:1], "a single GPU has no all-reduce"),
        ("flip:block=7,bit=0,gpu=0000:1b:00.0", GPUS[1:], "no GPU of this run is at 0000:1b:00.0"),
    ],
)
def test_a_fault_that_would_happen_nowhere_is_refused(text, addresses, says):
    with pytest.raises(UsageProblem, match=says):
        inject.require_target(text, inject.parse(text, TINY), addresses)


@pytest.mark.parametrize("text", ["hang:rank=1", "flip:block=7,bit=0", "flip:block=7,bit=0,gpu=0000:1C:00.0"])
def test_a_fault_that_can_happen_is_taken(text):
    inject.require_target(text, inject.parse(text, TINY), GPUS)
