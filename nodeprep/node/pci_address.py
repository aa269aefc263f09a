"""PCI addresses: one spelling for all the ways sources print them."""

from __future__ import annotations

import re
from typing import List

PATTERN = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"

_WHOLE = re.compile(
    r"(?P<domain>[0-9a-fA-F]{4,8}):(?P<bus>[0-9a-fA-F]{2}):(?P<device>[0-9a-fA-F]{2})(?:\.(?P<function>[0-7]))?"
)
_COMPONENT = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def normalise(text: str) -> str:
    """`dddd:bb:dd.f` in lower case.

    NVML prints eight upper-case domain digits, the NVIDIA kernel module leaves the function out
    (it is 0 then), sysfs prints the form wanted here.

    Raises:
        ValueError: It is not a PCI address.
    """
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a PCI address: {text!r}")
    domain = int(match.group("domain"), 16)
    bus, device = match.group("bus").lower(), match.group("device").lower()
    return f"{domain:04x}:{bus}:{device}.{match.group('function') or '0'}"


def addresses_in(path: str) -> List[str]:
    """PCI addresses among the components of a sysfs device path, from the root bus downwards."""
    return [name for name in path.split("/") if _COMPONENT.fullmatch(name)]
