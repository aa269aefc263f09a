"""The workloads that ship with the probe, as data; a user's own is a file with the same keys."""

from __future__ import annotations

from typing import Any, Dict

# Source of vit-g: a wafer-inspection model in production, fixed input 2048 x 1536, batch 5, one
# synchronisation an iteration; it took GPUs off the bus that survived other stress programs.
SHIPPED: Dict[str, Dict[str, Any]] = {
    "vit-g": {
        "name": "vit-g",
        "width": 4096,
        "depth": 16,
        "heads": 32,
        "ffn": 16384,
        "patch": 16,
        "image_height": 1536,
        "image_width": 2048,
        "batch": 5,
        "dtype": "fp16",
        "seed": 20240229,
        "launch": "explicit",
    },
    # As deep as vit-g, so that a block's number means the same in a rehearsal; small enough for a CPU.
    "tiny": {
        "name": "tiny",
        "width": 64,
        "depth": 16,
        "heads": 4,
        "ffn": 256,
        "patch": 8,
        "image_height": 32,
        "image_width": 32,
        "batch": 1,
        "dtype": "fp16",
        "seed": 20240229,
        "launch": "explicit",
    },
}
