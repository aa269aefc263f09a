"""`nodeprep inspect`: facts of each node; changes nothing."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from nodeprep.cli import _command
from nodeprep.cli._aer import rows, uncounted
from nodeprep.cli._bios import fact_lines
from nodeprep.cli._output import Output
from nodeprep.cli._sensors import COLUMNS, worst_rows
from nodeprep.errors import ExitCode, worst
from nodeprep.model.bmc import BmcSensors
from nodeprep.model.facts import NodeFacts
from nodeprep.model.outputs import FactsList
from nodeprep.model.reading import Reading
from nodeprep.workflows.inspect import inspect as run_inspect
from nodeprep.workflows.session import Request


@_command.over_hosts
def inspect(
    asked: Request,
    out: Output,
) -> ExitCode:
    """Show what each node really is: PCI tree, GPUs, kernel, firmware, BMC. Changes nothing."""
    with _command.session(asked, "inspect", out) as session:
        found = run_inspect(session)
        run = session.run_document()
    facts = found.facts
    code = worst([*map(_command.exit_of, run.hosts), *map(_exit_of_facts, facts.values())])
    if len(run.hosts) == 1:
        out.document(next(iter(facts.values())) if facts else _command.lost_document(run, code))
    else:
        out.document(FactsList(run=run, hosts=facts))
    for each in facts.values():
        _show(each, out)
    for host, sensors in found.sensors.items():
        if host not in facts:
            _show_sensors(host, sensors, out)
    _command.explain_lost(run, out)
    return code


def _exit_of_facts(facts: NodeFacts) -> ExitCode:
    """A node whose GPUs, or whose named BMC, could not be read was not inspected."""
    unread = facts.nvml.gpus.value is None or "error" in (facts.bios.state, facts.sensors.state)
    return ExitCode.INCONCLUSIVE if unread else ExitCode.OK


def _show(facts: NodeFacts, out: Output) -> None:
    nvml = facts.nvml
    mark = " (simulated)" if facts.simulated else ""
    out.show(
        f"[bold]{escape(facts.host)}[/]{mark}: {escape(facts.dmi.product_name.value or 'unknown machine')}, "
        f"kernel {_text(facts.boot.kernel_release)}, NVIDIA driver {_text(facts.driver.nvidia_version)}"
    )
    if nvml.gpus.value is None:
        hint = "nvidia-smi on the node should list its GPUs within seconds; mend the driver first"
        out.error(f"{facts.host}: GPUs unreadable: {nvml.gpus.detail}", hint)
    gpus = nvml.gpus.value or nvml.partial
    table = _command.table(("GPU", "name", "link", "power limit", "persistence", "temperature", "port above"))
    for gpu in gpus:
        table.add_row(
            gpu.pci_address,
            _text(gpu.name),
            f"Gen{_text(gpu.link.gen)} x{_text(gpu.link.width_lanes)}",
            f"{_text(gpu.power.enforced_w)} of {_text(gpu.power.default_w)} W",
            _switch(gpu.persistence),
            f"{_text(gpu.temperature.gpu_c)} °C",
            _port_above(facts, gpu.pci_address),
        )
    if gpus:
        out.show(table)
    _show_aer(facts, out)
    _show_bios(facts, out)
    if facts.bios.state != "error":
        # The BMC that gave no BIOS was not asked for more.
        _show_sensors(facts.host, facts.sensors, out)
    known = {gpu.pci_address for gpu in nvml.gpus.value or ()}
    for path in facts.pci.gpu_paths.value or ():
        if nvml.gpus.value is not None and path.gpu not in known:
            out.error(f"{facts.host}: {path.gpu} is on the PCI bus and NVML does not know it")


def _show_bios(facts: NodeFacts, out: Output) -> None:
    bios = facts.bios
    if bios.value is not None:
        for line in fact_lines(bios.value):
            out.show(escape(line))
    elif bios.state == "error":
        out.error(f"{facts.host}: BIOS unreadable: {bios.detail}")


def _show_sensors(host: str, sensors: Reading[BmcSensors], out: Output) -> None:
    if sensors.state == "error":
        out.error(f"{host}: sensors of its BMC unreadable: {sensors.detail}")
    if sensors.value is None:
        return
    rows_of = list(worst_rows(sensors.value))
    if rows_of:
        mark = " (simulated)" if sensors.value.simulated else ""
        out.show(f"sensors of the BMC of {escape(host)}{mark}, over {sensors.value.source}:")
        table = _command.table(COLUMNS)
        for row in rows_of:
            table.add_row(*map(escape, row))
        out.show(table)
    for note in sensors.value.notes:
        out.show(f"  note: {escape(note)}")


def _show_aer(facts: NodeFacts, out: Output) -> None:
    why = uncounted(facts)
    if why:
        out.show(f"PCIe errors are not counted: {escape(why)}")
    counted = list(rows(facts))
    if counted:
        table = _command.table(("PCIe errors at", "which is", "error", "count since boot"))
        for row in counted:
            table.add_row(*map(escape, row))
        out.show(table)


def _text(reading: Reading[Any]) -> str:
    if reading.value is None:
        return "?" if reading.state == "error" else "n/a"
    return f"{reading.value:g}" if isinstance(reading.value, float) else str(reading.value)


def _switch(reading: Reading[bool]) -> str:
    return _text(reading) if reading.value is None else "on" if reading.value else "off"


def _port_above(facts: NodeFacts, gpu: str) -> str:
    for path in facts.pci.gpu_paths.value or ():
        if path.gpu == gpu:
            return path.hops[-2] if len(path.hops) > 1 else "out of sight"
    return "?"
