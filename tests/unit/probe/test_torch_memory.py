"""The walk over device memory and the square wave of load, on the CPU."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch to run these")

import fake_cuda  # noqa: E402

from nodeprep.probe import patterns  # noqa: E402
from nodeprep.probe.backends import torch_bursts, torch_memory  # noqa: E402

pytestmark = pytest.mark.torch
BLOCK = 64 << 10
MEMORY = 1 << 20


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cuda.install(monkeypatch, torch)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (MEMORY, 2 * MEMORY))
    for module in (patterns, torch_memory):
        monkeypatch.setattr(module, "BLOCK_BYTES", BLOCK)
    monkeypatch.setattr(torch_memory, "RESERVE_BYTES", 0)
    monkeypatch.setattr(torch_memory, "CHUNK_BYTES", 4 * BLOCK)
    monkeypatch.setattr(torch_memory, "RATE_BYTES", 1 << 20)
    monkeypatch.setattr(torch_bursts, "SIZE", 64)


def walker() -> torch_memory.Walker:
    return torch_memory.Walker(torch.device("cpu"))


def test_all_free_memory_is_walked_with_every_pattern() -> None:
    found = torch_memory.walk(torch.device("cpu"), 0.0)
    assert found.walked_bytes == MEMORY
    assert found.passes == {"address": 1, "checkerboard": 1, "inverse": 1, "random": 1}
    assert (found.errors, found.faults) == (0, ())


def test_a_longer_walk_repeats_the_patterns_evenly() -> None:
    passes = torch_memory.walk(torch.device("cpu"), 0.3).passes.values()
    assert min(passes) > 1
    assert max(passes) - min(passes) <= 1


def test_each_word_of_the_address_pattern_is_its_own_offset() -> None:
    one = walker()
    one.write("address")
    words = torch.cat([block.clone() for block in one.blocks])
    assert torch.equal(words, torch.arange(MEMORY // 8) * 8)


def test_checkerboard_and_inverse_have_no_bit_in_common() -> None:
    one = walker()
    one.write("checkerboard")
    first = one.blocks[3].clone()
    one.write("inverse")
    assert int((first & one.blocks[3]).abs().max()) == 0
    assert int((first ^ one.blocks[3]).min()) == -1


def test_no_two_blocks_of_the_random_pattern_are_alike() -> None:
    one = walker()
    one.write("random")
    assert len({tuple(block[:4].tolist()) for block in one.blocks}) == MEMORY // BLOCK


@pytest.mark.parametrize("name", list(patterns.PATTERNS))
@pytest.mark.parametrize("bit", [0, 31, 62])
def test_a_flipped_bit_is_named_with_its_place(name: str, bit: int) -> None:
    one = walker()
    one.write(name)
    one.blocks[5][77] ^= 1 << bit
    one.compare(name)
    assert one._errors == 1
    fault = one._faults[0]
    assert (fault.offset_bytes, fault.pattern, fault.again) == (5 * BLOCK + 8 * 77, name, True)
    assert int(fault.expected, 16) ^ int(fault.got, 16) == 1 << bit


def test_a_word_that_was_only_read_wrongly_counts_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    one = walker()
    one.write("checkerboard")
    real = torch.aminmax
    seen: list[int] = []

    def misread(values: Any, out: Any) -> None:
        real(values, out=out)
        seen.append(1)
        if len(seen) == 3:
            out[1].fill_(8)

    monkeypatch.setattr(torch, "aminmax", misread)
    one.compare("checkerboard")
    assert one._errors == 1
    assert (one._faults[0].offset_bytes, one._faults[0].again) == (2 * BLOCK, False)


def test_the_first_faults_are_kept_and_all_are_counted() -> None:
    one = walker()
    one.write("random")
    one.blocks[0][:500] ^= 1
    one.compare("random")
    assert (one._errors, len(one._faults)) == (500, torch_memory.FAULTS_KEPT)


def test_memory_in_pieces_is_walked_in_smaller_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    real = torch.empty

    def fragmented(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int) and args[0] * 8 > 2 * BLOCK:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return real(*args, **kwargs)

    monkeypatch.setattr(torch, "empty", fragmented)
    assert len(walker().blocks) == MEMORY // BLOCK


def test_rates_without_a_driver_say_why_the_peak_is_unknown() -> None:
    found = torch_memory.rates(torch.device("cpu"), 0.03, "GPU-0")
    assert found.copy_gbps["value"] > 0
    assert found.peak_gbps["state"] == "error"


def test_every_burst_but_the_first_is_compared() -> None:
    burster = torch_bursts.Burster(torch.device("cpu"), torch.float32)
    done = burster.run(0.02, 0.5, 4)
    assert (done.bursts, done.compared, done.mismatches) == (4, 3, 0)
    assert done.products >= 4
    assert burster.run(0.02, 0.5, 2).compared == 2


def test_a_burst_that_computes_other_bits_is_a_mismatch() -> None:
    burster = torch_bursts.Burster(torch.device("cpu"), torch.float32)
    burster.run(0.02, 0.5, 1)
    burster._a[3, 3] += 1.0
    assert burster.run(0.02, 0.5, 2).mismatches == 2
