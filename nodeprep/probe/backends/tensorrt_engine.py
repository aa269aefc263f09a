"""The vision transformer as a TensorRT engine, through the network API of TensorRT 10.13 and 11.

Weights are inputs of the network, not constants in it: the engine reads the memory that PyTorch holds, so
one flipped bit, and the digest that finds it, mean the same as in the torch backend. Written against the
API and its type stubs; it has not been run (docs/probe.md).
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import tensorrt as trt
import torch

from .. import model
from ..problem import ProbeError
from ..workload import GIB, Workload

# Source: the engine recipe of the production service. What became of its other parts: docs/probe.md.
WORKSPACE_BYTES = 8 * GIB
OPTIMIZATION_LEVEL = 3
_TYPES = {"fp16": trt.float16, "bf16": trt.bfloat16, "fp32": trt.float32}
_INPUT = "x"
_SCALE = "scale"


def output_name(block: int) -> str:
    """The engine's output of a block; with block = depth the final, normalised one."""
    return "block%d.out" % block


class Engine:
    """A built engine and its context.

    Raises:
        ProbeError: TensorRT cannot build it.
    """

    def __init__(self, workload: Workload, device: Any, dtype: Any) -> None:
        self._logger = trt.Logger(trt.Logger.WARNING)
        plan = _build(workload, self._logger)
        self._runtime = trt.Runtime(self._logger)
        self._engine = self._runtime.deserialize_cuda_engine(plan)
        if self._engine is None:
            raise ProbeError("TensorRT does not load the engine it built", hint="probe.log has its words")
        self._context = self._engine.create_execution_context()
        shape = (workload.batch, workload.tokens, workload.width)
        self.outputs = [torch.empty(shape, dtype=dtype, device=device) for _ in range(workload.depth + 1)]
        size = workload.width // workload.heads
        self._scale = torch.full((1, 1, 1, 1), size**-0.5, dtype=dtype, device=device)
        self._bind(_SCALE, self._scale)
        for block, tensor in enumerate(self.outputs):
            self._bind(output_name(block), tensor)

    def bind_weights(self, blocks: List[Dict[str, Any]], outer: Dict[str, Any]) -> None:
        """Tells the engine where the weights lie."""
        for index, weights in enumerate(blocks):
            for name, tensor in weights.items():
                self._bind("block%d.%s" % (index, name), tensor)
        for name in ("norm.weight", "norm.bias"):
            self._bind(name, outer[name])

    def run(self, x: Any) -> List[Any]:
        """Queues a pass over embedded patches (B, T, d); the outputs of all blocks and the final one.

        Raises:
            ProbeError: TensorRT refuses.
        """
        self._bind(_INPUT, x)
        if not self._context.execute_async_v3(torch.cuda.current_stream().cuda_stream):
            raise ProbeError("TensorRT does not run the engine", hint="probe.log has its words")
        return self.outputs

    def _bind(self, name: str, tensor: Any) -> None:
        if not self._context.set_tensor_address(name, tensor.data_ptr()):
            raise ProbeError("the TensorRT engine has no tensor %s" % name, hint="probe.log has its words")


def _build(workload: Workload, logger: trt.Logger) -> trt.IHostMemory:
    builder = trt.Builder(logger)
    # Needed in TensorRT 10, ignored in 11, where every network is strongly typed.
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    _Network(workload, network).define()
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, WORKSPACE_BYTES)
    config.builder_optimization_level = OPTIMIZATION_LEVEL
    config.engine_capability = trt.EngineCapability.STANDARD
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise ProbeError(
            "TensorRT cannot build an engine of %s" % workload.name, hint="probe.log has its words"
        )
    return plan


