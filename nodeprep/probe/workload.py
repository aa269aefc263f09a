"""What a model does to a node: its shape, checked strictly, with its FLOPs and memory need."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping

from .problem import UsageProblem
from .workloads import SHIPPED

DTYPE_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4}
LAUNCH_MODES = ("explicit",)
GIB = 1 << 30

# Smallest and largest sensible value of each whole number: beyond these a file is a slip of the pen.
_RANGES = {
    "width": (16, 65536),
    "depth": (1, 512),
    "heads": (1, 1024),
    "ffn": (16, 1 << 20),
    "patch": (1, 256),
    "image_height": (1, 65536),
    "image_width": (1, 65536),
    "batch": (1, 4096),
    "seed": (0, (1 << 31) - 1),
}
_OPTIONAL = {"seed": 20240229, "dtype": "fp16", "launch": "explicit"}


@dataclass(frozen=True)
class Workload:
    """A vision transformer and the input it gets.

    Attributes:
        width: Model width d.
        ffn: Width of the hidden layer of the feed-forward part.
        patch: Edge of a square patch, pixels.
        batch: Images an iteration.
        dtype: "fp16", "bf16" or "fp32".
        seed: Of the weights and the image; the same seed gives the same bits on every backend.
        launch: "explicit": every kernel is launched by the host, as opposed to a graph replay.
    """

    name: str
    width: int
    depth: int
    heads: int
    ffn: int
    patch: int
    image_height: int
    image_width: int
    batch: int
    dtype: str
    seed: int
    launch: str

    @property
    def patches(self) -> int:
        """Patches of one image."""
        return (self.image_height // self.patch) * (self.image_width // self.patch)

    @property
    def tokens(self) -> int:
        """Patches and the class token."""
        return self.patches + 1

    @property
    def flops(self) -> int:
        """Floating-point operations of one iteration: the matrix products of the blocks.

        depth x (2 T (4 d^2 + 2 d m) + 4 T^2 d) an image; the patch embedding (under 0.1 %) is left out.
        """
        t, d, m = self.tokens, self.width, self.ffn
        return self.batch * self.depth * (2 * t * (4 * d * d + 2 * d * m) + 4 * t * t * d)

    @property
    def parameters(self) -> int:
        """Weights and biases of the whole model."""
        d, m = self.width, self.ffn
        block = 4 * d * d + 2 * d * m + (3 * d + d + m + d) + 4 * d
        embedding = 3 * self.patch * self.patch * d + d
        return self.depth * block + embedding + self.tokens * d + d + 2 * d

    @property
    def memory_bytes(self) -> int:
        """Device memory one GPU needs, on the safe side; streaming buffers and context included.

        Weights, six tensors of model width and two of FFN width alive at once (the residual stream,
        its norm, q, k, v and the attention's output; the hidden layer before and after GELU), the
        32-bit counters from which the largest weight is made, the copies' four buffers of 256 MiB,
        1 GiB for the context and libraries. Measured peak of vit-g: 12.3 GiB, estimated here: 15.7.
        """
        size = DTYPE_BYTES[self.dtype]
        live = self.batch * self.tokens * (6 * self.width + 2 * self.ffn) * size
        making = 3 * 4 * max(self.width * self.ffn, 3 * self.width * self.width)
        return self.parameters * size + live + making + 2 * GIB

    def document(self) -> Dict[str, Any]:
        """The workload as the result names it, with its digest."""
        return {**dataclasses.asdict(self), "digest": self.digest}

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over the parameters, as canonical JSON."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def load(asked: str) -> Workload:
    """A shipped workload by name, or the JSON file at a path.

    Raises:
        UsageProblem: Unknown name, unreadable file, or a file that is not a workload; every fault
            of the file is listed.
    """
    if asked in SHIPPED:
        return parse(SHIPPED[asked], asked)
    if os.sep not in asked and not asked.endswith(".json"):
        close = difflib.get_close_matches(asked, SHIPPED, n=1)
        raise UsageProblem(
            "unknown workload %r" % asked,
            hint="did you mean %s?" % close[0]
            if close
            else "shipped are %s; a file of your own ends in .json" % ", ".join(sorted(SHIPPED)),
        )
    try:
        with open(asked, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise UsageProblem(
            "cannot read the workload %s: %s" % (asked, error),
            hint="a workload file is one JSON object with the keys %s" % ", ".join(_keys()),
        ) from error
    found = parse(data, asked)
    if found.name in SHIPPED and found != parse(SHIPPED[found.name], found.name):
        raise UsageProblem(
            "%s: %r is the name of a shipped workload with other numbers" % (asked, found.name),
            hint="give yours a name of its own: certificates name the workload they were issued for",
        )
    return found


def parse(data: Any, source: str) -> Workload:
    """A workload from plain data.

    Raises:
        UsageProblem: With all faults at once, each with its key.
    """
    if not isinstance(data, dict):
        raise UsageProblem("%s: expected a mapping, got %s" % (source, type(data).__name__))
    filled = {**_OPTIONAL, **data}
    problems = list(_problems(filled))
    if problems:
        lines = "".join("\n  " + problem for problem in problems)
        raise UsageProblem(
            "%s: %d problem%s%s" % (source, len(problems), "s" * (len(problems) != 1), lines),
            hint="the keys are described in docs/probe.md",
        )
    return Workload(**filled)


def _keys() -> List[str]:
    return [field.name for field in dataclasses.fields(Workload)]


def _problems(data: Mapping[str, Any]) -> Iterator[str]:
    known = _keys()
    for key in data:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            yield "%s: unknown key%s" % (key, "; did you mean %s?" % close[0] if close else "")
    numbers_fit = True
    for key in known:
        fault = "missing" if key not in data else _value_fault(key, data[key])
        if fault:
            numbers_fit = numbers_fit and key not in _RANGES
            yield "%s: %s" % (key, fault)
    if numbers_fit:
        yield from _shape_faults(data)


def _value_fault(key: str, value: Any) -> str:
    if key in _RANGES:
        low, high = _RANGES[key]
        if isinstance(value, bool) or not isinstance(value, int):
            return "must be a whole number, is %r" % (value,)
        return "" if low <= value <= high else "must be between %d and %d, is %d" % (low, high, value)
    if not isinstance(value, str) or not value:
        return "must be a text, is %r" % (value,)
    choices = {"dtype": tuple(DTYPE_BYTES), "launch": LAUNCH_MODES}.get(key)
    if choices and value not in choices:
        return "must be one of %s, is %r" % (", ".join(choices), value)
    return ""


def _shape_faults(data: Mapping[str, Any]) -> Iterator[str]:
    if data["width"] % data["heads"]:
        yield "width: %d cannot be divided by heads %d" % (data["width"], data["heads"])
    # Digests read rows of the output as 64-bit words.
    if data["width"] % 8:
        yield "width: must be a multiple of 8, is %d" % data["width"]
    for key in ("image_height", "image_width"):
        if data[key] % data["patch"]:
            yield "%s: %d cannot be divided by patch %d" % (key, data[key], data["patch"])
    # The generator of weights counts in 32 bits.
    largest = max(data["width"] * data["ffn"], 3 * data["width"] * data["width"])
    if largest >= 1 << 31:
        yield "width: a weight of %d values is too large" % largest
    pixels = data["batch"] * 3 * data["image_height"] * data["image_width"]
    if pixels >= 1 << 31:
        yield "batch: an input of %d values is too large" % pixels
