"""What a policy must not say, beyond what its types can tell.

The rules read the raw data, so that they report in the same pass as the type faults; a part of the
wrong type is simply not looked at here, its type fault is reported elsewhere.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from nodeprep.errors import Problem
from nodeprep.model.policy import KernelArgs
from nodeprep.node.kernel_cmdline import Argument, parse_word, words

# Options that circulate on the web and that no mainline kernel knows.
# Source: drivers/pci/pci.c pci_setup() prints "PCI: Unknown option" for it.
_NO_SUCH_OPTION = {
    "pci=noacs": "ACS redirection is switched by pci=disable_acs_redir=<device> or in the BIOS",
}

# Options with few values, where the kernel passes over any other one without a word.
# Source: Linux, drivers/pci/pcie/aspm.c pcie_aspm_disable() and policy_str; drivers/pci/pcie/portdrv.c
# pcie_port_setup().
_VALUES = {
    "pcie_aspm": ("off", "force"),
    "pcie_aspm.policy": ("default", "performance", "powersave", "powersupersave"),
    "pcie_ports": ("native", "compat", "dpc-native"),
}


def rule_problems(policy: Any, root: str, known_checks: Collection[str]) -> Iterator[Problem]:
    """All faults of meaning in a raw `nodeprep_policy`."""
    if not isinstance(policy, Mapping):
        return
    yield from _kernel_args(policy.get("kernel_args"), f"{root}.kernel_args")
    yield from _power_limit(policy.get("gpu"), f"{root}.gpu.power_limit")
    yield from _link_generation(policy, root)
    yield from _waivers(policy.get("waivers"), f"{root}.waivers", known_checks)


def _kernel_args(section: Any, path: str) -> Iterator[Problem]:
    if section is None:
        return
    if not isinstance(section, Mapping):
        return
    lists: dict[str, list[tuple[str, Argument]]] = {}
    defaults = KernelArgs()
    for name, default in (("present", defaults.present), ("absent", defaults.absent), ("replace", ())):
        given = section.get(name, default)
        entries = given if isinstance(given, list | tuple) else ()
        lists[name] = []
        for index, entry in enumerate(entries):
            if not isinstance(entry, str):
                continue
            at = f"{path}.{name}[{index}]"
            fault = _argument_fault(entry)
            if fault:
                yield Problem(at, *fault)
            else:
                lists[name].extend((at, argument) for argument in parse_word(entry))
    wanted = [*lists["present"], *lists["replace"]]
    yield from _repeats(wanted)
    yield from _repeats(lists["absent"])
    yield from _not_the_only_one(lists["present"], lists["replace"])
    yield from _overrides(section.get("override"), f"{path}.override", [each for _, each in wanted])
    for at, argument in wanted:
        for _, unwanted in lists["absent"]:
            if argument.matches(unwanted):
                where = "" if "absent" in section else " (which is there by default)"
                yield Problem(
                    f"{path}.absent" if ".present[" in at and "present" not in section else at,
                    f"{argument} is asked to be present, and absent by {unwanted}{where}",
                    "keep it in one of the two lists; a list that is left out has the default entries",
                )


def _not_the_only_one(
    present: list[tuple[str, Argument]], replace: list[tuple[str, Argument]]
) -> Iterator[Problem]:
    for at, argument in replace:
        rival = next((other for _, other in present if other.key == argument.key), None)
        if rival is not None:
            yield Problem(
                at,
                f"{argument} is to be the only value of {argument.key}, and present asks for {rival}",
                "name a key in one of the two lists",
            )


def _overrides(section: Any, path: str, wanted: list[Argument]) -> Iterator[Problem]:
    for index, entry in enumerate(section if isinstance(section, list | tuple) else ()):
        if not isinstance(entry, Mapping):
            continue
        at = f"{path}[{index}]"
        for key, why in (("owner", "name who answers for it"), ("why", "say why in a sentence")):
            if isinstance(entry.get(key), str) and not entry[key].strip():
                yield Problem(f"{at}.{key}", "is empty", why)
        named = entry.get("argument")
        if isinstance(named, str) and not set(parse_word(named)) & set(wanted):
            asked = ", ".join(map(str, wanted)) or "none"
            yield Problem(f"{at}.argument", f"{named} is not asked for", f"arguments asked for: {asked}")


def _argument_fault(entry: str) -> tuple[str, str] | None:
    if not entry.strip():
        return "an empty argument", "remove the entry"
    split = words(entry)
    if split != (entry,):
        return f"{entry!r} is not one kernel argument", "write one argument an entry, without spaces"
    if not re.match(r"^[A-Za-z0-9_.\-]+(=.*)?$", entry, re.DOTALL):
        return f"{entry!r} is not a kernel argument", "write NAME or NAME=VALUE"
    for argument in parse_word(entry):
        if str(argument) in _NO_SUCH_OPTION:
            return f"the kernel has no option {argument}", _NO_SUCH_OPTION[str(argument)]
        values = _VALUES.get(argument.key)
        if values is not None and argument.value is not None and argument.value not in values:
            return f"{argument.key} takes no {argument.value!r}", f"one of {', '.join(values)}"
    return None


def _repeats(entries: list[tuple[str, Argument]]) -> Iterator[Problem]:
    for index, (at, argument) in enumerate(entries):
        earlier = entries[:index]
        if any(argument == other for _, other in earlier):
            yield Problem(at, f"{argument} is listed twice", "keep it once")
        else:
            clash = next((other for _, other in earlier if argument.contradicts(other)), None)
            if clash is not None and ".absent[" not in at:
                yield Problem(at, f"{argument} contradicts {clash}", "keep the one that is meant")


def _power_limit(section: Any, path: str) -> Iterator[Problem]:
    limit = section.get("power_limit") if isinstance(section, Mapping) else None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%|W)", limit) if isinstance(limit, str) else None
    if found is None:
        return
    number, unit = float(found[1]), found[2]
    if unit == "%" and not 1 <= number <= 100:
        yield Problem(
            path, f"{limit} is not from 1 to 100 %", "per cent of the GPU's default limit, such as 93%"
        )
    if unit == "W" and number < 1:
        yield Problem(path, f"{limit} is no power limit", "watts within the GPU's constraints, such as 650W")


def _link_generation(policy: Mapping[str, Any], root: str) -> Iterator[Problem]:
    bios, link = policy.get("bios"), policy.get("pcie_link")
    if not isinstance(bios, Mapping) or not isinstance(link, Mapping):
        return
    set_to, wanted = bios.get("pcie_link_gen"), link.get("gen")
    if isinstance(set_to, int) and isinstance(wanted, int) and set_to != wanted:
        yield Problem(
            f"{root}.pcie_link.gen",
            f"wants generation {wanted}, and bios.pcie_link_gen sets {set_to}",
            "give both the same generation, or leave one out",
        )


def _waivers(waivers: Any, path: str, known_checks: Collection[str]) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for index, waiver in enumerate(waivers if isinstance(waivers, list | tuple) else ()):
        if not isinstance(waiver, Mapping):
            continue
        at = f"{path}[{index}]"
        check, host = waiver.get("check"), waiver.get("host", "*")
        if isinstance(check, str) and check not in known_checks:
            close = difflib.get_close_matches(check, known_checks, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"checks: {', '.join(sorted(known_checks))}"
            yield Problem(f"{at}.check", f"there is no check {check!r}", hint)
        for key, why in (
            ("owner", "name who answers for it"),
            ("why", "say why in a sentence"),
            ("host", "name a host, a pattern, or leave it out for all hosts"),
        ):
            if isinstance(waiver.get(key), str) and not waiver[key].strip():
                yield Problem(f"{at}.{key}", "is empty", why)
        if isinstance(check, str) and isinstance(host, str):
            if (check, host) in seen:
                yield Problem(at, f"{check} is waived twice for host {host!r}", "keep one, with one end")
            seen.add((check, host))
