"""The torch backend without a GPU: against numpy, and its bookkeeping on a pretended CUDA."""

from __future__ import annotations

import dataclasses

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch to run these")

import fake_cuda  # noqa: E402

from nodeprep.probe import inject, workload  # noqa: E402
from nodeprep.probe.backends import numpy_model, torch_copies, torch_model  # noqa: E402
from nodeprep.probe.backends.torch_backend import TorchBackend  # noqa: E402
from nodeprep.probe.hashing import hexadecimal, mix  # noqa: E402
from nodeprep.probe.levels import budget  # noqa: E402
from nodeprep.probe.phases import Assignment  # noqa: E402
from nodeprep.probe.problem import ProbeError  # noqa: E402
from nodeprep.probe.session import Session  # noqa: E402
from nodeprep.probe.turns import Turns  # noqa: E402

pytestmark = pytest.mark.torch
TINY = workload.load("tiny")
GPU = {"address": "0000:17:00.0", "uuid": "GPU-76d98191-1b0c-40a2-388f-cb077f563274", "name": "NVIDIA H200"}


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def with_dtype(dtype: str, batch: int = 2) -> workload.Workload:
    return dataclasses.replace(TINY, dtype=dtype, batch=batch)


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_weights_and_input_are_bit_equal_to_numpys(dtype):
    shape = with_dtype(dtype)
    ours, theirs = torch_model.TorchModel(shape, "cpu"), numpy_model.NumpyModel(shape)
    for mine, reference in [(ours.outer, theirs.outer), *zip(ours.blocks, theirs.blocks, strict=True)]:
        assert mine.keys() == reference.keys()
        for name in mine:
            assert np.array_equal(mine[name].float().numpy(), reference[name]), name
    assert np.array_equal(ours.image.float().numpy(), theirs.image)


def test_chunks_make_the_same_values_as_one_piece(monkeypatch):
    whole = torch_model.hash_counters(123, 1000, "cpu")
    monkeypatch.setattr(torch_model, "_CHUNK", 300)
    flat = torch.empty(1000, dtype=torch.float32)
    torch_model.fill_uniform(flat, 123, 1.0)
    assert [int(value) & 0xFFFFFFFF for value in whole[:50]] == [mix(n ^ 123) for n in range(50)]
    expected = ((whole >> 8) & 0xFFFFFF).float() * 2.0**-24 - 0.5
    assert torch.equal(flat, expected)


def test_outputs_agree_with_numpys_within_single_precision():
    shape = with_dtype("fp32")
    outputs: list[torch.Tensor] = []
    torch_model.TorchModel(shape, "cpu").forward(each=lambda x: outputs.append(x.clone()))
    reference = list(numpy_model.NumpyModel(shape).outputs())
    assert len(outputs) == len(reference) == shape.depth + 1
    for block, (mine, other) in enumerate(zip(outputs, reference, strict=True)):
        # Activations are of size 1 to 4; 24 bits of mantissa, 16 blocks of roundings in another order.
        assert np.abs(mine.numpy() - other).max() < 5e-5, block


def test_half_precision_stays_near_the_reference():
    shape = with_dtype("fp16")
    outputs: list[torch.Tensor] = []
    torch_model.TorchModel(shape, "cpu").forward(each=lambda x: outputs.append(x.clone()))
    last = outputs[-1].float().numpy()
    reference = list(numpy_model.NumpyModel(shape).outputs())[-1]
    assert np.abs(last - reference).max() < 0.05


