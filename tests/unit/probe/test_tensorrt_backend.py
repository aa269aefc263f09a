"""The TensorRT backend where TensorRT is not: what it says, and the network it would define.

No engine is built here: the network is a stand-in that checks shapes as TensorRT's documentation has them.
"""

from __future__ import annotations

import dataclasses
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch to run these")

from nodeprep.node.workload_file import KEYS  # noqa: E402
from nodeprep.probe import __main__ as program  # noqa: E402
from nodeprep.probe import workload  # noqa: E402
from nodeprep.probe.backends import open_backend, tensorrt_backend, torch_model  # noqa: E402
from nodeprep.probe.problem import ProbeError, UsageProblem  # noqa: E402

pytestmark = pytest.mark.torch
TINY = dataclasses.replace(workload.load("tiny"), depth=2)
GPU = {"address": "0000:17:00.0", "uuid": "GPU-1", "name": "NVIDIA H200"}


@pytest.mark.parametrize("there", [None, ModuleType("tensorrt")])
def test_not_installed_is_said_with_what_to_do(monkeypatch, there):
    # A folder of type stubs imports too, and is empty.
    monkeypatch.setitem(sys.modules, "tensorrt", there)
    with pytest.raises(ProbeError, match="TensorRT is not installed") as caught:
        open_backend("tensorrt", "/", GPU)
    assert "pip install tensorrt" in caught.value.hint


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "training"},
        {"launch": "graph"},
        {"batch": 4, "batch_least": 1},
        {"input": "prefetched"},
        {"kernels": "triton"},
        {"burst_duty": 0.5, "burst_period_s": 1.0},
    ],
)
def test_what_an_engine_cannot_do_is_refused_with_its_key(change):
    with pytest.raises(UsageProblem, match="cannot run it") as caught:
        tensorrt_backend.refuse_what_an_engine_cannot_do(dataclasses.replace(TINY, **change))
    named = next(key for key in change if key in tensorrt_backend._NEEDED)
    assert f"{named}: must be" in caught.value.message


def test_every_key_it_needs_is_a_key_of_workloads():
    assert set(tensorrt_backend._NEEDED) <= set(KEYS)
    tensorrt_backend.refuse_what_an_engine_cannot_do(workload.load("vit-g"))


def test_a_simulated_node_has_no_tensorrt(tmp_path, capsys):
    asked = ["run", "--root", str(tmp_path), "--workload", "tiny", "--out", str(tmp_path / "out")]
    assert program.main([*asked, "--backend", "tensorrt"]) == 2
    assert "a simulated node has no TensorRT" in capsys.readouterr().err


class Layers:
    """INetworkDefinition computing with torch at once: a tensor is its value, its name and its shape."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values, self.asked, self.marked = values, [], {}

    def add_input(self, name: str, dtype: Any, shape: tuple[int, ...]) -> Any:
        self.asked.append(name)
        return self._tensor(self.values[name].reshape(shape))

    def add_matrix_multiply(self, a: Any, op_a: str, b: Any, op_b: str) -> Any:
        # TensorRT broadcasts dimensions of size 1 and wants equal ranks.
        assert a.value.dim() == b.value.dim()
        turned = [
            t.value.transpose(-1, -2) if op == "transpose" else t.value for t, op in ((a, op_a), (b, op_b))
        ]
        return self._layer(turned[0] @ turned[1])

    def add_elementwise(self, a: Any, b: Any, operation: str) -> Any:
        assert a.value.dim() == b.value.dim()
        return self._layer(a.value + b.value if operation == "sum" else a.value * b.value)

    def add_activation(self, x: Any, kind: str) -> Any:
        assert kind == "gelu_erf"
        return self._layer(torch.nn.functional.gelu(x.value))

    def add_normalization(self, x: Any, scale: Any, shift: Any, axes: int) -> Any:
        assert axes == 1 << (x.value.dim() - 1)
        width = x.value.shape[-1]
        weight, bias = scale.value.reshape(width), shift.value.reshape(width)
        return self._layer(torch.nn.functional.layer_norm(x.value, (width,), weight, bias, 1e-6))

    def add_softmax(self, x: Any) -> Any:
        layer = SimpleNamespace(axes=0)

        def output(_: int) -> Any:
            assert layer.axes == 1 << (x.value.dim() - 1)
            return self._tensor(x.value.softmax(-1))

        layer.get_output = output
        return layer

    def add_slice(
        self, x: Any, start: tuple[int, ...], shape: tuple[int, ...], stride: tuple[int, ...]
    ) -> Any:
        assert set(stride) == {1}
        return self._layer(x.value[tuple(slice(a, a + n) for a, n in zip(start, shape, strict=True))])

    def add_shuffle(self, x: Any) -> Any:
        layer = SimpleNamespace(reshape_dims=None, second_transpose=None)

        def output(_: int) -> Any:
            value = x.value.reshape(layer.reshape_dims)
            return self._tensor(value.permute(layer.second_transpose) if layer.second_transpose else value)

        layer.get_output = output
        return layer

    def mark_output(self, tensor: Any) -> None:
        self.marked[tensor.name] = tensor.value

    def _layer(self, value: Any) -> Any:
        return SimpleNamespace(get_output=lambda _: self._tensor(value))

    def _tensor(self, value: Any) -> Any:
        return SimpleNamespace(value=value, name="")


@pytest.fixture
def engine(monkeypatch):
    """tensorrt_engine over a stand-in for the names of TensorRT that its network uses."""
    stand_in = ModuleType("tensorrt")
    for name, value in {
        "float16": "fp16",
        "bfloat16": "bf16",
        "float32": "fp32",
        "ITensor": object,
        "INetworkDefinition": object,
        "Logger": object,
        "IHostMemory": object,
        "Dims": tuple,
        "Permutation": tuple,
        "MatrixOperation": SimpleNamespace(NONE="none", TRANSPOSE="transpose"),
        "ElementWiseOperation": SimpleNamespace(SUM="sum", PROD="prod"),
        "ActivationType": SimpleNamespace(GELU_ERF="gelu_erf"),
    }.items():
        setattr(stand_in, name, value)
    monkeypatch.setitem(sys.modules, "tensorrt", stand_in)
    monkeypatch.delitem(sys.modules, "nodeprep.probe.backends.tensorrt_engine", raising=False)
    from nodeprep.probe.backends import tensorrt_engine

    yield tensorrt_engine
    sys.modules.pop("nodeprep.probe.backends.tensorrt_engine", None)


def test_the_network_is_the_model(engine):
    shape = dataclasses.replace(TINY, dtype="fp32", batch=2)
    with torch.no_grad():
        made = torch_model.TorchModel(shape, "cpu")
        size = shape.width // shape.heads
        values = {"x": made.embed(2), "scale": torch.full((1, 1, 1, 1), size**-0.5)}
        for index, block in enumerate(made.blocks):
            values.update({f"block{index}.{name}": tensor for name, tensor in block.items()})
        values.update({name: made.outer[name] for name in ("norm.weight", "norm.bias")})
        layers = Layers(values)
        engine._Network(shape, layers).define()
        expected: list[torch.Tensor] = []
        made.forward(each=lambda x: expected.append(x.clone()))
        assert list(layers.marked) == [engine.output_name(block) for block in range(shape.depth + 1)]
        for block, x in enumerate(expected):
            assert torch.allclose(layers.marked[engine.output_name(block)], x, atol=1e-4), block
        # Every tensor that is bound is one the network asks for, once.
        assert sorted(layers.asked) == sorted(values)
        outputs = list(layers.marked.values())
        assert made.summary(outputs).shape == (2 * shape.depth + 2 + 2,)
