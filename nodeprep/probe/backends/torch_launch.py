"""How a pass gets onto the device: its batch, its input, kernel by kernel or as a graph, in bursts or not."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional, Tuple

import torch

from ..burst import Burst
from ..inject import Flip
from ..workload import Workload
from .torch_model import TorchModel
from .torch_training import TrainingStep

Tensor = Any
# Passes before a graph is captured: libraries choose their kernels and take their workspaces then.
_PASSES_BEFORE_CAPTURE = 2


class Launcher:
    """A model on the device and the ways to run it.

    Args:
        workload: What is run, and how.
        device: Where.
        idle: Waits so many seconds while the copies go on.
        wait: Waits until the device is done with what was launched, while the copies go on.
    """

    def __init__(
        self,
        workload: Workload,
        device: Any,
        idle: Callable[[float], None],
        wait: Callable[[], None],
    ) -> None:
        _reserve(workload.memory_pool_gib, device)
        self.workload = workload
        self._burst = Burst(workload.burst_duty, workload.burst_period_s, idle)
        self._wait = wait
        self._model = TorchModel(workload, device)
        self._training = TrainingStep(self._model) if workload.training else None
        if self._training:
            _be_deterministic()
        self._turn = 0
        self._last_batch = 0
        self._feed = _Feed(workload, self._model)
        self._graphs: Dict[int, Tuple[Any, Tensor]] = {}
        if workload.launch == "graph":
            self._capture()

    @property
    def model(self) -> TorchModel:
        """Weights and input."""
        return self._model

    @property
    def rested_s(self) -> float:
        """Seconds that bursts kept the last pass waiting."""
        return self._burst.rested_s

    def next_batch(self) -> int:
        """The batch size of the next pass."""
        batches = self.workload.batches
        self._last_batch = batches[self._turn % len(batches)]
        self._turn += 1
        return self._last_batch

    def launch(self, batch: int) -> Tensor:
        """Launches a pass: one tensor of its digests, its non-finite and its subnormal values."""
        self._burst.begin()
        self._feed.bring(batch)
        if self._graphs:
            self._rest()
            graph, values = self._graphs[batch]
            graph.replay()
        else:
            values = self._run(batch, self._rest_after if self._burst.active else None)
        self._feed.taken()
        return values

    def again(self, place: int) -> Tensor:
        """Runs the last batch size again: a tensor of digests, at least up to a place among them.

        Always kernel by kernel, whatever the launch mode: a graph cannot stop half-way.
        """
        upto = place if place < len(self._model.blocks) else None
        if self._training and upto is None:
            return self._run(self._last_batch, None)
        return torch.stack([one.reshape(()) for one in self._model.forward(self._last_batch, upto)])

    def flip(self, flip: Flip) -> None:
        """Flips a bit of a weight in place; graphs read the same memory."""
        self._model.flip(flip)

    def _run(self, batch: int, each: Optional[Callable[[Tensor], None]]) -> Tensor:
        if self._training:
            values = self._training.run(batch, each)
        else:
            values = self._model.forward(batch, each=each)
            values.append(torch.zeros((), dtype=torch.int64, device=self._model.device))
        return torch.stack([one.reshape(()) for one in values])

    def _rest_after(self, _: Tensor) -> None:
        """Between blocks, once the device has reached them: the host alone would be far ahead."""
        self._wait()
        self._rest()

    def _rest(self) -> None:
        self._burst.rest()

    def _capture(self) -> None:
        """One graph a batch size, the largest first: the others then find room in its pool."""
        pool = None
        for batch in sorted(set(self.workload.batches), reverse=True):
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(_PASSES_BEFORE_CAPTURE):
                    self._run(batch, None)
            torch.cuda.current_stream().wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                values = self._run(batch, None)
            pool = pool or graph.pool()
            self._graphs[batch] = (graph, values)


class _Feed:
    """How the input of a pass comes to the device; its bits are the same every time.

    "prefetched": pinned memory to a spare buffer, beside the pass before; then one copy on the device.
    """

    def __init__(self, workload: Workload, made: TorchModel) -> None:
        self._how = workload.input
        self._image = made.image
        if self._how == "resident":
            return
        pinned = self._how == "prefetched"
        self._source = torch.empty(made.image.shape, dtype=made.image.dtype, device="cpu", pin_memory=pinned)
        self._source.copy_(made.image)
        if pinned:
            self._spare = torch.empty_like(made.image)
            self._stream = torch.cuda.Stream()
            self._copied_out = torch.cuda.Event()
            self._copied_out.record()
            self.taken()

    def bring(self, batch: int) -> None:
        """Puts the input where the pass reads it."""
        if self._how == "copied":
            self._image[:batch].copy_(self._source[:batch])
        elif self._how == "prefetched":
            torch.cuda.current_stream().wait_stream(self._stream)
            self._image[:batch].copy_(self._spare[:batch])
            self._copied_out.record()

    def taken(self) -> None:
        """The pass is launched: the next input may come."""
        if self._how != "prefetched":
            return
        # Behind the copy out of the spare buffer, and beside the pass that follows that copy.
        self._stream.wait_event(self._copied_out)
        with torch.cuda.stream(self._stream):
            self._spare.copy_(self._source, non_blocking=True)


def _reserve(gib: int, device: Any) -> None:
    """Lets the allocator take memory once, from which it then serves without asking the driver."""
    if gib:
        torch.empty(gib << 30, dtype=torch.uint8, device=device)


def _be_deterministic() -> None:
    """The backward of flash attention adds in any order unless it is told not to."""
    # PyTorch refuses deterministic matrix products without this; two values are allowed.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    # Filling fresh memory finds bugs of programs; it would only cost bandwidth here.
    torch.utils.deterministic.fill_uninitialized_memory = False