def test_digests_are_numpys_digests_of_the_same_bits():
    shape = with_dtype("fp16")
    outputs: list[torch.Tensor] = []
    digests = torch_model.TorchModel(shape, "cpu").forward(each=lambda x: outputs.append(x.clone()))
    for output, digest in zip(outputs, digests, strict=False):
        assert hexadecimal(int(digest)) == numpy_model.digest(output.numpy())


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_digests_of_weights_are_numpys_and_see_a_bit_that_rounding_hides(dtype):
    shape = with_dtype(dtype)
    model = torch_model.TorchModel(shape, "cpu")
    expected = list(numpy_model.NumpyModel(shape).weight_digests())
    assert [hexadecimal(int(one)) for one in model.weight_digests()] == expected
    # Multiplied by nothing at all, it changes no output.
    model.blocks[7]["fc2.weight"].zero_()
    quiet = [int(one) for one in model.forward()]
    model.blocks[7]["fc2.weight"].view(-1)[5] = 6e-8 if dtype == "fp16" else 1e-38
    loud = [int(one) for one in model.forward()]
    assert [place for place in range(len(quiet)) if quiet[place] != loud[place]] == [shape.depth + 1 + 7]


@pytest.mark.parametrize("bit", [0, 9, 15])
def test_a_flip_is_undone_by_the_same_flip_and_is_one_bit(bit):
    model = torch_model.TorchModel(TINY, "cpu")
    before = model.blocks[7]["fc1.weight"].clone()
    flip = inject.make(TINY, block=7, bit=bit, index=5)
    model.flip(flip)
    changed = (model.blocks[7]["fc1.weight"].view(torch.int16) ^ before.view(torch.int16)).view(-1)
    assert [int(value) & 0xFFFF for value in changed[changed != 0]] == [1 << bit]
    assert int(torch.nonzero(changed)[0]) == 5
    model.flip(flip)
    assert torch.equal(model.blocks[7]["fc1.weight"], before)


def test_nan_and_infinity_are_counted_in_the_last_block():
    model = torch_model.TorchModel(TINY, "cpu")
    model.blocks[3]["proj.bias"][0] = float("inf")
    # The infinite channel makes the next norms NaN in every channel of every token.
    assert int(model.forward()[-1]) == TINY.batch * TINY.tokens * TINY.width


@pytest.fixture
def pretended(monkeypatch):
    fake_cuda.install(monkeypatch, torch, uuid="76d98191-1b0c-40a2-388f-cb077f563274")
    monkeypatch.setattr(torch_copies, "COPY_BYTES", 1 << 16)
    monkeypatch.setattr(torch_copies, "_ROW_WORDS", 256)
    monkeypatch.setattr(TorchBackend, "device", "cpu")
    monkeypatch.setattr("nodeprep.probe.backends.torch_backend.CEILING_SIZE", 64)


def test_a_session_on_the_torch_backend(pretended):
    said: list[dict] = []
    lengths = {"copies": 0.02, "ceiling": 0.01, "build": 0.0, "warm-up": 0.01, "compute": 0.3}
    # Device memory and transients have tests of their own, at sizes a CPU can do.
    plan = dataclasses.replace(
        budget("quick", "torch"),
        total_s=None,
        opening=tuple((name, lengths[name]) for name in ("copies", "ceiling", "build", "warm-up")),
        round=(("compute", lengths["compute"]),),
    )
    flip = inject.make(TINY, block=5, bit=12, iteration=3)
    turns = Turns("", GPU["address"], ())
    Session(TorchBackend(GPU), Assignment(TINY, plan, 0.0, flip), lambda **m: said.append(m), turns).run()
    phases = [message["name"] for message in said if message["kind"] == "phase"]
    assert phases == ["copies", "ceiling", "build", "warm-up", "compute"]
    found = [message["mismatch"] for message in said if message["kind"] == "mismatch"]
    assert (found[0]["iteration"], found[0]["block"], found[0]["confirmed"]) == (3, 5, True)
    assert found[0]["part"] == "weights"
    assert all(message["non_finite"] == 0 for message in said if "non_finite" in message)
    copies = [message for message in said if message["kind"] == "copies"][-1]
    assert copies["content_errors"] == 0
    assert copies["content_checks"] > 4
    assert copies["bytes_h2d"] > 0
    assert copies["bytes_d2h"] > 0
    assert said[-1]["kind"] == "done"


