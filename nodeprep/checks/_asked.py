"""Whether the policy asks for a kernel argument, however it is spelt there."""

from __future__ import annotations

from collections.abc import Iterable

from nodeprep.model.policy import Policy
from nodeprep.node.kernel_cmdline import parse_word


def asked_argument(policy: Policy, wanted: Iterable[str]) -> str:
    """The first of some arguments that kernel_args.present or .replace asks for, with its list; "" for none.

    `pci=a,b` asks for both, and `pcie-aspm=off` is `pcie_aspm=off`.
    """
    lists = (("present", policy.kernel_args.present), ("replace", policy.kernel_args.replace))
    asked = {str(each): name for name, words in lists for word in words for each in parse_word(word)}
    found = next((argument for argument in wanted if argument in asked), "")
    return f"policy kernel_args.{asked[found]} ({found})" if found else ""