class _Network:
    """Puts the layers of the model into a network, with the shapes of one batch size."""

    def __init__(self, workload: Workload, network: trt.INetworkDefinition) -> None:
        self._workload = workload
        self._network = network
        self._type = _TYPES[workload.dtype]

    def define(self) -> None:
        """All blocks, each with its output marked."""
        w = self._workload
        x = self._input(_INPUT, (w.batch, w.tokens, w.width))
        self._scale = self._input(_SCALE, (1, 1, 1, 1))
        for index in range(w.depth):
            x = self._block(x, "block%d." % index)
            self._mark(x, output_name(index))
        self._mark(self._norm(x, "norm", w.width), output_name(w.depth))

    def _block(self, x: trt.ITensor, prefix: str) -> trt.ITensor:
        d, m = self._workload.width, self._workload.ffn
        qkv = self._linear(self._norm(x, prefix + "norm1", d), prefix + "qkv", 3 * d, d)
        x = self._add(x, self._linear(self._attention(qkv), prefix + "proj", d, d))
        h = self._linear(self._norm(x, prefix + "norm2", d), prefix + "fc1", m, d)
        h = self._network.add_activation(h, trt.ActivationType.GELU_ERF).get_output(0)
        return self._add(x, self._linear(h, prefix + "fc2", d, m))

    def _attention(self, qkv: trt.ITensor) -> trt.ITensor:
        """(B, T, 3 d) to (B, T, d): the pattern that TensorRT makes one kernel of."""
        w = self._workload
        size = w.width // w.heads
        parts = self._shuffle(qkv, (w.batch, w.tokens, 3, w.heads, size), (2, 0, 3, 1, 4))
        shape = (1, w.batch, w.heads, w.tokens, size)
        q, k, v = (
            self._shuffle(
                self._network.add_slice(parts, (part, 0, 0, 0, 0), shape, (1, 1, 1, 1, 1)).get_output(0),
                shape[1:],
            )
            for part in range(3)
        )
        none, transpose = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
        scores = self._network.add_matrix_multiply(q, none, k, transpose).get_output(0)
        scores = self._network.add_elementwise(scores, self._scale, trt.ElementWiseOperation.PROD).get_output(
            0
        )
        softmax = self._network.add_softmax(scores)
        softmax.axes = 1 << 3
        mixed = self._network.add_matrix_multiply(softmax.get_output(0), none, v, none).get_output(0)
        turned = self._shuffle(mixed, (w.batch, w.heads, w.tokens, size), (0, 2, 1, 3))
        return self._shuffle(turned, (w.batch, w.tokens, w.width))

    def _linear(self, x: trt.ITensor, name: str, outputs: int, inputs: int) -> trt.ITensor:
        weight = self._input(name + ".weight", (1, outputs, inputs))
        bias = self._input(name + ".bias", (1, 1, outputs))
        product = self._network.add_matrix_multiply(
            x, trt.MatrixOperation.NONE, weight, trt.MatrixOperation.TRANSPOSE
        )
        return self._add(product.get_output(0), bias)

    def _norm(self, x: trt.ITensor, name: str, width: int) -> trt.ITensor:
        scale = self._input(name + ".weight", (1, 1, width))
        shift = self._input(name + ".bias", (1, 1, width))
        # 10.15 brought a second form of the layer, with the same meaning, and deprecated the first.
        add: Any = getattr(self._network, "add_normalization_v2", self._network.add_normalization)
        layer = add(x, scale, shift, 1 << 2)
        layer.epsilon = model.NORM_EPSILON
        output: trt.ITensor = layer.get_output(0)
        return output

    def _add(self, one: trt.ITensor, other: trt.ITensor) -> trt.ITensor:
        return self._network.add_elementwise(one, other, trt.ElementWiseOperation.SUM).get_output(0)

    def _shuffle(self, x: trt.ITensor, shape: Tuple[int, ...], order: Tuple[int, ...] = ()) -> trt.ITensor:
        layer = self._network.add_shuffle(x)
        layer.reshape_dims = trt.Dims(shape)
        if order:
            layer.second_transpose = trt.Permutation(order)
        return layer.get_output(0)

    def _input(self, name: str, shape: Tuple[int, ...]) -> trt.ITensor:
        return self._network.add_input(name, self._type, trt.Dims(shape))

    def _mark(self, tensor: trt.ITensor, name: str) -> None:
        tensor.name = name
        self._network.mark_output(tensor)
