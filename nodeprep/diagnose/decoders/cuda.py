"""What CUDA told a program, in the words of PyTorch, TensorFlow, JAX, TensorRT, NCCL tests and plain CUDA."""

from __future__ import annotations

import re
from functools import cache

from nodeprep.diagnose import catalog
from nodeprep.diagnose.catalog import CudaEntry
from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_OOM = re.compile(
    r"CUDA out of memory|(?:torch(?:\.cuda)?\.)OutOfMemoryError|Cuda Runtime \(out of memory\)|"
    r"RESOURCE_EXHAUSTED: (?:Out of memory|OOM)|OOM when allocating tensor|CUDA_ERROR_OUT_OF_MEMORY|"
    r"cudaErrorMemoryAllocation|OutOfMemory(?:\)|:|$)|CUBLAS_STATUS_ALLOC_FAILED|"
    r"CUDA error:? (?:\(?2\)?:? )?out of memory|[Cc]uda (?:failure|error).{0,30}out of memory"
)
_ALLOCATE = re.compile(
    r"Tried to allocate (?P<size>[\d.]+ [KMGT]i?B)|Requested amount of GPU memory "
    r"\((?P<bytes>\d{1,18} bytes)\)"
)
_BUSY = re.compile(
    r"CUDA-capable device\(s\) (?:is|are|is/are) busy or unavailable|all CUDA-capable devices are busy"
)
_NUMBER = re.compile(
    r"(?:[Cc]uda (?:runtime )?error|CUDA error|[Cc]uda failure|Error|returned|"
    r"code=)[ :]*\(?(?P<code>\d{1,3})\)?[ :(]",
)
# Nothing but CUDA's own code follows here.
_INIT = re.compile(
    r"\bcuInit(?:\(\d?\))?:? (?:returned|failed(?: with)?)(?: error| code)?:? \(?(?P<code>\d{1,3})\b"
)
_CUDA = re.compile(r"cuda|\bcuInit\b|Error \d{3}: ", re.IGNORECASE)
# Whole sentences of CUDA that nothing else says; programs print them with words of their own around them.
_SENTENCES = re.compile(
    r"system not yet initialized|ECC error encountered|an illegal memory access was encountered|"
    r"an illegal instruction was encountered|unspecified launch failure|"
    r"no CUDA-capable device is detected|all CUDA-capable devices are busy"
)
# CUDA samples, which validators of operators run.
_VALIDATOR = re.compile(r"\(error code (?P<words>[a-zA-Z ,'-]{3,80})\)")
# Advice that PyTorch prints below every error.
_TALK = re.compile(
    r"CUDA kernel errors might be|CUDA_LAUNCH_BLOCKING|Compile with `TORCH_USE_CUDA_DSA`|"
    r"PYTORCH_(?:CUDA_)?ALLOC_CONF"
)
# "CUDA initialization: CUDA unknown error" is a warning of PyTorch, after which it sees no GPU.
_VAGUE = re.compile(
    r"(?:CUDA error:|CUDA initialization: CUDA|CUDA runtime error in .{1,400}?\):) "
    r"(?P<words>unknown error|initialization error|operation not supported|"
    r"operation not permitted)"
)
_DEVICE_INDEX = re.compile(r"\bGPU (\d{1,2})\b|\bcuda:(\d{1,2})\b")


@cache
def _texts() -> tuple[tuple[str, CudaEntry], ...]:
    """Texts that stand for one error only; "unknown error" and the like need a number beside them."""
    vague = {
        "unknown",
        "out_of_memory",
        "not_supported",
        "devices_unavailable",
        "not_initialized",
        "not_permitted",
    }
    found = [(entry.text.lower(), entry) for entry in catalog.all_cuda().values() if entry.id not in vague]
    return tuple(sorted(found, key=lambda pair: -len(pair[0])))


def _parse(line: Line) -> Event | None:
    text = line.text
    if _OOM.search(text):
        return _event(line, catalog.cuda(2))
    if _TALK.search(text) and "CUDA error:" not in text:
        return None
    if validator := _VALIDATOR.search(text):
        words = validator["words"].lower()
        return _event(line, next((e for e in catalog.all_cuda().values() if e.text.lower() == words), None))
    if _BUSY.search(text):
        return _event(line, catalog.cuda(46))
    if not _CUDA.search(text) and not _SENTENCES.search(text):
        return None
    low = text.lower()
    entry = next((entry for words, entry in _texts() if words in low), None)
    if entry is None:
        entry = next(
            (entry for entry in catalog.all_cuda().values() for name in entry.names if name in text), None
        )
    if entry is None and (init := _INIT.search(text)):
        entry = catalog.cuda(int(init["code"]))
    if entry is None and (number := _NUMBER.search(text)):
        entry = catalog.cuda(int(number["code"]))
        # A number alone may be anything; its words must be there as well.
        if entry and entry.text.lower() not in low:
            entry = None
    if entry is None and (vague := _VAGUE.search(text)):
        words = vague["words"]
        entry = next((entry for entry in catalog.all_cuda().values() if entry.text == words), None)
    return _event(line, entry)


def _event(line: Line, entry: CudaEntry | None) -> Event | None:
    if entry is None:
        return None
    data: dict[str, object] = {"code": entry.code}
    if size := _ALLOCATE.search(line.text):
        data["asked_for"] = size["size"] or size["bytes"]
    if index := _DEVICE_INDEX.search(line.text):
        data["gpu_index"] = int(index[1] or index[2])
    return Event(kind=f"cuda.{entry.id}", lines=(line,), data=data)


_WORDS = (
    *(
        "CUDA",
        "cuda",
        "Cuda",
        "cuInit",
        "OutOfMemory",
        "ECC error",
        "OOM when",
        "RESOURCE_EXHAUSTED",
        "CUBLAS",
    ),
    *("system not yet initialized", "(error code", "was encountered", "unspecified launch failure"),
)

DECODER = Decoder(
    id="cuda",
    needles=(
        b"CUDA",
        b"cuda",
        b"Cuda",
        b"cuInit",
        b"OutOfMemory",
        b"ECC error",
        b"OOM when",
        b"RESOURCE_EXHAUSTED",
        b"CUBLAS",
        b"system not yet initialized",
        b"(error code",
        b"was encountered",
        b"unspecified launch failure",
    ),
    decode=each(_WORDS, _parse),
)
