"""Facts about this node in one round trip: the `nodeprep.facts/1` document as plain dicts.

Also a program: `python3 -m nodeprep.node.observe` prints the document of the machine it runs on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from datetime import datetime, timezone
from typing import Any, Dict, Optional, Sequence

from . import (
    aer_ownership,
    boot,
    boot_config,
    cpu,
    dmi,
    driver,
    iommu,
    kernel_log,
    kernel_use,
    memory,
    net,
    nvml,
    pci,
    storage,
)
from .paths import canonical_root, is_real
from .reading import attempt, part
from .version import VERSION

SCHEMA = "nodeprep.facts/1"
NVML_FIELDS = ("driver_version", "library_version", "cuda_version", "gpus")


def collect(
    root: str = "/",
    *,
    gpu_ids: Sequence[str] = (),
    nvml_deadline_s: float = 30.0,
    since: Optional[Dict[str, Any]] = None,
) -> Dict[str, Any]:
    """Everything known about this node. Never raises: what fails is an error reading.

    Args:
        root: "/" on a real machine; any other folder makes the facts simulated.
        gpu_ids: Further "vendor:device" pairs to take for GPUs; they make the facts simulated too.
        nvml_deadline_s: Seconds after which a hung NVML is given up.
        since: A log_cursor of earlier facts; the kernel log is read on from there.
    """
    started = time.monotonic()
    root = canonical_root(root)
    this_boot = part(boot.FIELDS, boot.collect, root)
    records = attempt(kernel_log.read_records, root)
    facts = {
        "schema": SCHEMA,
        "host": "",
        "hostname": boot.hostname(root),
        "simulated": not is_real(root) or bool(gpu_ids),
        "collected_at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "boot": this_boot,
        "cpu": part(cpu.FIELDS, cpu.collect, root),
        "memory": part(memory.FIELDS, memory.collect, root),
        "dmi": part(dmi.FIELDS, dmi.collect, root),
        "nics": attempt(net.collect, root),
        "pci": part(pci.FIELDS, pci.collect, root, gpu_ids),
        "iommu": part(iommu.FIELDS, iommu.collect, root),
        "aer_ownership": part(
            aer_ownership.FIELDS, aer_ownership.collect, root, this_boot["cmdline"], records
        ),
        "driver": part(driver.FIELDS, driver.collect, root),
        "log_cursor": {
            "boot_id": "",
            **part(kernel_log.CURSOR_FIELDS, kernel_log.cursor, this_boot["boot_id"], records),
        },
        "kernel_log": {
            "since": since,
            **part(kernel_log.FIELDS, kernel_log.since_cursor, since, this_boot["boot_id"], records),
        },
        "boot_loader": part(boot_config.FIELDS, boot_config.collect, root),
        "kernel_use": part(kernel_use.FIELDS, kernel_use.collect, root, this_boot["cmdline"], records),
        "disks": attempt(storage.collect, root),
        "nvml": {"partial": [], "lost": [], **part(NVML_FIELDS, nvml.collect, root, nvml_deadline_s)},
    }
    facts["collector"] = {
        "version": VERSION,
        "python": platform.python_version(),
        "euid": os.geteuid(),
        "duration_s": round(time.monotonic() - started, 3),
    }
    return facts


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Prints the facts as JSON."""
    parser = argparse.ArgumentParser(description="Print the facts of this node as JSON.")
    parser.add_argument("--root", default="/", help="root of a simulated machine")
    parser.add_argument("--gpu-id", action="append", default=[], metavar="VENDOR:DEVICE")
    parser.add_argument("--nvml-deadline-s", type=float, default=30.0)
    options = parser.parse_args(arguments)
    facts = collect(options.root, gpu_ids=options.gpu_id, nvml_deadline_s=options.nvml_deadline_s)
    json.dump(facts, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
