"""`python -m nodeprep.bmc.bios.table docs/bios-knobs.md DUMP...`: renews the tables of that page.

For each dump `{uri: body}` of a BMC it tells what each knob would be. The page's own words stay.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from nodeprep.bmc.bios.dump import logical_cpus, read_dump
from nodeprep.bmc.bios.knob import knobs
from nodeprep.bmc.bios.plan import plan
from nodeprep.bmc.bios.wanted import Wanted
from nodeprep.errors import UsageError
from nodeprep.model.bios import BiosKnobPlan, BiosPlan, BiosSetting, BiosValue

_LAST_NUMBER = re.compile(r"(.*?)(\d+)(\D*)")
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"

# What nodeprep's profiles ask, and full use of memory windows and requests for the rest.
ASKED = {
    "pcie_link_gen": Wanted("4"),
    "iommu": Wanted("disabled"),
    "aspm": Wanted("disabled"),
    "xhci_handoff": Wanted("disabled"),
    "above_4g": Wanted("enabled"),
    "resizable_bar": Wanted("enabled"),
    "sriov": Wanted("disabled"),
    "acs": Wanted("disabled"),
    "relaxed_ordering": Wanted("enabled"),
    "ten_bit_tags": Wanted("enabled"),
    "package_c_states": Wanted("disabled"),
}


def tree_plan(file: Path) -> BiosPlan:
    """The plan for the machine of a dump."""
    dump = json.loads(file.read_text(encoding="utf-8"))
    machine, view = read_dump(dump)
    return plan(machine, view, ASKED, logical_cpus=logical_cpus(dump))


def render(files: Sequence[Path]) -> str:
    """The tables: what is looked for by each knob, and what each dump has of it."""
    return "\n".join((*_words(), *(line for file in files for line in _tree(tree_plan(file)))))


def renew(page: str, tables: str) -> str:
    """A page with other tables between its marks.

    Raises:
        UsageError: The page lacks the marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"the page has no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def _words() -> Iterator[str]:
    yield "\n## What is looked for\n"
    yield "| Knob | Values | Looked for |"
    yield "|---|---|---|"
    for knob in knobs().values():
        yield f"| `{knob.id}` | {', '.join(knob.values)} | {_cell(knob.matcher.looked_for)} |"


def _tree(found: BiosPlan) -> Iterator[str]:
    yield f"\n## {found.bmc.vendor} {found.bmc.model}, BIOS {found.bmc.bios}\n"
    yield "| Asked | Status | Attributes and values | Why |"
    yield "|---|---|---|---|"
    for entry in found.knobs:
        yield (
            f"| `{entry.knob}={entry.wanted}` | {entry.status} | {_cell(_settings(entry.attributes))} "
            f"| {_cell(_why(entry))} |"
        )


def _settings(attributes: Sequence[BiosSetting]) -> str:
    """Attributes by the value they are to have, those of a row of slots in short."""
    by_value: dict[tuple[BiosValue, BiosValue], list[str]] = {}
    for one in attributes:
        by_value.setdefault((one.current, one.value), []).append(one.name)
    texts = []
    for (current, value), names in by_value.items():
        now = "" if current == value else f" (now {current})"
        texts.append(f"{', '.join(_in_short(names))} = {value}{now}")
    return "; ".join(texts) or "none"


def _in_short(names: Sequence[str]) -> Iterator[str]:
    """Names that differ in one number as one: `PciSlot{1,2,10}LinkSpeed`."""
    numbers: dict[tuple[str, str], list[str]] = {}
    for name in names:
        found_number = _LAST_NUMBER.fullmatch(name)
        before, number, after = found_number.groups() if found_number else (name, "", "")
        numbers.setdefault((before, after), []).append(number)
    for (before, after), found in numbers.items():
        many = f"{{{','.join(sorted(found, key=int))}}}" if len(found) > 1 else found[0]
        yield f"`{before}{many}{after}`"


def _why(entry: BiosKnobPlan) -> str:
    return entry.reason.replace(f". Looked for: {knobs()[entry.knob].matcher.looked_for}", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(arguments: Sequence[str]) -> None:
    """Renews the page named first with the dumps named after it."""
    page, *dumps = (Path(argument) for argument in arguments)
    tables = render(dumps)
    page.write_text(renew(page.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
