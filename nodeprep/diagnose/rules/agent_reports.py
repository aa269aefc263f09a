"""What health agents say with nothing in the log that explains it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, of, times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """Failed diagnostics, events without a code, devices held back, readings that came out as ERR!."""
    for host in evidence.hosts:
        failed = evidence.open("agent.diag_failed", host=host)
        if failed:
            gpus = sorted({gpu for event in failed for gpu in event.data.get("gpus", ())})
            tests = listed(dict.fromkeys(str(event.data["test"]) for event in failed))
            yield Finding(
                layer="hardware",
                severity="error",
                summary=f"GPU diagnostics failed: {tests}" + (f" (GPU {listed(gpus)})" if gpus else ""),
                why=f"DCGM's own tests failed {times(total(failed))}.",
                events=tuple(failed),
                action="drain",
                then=("run_diagnostics", "read_kernel_log", "rma_if_it_returns"),
            )
        inforom = evidence.open("nvml.inforom_corrupted", host=host)
        if inforom:
            yield Finding(
                layer="hardware",
                severity="warning",
                device=inforom[0].device,
                summary=f"the InfoROM of {of(inforom[0].device)} is corrupted",
                why="The board's own store fails its check. The GPU computes all the same; its "
                "records cannot be trusted.",
                events=tuple(inforom),
                action="run_diagnostics",
                then=("reset_gpu", "report_to_vendor", "rma_if_it_returns"),
            )
        unknown = evidence.open("nvml.unknown_event", host=host)
        held = evidence.open("agent.unhealthy", "agent.other_event", host=host)
        if unknown:
            yield Finding(
                layer="driver",
                severity="warning",
                summary="NVML sent an event with code 999, which is no Xid",
                why="999 stands for an unknown error of NVML; no Xid of that number exists, and "
                "none is guessed.",
                events=(*unknown, *held),
                action="run_diagnostics",
                then=("read_kernel_log", "restart_device_plugin"),
                xids=(),
            )
        elif [event for event in held if event.kind == "agent.unhealthy"]:
            yield Finding(
                layer="driver",
                severity="warning",
                summary="an agent holds a GPU back as unhealthy, and nothing here says why",
                why="The device plugin never takes a GPU back by itself, so this may be long past.",
                events=tuple(held),
                action="run_diagnostics",
                then=("read_kernel_log", "restart_device_plugin"),
            )
        nothing = evidence.open("nvml.no_devices", "nvml.gpu_access_blocked", host=host)
        if nothing:
            yield Finding(
                layer="driver",
                severity="error",
                summary="NVML sees no GPU",
                why="The driver answers and has no GPU to offer; the kernel log and lspci tell "
                "whether the bus still has one.",
                events=tuple(nothing),
                action="run_diagnostics",
                then=("check_driver_and_gpu_count", "read_kernel_log", "reboot_node"),
            )
        for _, device, cells in evidence.by_device(evidence.open("smi.err_cell", host=host)):
            repeated = len({event.lines[0].source for event in cells}) > 1
            yield Finding(
                layer="driver",
                severity="warning" if repeated else "info",
                device=device,
                summary=f"a reading of {of(device)} came out as ERR!",
                why=(
                    "It came out so in more than one reading."
                    if repeated
                    else "One such cell may pass by itself, and nothing else of this GPU is wrong "
                    "in this log."
                ),
                events=tuple(cells),
                action="run_diagnostics" if repeated else "observe",
                then=("read_counters_again", "read_kernel_log"),
            )


RULE = Rule(id="agent_reports", rank=86, explain=explain)
