"""`nodeprep bios plan` over a thousand BMCs in one run: wall time, CPU for each BMC, memory, nobody lost.

Run by hand:  python benchmarks/bios_plan_many.py DUMP... [--count 1000]

Simulated BMCs serve the dumps in turn from one process, with TLS, on this machine: it pays for both sides.
Among them are one where nobody listens, one that takes connections and never answers, one with another
password and one with another certificate. Prints a JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

SECRET = "correct-horse-4711"  # noqa: S105 - of simulated BMCs
WANTED = ("--set", "pcie_link_gen=4", "--set", "iommu=disabled")
NODEPREP = (sys.executable, "-m", "nodeprep.cli")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures once, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("dumps", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bios-bench-") as folder, contextlib.ExitStack() as stack:
        print(json.dumps(measure(asked.dumps, asked.count, Path(folder), stack), indent=2))


def measure(dumps: Sequence[Path], count: int, folder: Path, stack: contextlib.ExitStack) -> dict[str, Any]:
    """The figures of one run."""
    many, server = stack.enter_context(simulator(dumps, count, folder / "tls"))
    hung, _ = stack.enter_context(simulator(dumps[:1], 1, folder / "tls", "--fault", "hang"))
    strange, _ = stack.enter_context(simulator(dumps[:1], 1, folder / "other"))
    silent = stack.enter_context(socket.socket())
    silent.bind(("127.0.0.1", 0))
    for name, text in (("good", SECRET), ("bad", "wrong")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)

    def host(port: int, kept_in: str = "good") -> dict[str, Any]:
        bmc = {"protocol": "redfish", "address": "127.0.0.1", "port": port, "user": "admin", "ca": many["ca"]}
        return {"nodeprep_bmc": bmc, "nodeprep_bmc_password_file": str(folder / kept_in)}

    ports = [int(one["url"].rsplit(":", 1)[1]) for one in many["bmcs"]]
    hosts = {f"node{number:04d}": host(port) for number, port in enumerate(ports)}
    hosts |= {
        "dead": host(silent.getsockname()[1]),
        "hung": host(int(hung["url"].rsplit(":", 1)[1])),
        "badpass": host(ports[0], "bad"),
        "badcert": host(int(strange["url"].rsplit(":", 1)[1])),
    }
    inventory = folder / "hosts.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
    server_before = cpu_s(server.pid)
    began = time.monotonic()
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        planning = subprocess.Popen(
            [*NODEPREP, "bios", "plan", "-i", str(inventory), *WANTED, "--json"],
            stdout=out,
            stderr=err,
            env={**os.environ, "NODEPREP_HOME": str(folder / "home")},
        )
        _, status, used = os.wait4(planning.pid, 0)
    wall_s = time.monotonic() - began
    document = json.loads((folder / "out").read_text())
    lost = set(hosts) - set(document["hosts"]) - set(document["errors"])
    return {
        "bmcs": len(hosts),
        "exit_code": os.waitstatus_to_exitcode(status),
        "plans": len(document["hosts"]),
        "errors": {name: error["error"] for name, error in document["errors"].items()},
        "lost": sorted(lost),
        "wall_s": round(wall_s, 1),
        "cpu_ms_a_bmc": round(1000 * (used.ru_utime + used.ru_stime) / len(hosts), 1),
        "peak_mib": round(used.ru_maxrss / 1024),
        "server_cpu_ms_a_bmc": round(1000 * (cpu_s(server.pid) - server_before) / len(hosts), 1),
    }


@contextlib.contextmanager
def simulator(
    dumps: Sequence[Path], count: int, tls: Path, *more: str
) -> Iterator[tuple[dict[str, Any], subprocess.Popen[bytes]]]:
    """BMCs in a process of their own, while the block runs."""
    named = [word for dump in dumps for word in ("--dump", str(dump))]
    command = [*NODEPREP, "sim", "bmc", *named, "--count", str(count), "--tls-folder", str(tls), *more]
    serving = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, "NODEPREP_BMC_PASSWORD": SECRET}
    )
    try:
        assert serving.stdout is not None  # noqa: S101 - it was asked for
        yield json.loads(serving.stdout.readline()), serving
    finally:
        serving.terminate()
        serving.wait()


def cpu_s(pid: int) -> float:
    """CPU time a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
