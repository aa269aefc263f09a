"""Real GPUs: host copies, peer copies and NCCL through PyTorch. Each rank sees all GPUs of the run."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ...node import reading
from ..backends.torch_model import digest, hash_counters, row_weights
from ..hashing import key
from ..problem import ProbeError
from .collective import Collective
from .device import H2D, Device

COPY_BYTES = 256 << 20
# Copies queued before the host looks: 11 ms of NVLink, so that the look costs nothing that counts.
_BATCH = 16
_ROW_WORDS = 1 << 16
_SEED = 78

Tensor = Any


class CudaDevice(Device):
    """The GPU of one rank, through CUDA.

    Raises:
        ProbeError: CUDA shows other GPUs than asked for.
    """

    def __init__(self, spec: Dict[str, Any], tell: Callable[..., None]) -> None:
        super().__init__(spec, tell)
        torch.set_grad_enabled(False)
        self._device = self.device(self.number)
        self._check_order()
        torch.cuda.set_device(self._device)
        words = COPY_BYTES // 8
        self._patterns = [self._pattern(number) for number in range(2)]
        self._expected = [self._digest(pattern) for pattern in self._patterns]
        self._pinned = [torch.empty(words, dtype=torch.int64, pin_memory=True) for _ in range(2)]
        for number, pinned in enumerate(self._pinned):
            pinned.copy_(self._patterns[number])
        self._target = torch.empty(words, dtype=torch.int64, device=self._device)
        # A context on every GPU takes a part of a second; all ranks make theirs at the same time, now.
        for other in range(len(self.addresses)):
            torch.cuda.synchronize(other)
        self._collective: Optional[Collective] = None

    def device(self, number: int) -> Any:
        """The GPU of a rank: CUDA has them in the same order."""
        return torch.device("cuda", number)

    def about(self) -> Dict[str, Any]:
        """Versions, and whom CUDA lets this GPU reach."""
        access = {
            address: reading.ok(bool(torch.cuda.can_device_access_peer(self.number, other)))
            for other, address in enumerate(self.addresses)
            if other != self.number
        }
        nccl = ".".join(map(str, torch.cuda.nccl.version()))
        return {"versions": {"torch": str(torch.__version__), "nccl": nccl}, "access": access}

    def host_copies(self, direction: str, seconds: float, at: float, beside: List[str]) -> Dict[str, Any]:
        """From or to pinned memory; what arrived is digested by the GPU."""
        del beside  # real links know by themselves who shares them
        copies = 0
        stream = torch.cuda.Stream(self._device)
        time.sleep(max(0.0, at - time.monotonic()))
        started = time.monotonic()
        in_flight: List[Any] = []
        with torch.cuda.stream(stream):
            while time.monotonic() - started < seconds or copies < 2:
                self._copy_host(direction, copies % 2)
                event = torch.cuda.Event(blocking=True)
                event.record(stream)
                in_flight.append(event)
                copies += 1
                if len(in_flight) > 2:
                    in_flight.pop(0).synchronize()
            stream.synchronize()
            elapsed = time.monotonic() - started
        last = (copies - 1) % 2
        if direction != H2D:
            self._target.copy_(self._pinned[last])
        wrong = int(self._digest(self._target)) != int(self._expected[last])
        return {"gbps": copies * COPY_BYTES / elapsed / 1e9, "checks": 1, "errors": int(wrong)}

    def pair(self, to: int, seconds: float, both_ways: bool) -> Dict[str, Any]:
        """Writes to the other GPU's memory; both ways also from there to here, on streams of their own."""
        there = self.device(to)
        words = COPY_BYTES // 8
        landing = torch.zeros(words, dtype=torch.int64, device=there)
        weights = row_weights(words // _ROW_WORDS, there)
        sources = [pattern.to(there) for pattern in self._patterns] if both_ways else []
        streams = [torch.cuda.Stream(device) for device in (self._device, there) for _ in range(2)]
        # What was made on the default streams must be there before other streams use it.
        torch.cuda.synchronize(there)
        torch.cuda.synchronize(self._device)
        self._copy_both(streams, landing, sources, 1)
        checks = errors = back_errors = moved = 0
        elapsed = 0.0
        while elapsed < seconds or checks < 2:
            which = checks % 2
            started = time.monotonic()
            for _ in range(_BATCH):
                self._copy_both(streams, landing, sources, which, wait=False)
            self._wait(streams)
            elapsed += time.monotonic() - started
            moved += _BATCH * COPY_BYTES * (2 if both_ways else 1)
            found = int(digest(landing.view(-1, _ROW_WORDS), weights))
            errors += int(found != int(self._expected[which]))
            if both_ways:
                back_errors += int(int(self._digest(self._target)) != int(self._expected[which]))
            checks += 1
        torch.cuda.synchronize(there)
        del landing, sources
        torch.cuda.empty_cache()
        return {
            "gbps": moved / elapsed / 1e9,
            "checks": checks,
            "errors": errors,
            "back_errors": back_errors,
        }

    def join(self, transport: str, meeting: str) -> Dict[str, Any]:
        """Joins the others in NCCL, which the parent's environment tells what it may use."""
        self._collective = Collective(transport, meeting, self.number, len(self.addresses), self._device)
        return {
            "environment": {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
        }

    def _reduce(self, size: int, repeats: int, verify: bool) -> Tuple[float, Optional[int]]:
        if self._collective is None:
            raise ProbeError("it has not joined the others")
        return self._collective.reduce(size, repeats, verify)

    def _check_order(self) -> None:
        """CUDA_VISIBLE_DEVICES names the GPUs in the order of the ranks; so must CUDA."""
        if torch.cuda.device_count() != len(self.uuids):
            raise ProbeError(
                "CUDA shows %d GPUs, not the %d of this run" % (torch.cuda.device_count(), len(self.uuids)),
                hint="is MIG on? The probe needs whole GPUs",
            )
        for number, uuid in enumerate(self.uuids):
            shown = getattr(torch.cuda.get_device_properties(number), "uuid", None)
            if shown is not None and str(shown).lower() not in uuid.lower():
                raise ProbeError("CUDA shows GPU %s where %s was asked for" % (shown, uuid))

    def _pattern(self, number: int) -> Tensor:
        made = hash_counters(key(_SEED, "peer%d" % number), COPY_BYTES // 4, self._device)
        return made.view(torch.int64)

    def _digest(self, buffer: Tensor) -> Tensor:
        return digest(buffer.view(-1, _ROW_WORDS), row_weights(buffer.numel() // _ROW_WORDS, buffer.device))

    def _copy_host(self, direction: str, which: int) -> None:
        if direction == H2D:
            self._target.copy_(self._pinned[which], non_blocking=True)
        else:
            self._pinned[which].copy_(self._patterns[which], non_blocking=True)

    def _copy_both(
        self, streams: List[Any], landing: Tensor, sources: List[Tensor], which: int, *, wait: bool = True
    ) -> None:
        """One copy there and, with sources over there, one back; a copy waits on streams of both its ends."""
        here_out, here_in, there_in, there_out = streams
        with torch.cuda.stream(there_in), torch.cuda.stream(here_out):
            landing.copy_(self._patterns[which], non_blocking=True)
        if sources:
            with torch.cuda.stream(here_in), torch.cuda.stream(there_out):
                self._target.copy_(sources[which], non_blocking=True)
        if wait:
            self._wait(streams)

    def _wait(self, streams: List[Any]) -> None:
        for stream in streams:
            stream.synchronize()