@pytest.mark.parametrize("broken", ["_landing", "_checked_landing", "_sources", "_checked_target"])
def test_corrupted_host_memory_is_noticed_where_it_is_checked(pretended, broken):
    copier = torch_copies.Copier(torch.device("cpu"), 1)
    real_send, real_back = copier._send, copier._send_back

    def corrupt(work):
        def wrapped(*args, **kwargs):
            if broken == "_sources":
                copier._sources[0][3] = 42
            elif broken != "_checked_target":
                getattr(copier, broken)[3] = 42
            work(*args, **kwargs)

        return wrapped

    copier._send, copier._send_back = corrupt(real_send), corrupt(real_back)
    if broken == "_checked_target":
        real_compare = copier._compare
        copier._compare = lambda which: (
            copier._checked_target[7].bitwise_xor_(1 << 40),
            real_compare(which),
        )
    for _ in range(40):
        copier.pump()
    copier.drain()
    errors = copier.totals().content_errors
    # The plain landing buffer is overwritten all the time; only what is sent back is compared.
    assert (errors > 0) == (broken != "_landing")


def test_a_copy_that_never_happens_is_noticed(pretended):
    copier = torch_copies.Copier(torch.device("cpu"), 1)
    for _ in range(20):
        copier.pump()
    copier.drain()
    assert copier.totals().content_errors == 0
    copier._send = lambda which, target: None
    for _ in range(60):
        copier.pump()
    copier.drain()
    assert copier.totals().content_errors > 0


def test_both_patterns_are_checked_in_both_directions(pretended):
    copier = torch_copies.Copier(torch.device("cpu"), 1)
    seen: list[tuple[str, int]] = []
    copier._compare = lambda which: seen.append(("compare", which))
    real_back = copier._send_back
    copier._send_back = lambda: (seen.append(("back", copier._landing_pattern)), real_back())
    for _ in range(80):
        copier.pump()
    assert {("compare", 0), ("compare", 1), ("back", 0), ("back", 1)} <= set(seen)


def test_another_gpu_than_asked_for_is_refused(monkeypatch):
    fake_cuda.install(monkeypatch, torch, uuid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(ProbeError, match="was asked for"):
        TorchBackend(GPU)


def test_a_torch_without_cuda_is_refused_with_a_hint(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(ProbeError, match="has no CUDA") as caught:
        TorchBackend(GPU)
    assert "probe_python" in caught.value.hint


@pytest.mark.parametrize(("asked", "other"), [("h2d", "d2h"), ("d2h", "h2d")])
def test_copies_one_way_only_are_still_compared(pretended, asked, other):
    copier = torch_copies.Copier(torch.device("cpu"), 1)
    copier.ask((asked,), 1.0)
    checks = copier.totals().content_checks
    for _ in range(60):
        copier.pump()
    copier.drain()
    totals = copier.totals()
    assert totals.content_errors == 0
    assert totals.content_checks > checks + 2
    rates = {"h2d": totals.h2d_gbps, "d2h": totals.d2h_gbps}
    assert rates[asked]["state"] == "ok"
    assert rates[other]["state"] == "not_supported"
    # What comes back for its comparison is a small part of what went.
    moved = {"h2d": totals.bytes_h2d, "d2h": totals.bytes_d2h}
    assert moved[other] <= moved[asked] / 5


def test_a_share_of_the_time_is_kept_to(pretended, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(torch_copies.time, "monotonic", lambda: now[0])
    copier = torch_copies.Copier(torch.device("cpu"), 1)
    copier.ask(("h2d", "d2h"), 0.25)
    busy = []
    for step in range(40):
        now[0] = step * torch_copies.SHARE_PERIOD_S / 20
        before = copier.totals().bytes_d2h if now[0] else 0
        copier.pump()
        copier.pump()
        busy.append((copier.totals().bytes_d2h if now[0] else 1) > before)
    assert sum(busy) == pytest.approx(0.25 * 40, abs=3)
    copier.ask(("h2d", "d2h"), 0.0)
    copier.drain()
    moved = copier.totals().bytes_h2d
    copier.pump()
    copier.pump()
    assert copier.totals().bytes_h2d == moved
