"""How long `nodeprep diagnose` takes for a large kernel log, against `grep -E` for the same words.

    python benchmarks/diagnose_speed.py [--mib 1024] [--runs 3] [--folder /tmp]

The log is made anew: lines of a busy node about everything but GPUs, and in every ten thousand a few that
matter (AER, Xid), so that both programs have something to find. grep is given the words of the prefilter
as alternatives, and only counts the lines it finds; nodeprep makes events and incidents of them.
Wall time is compared run by run, one program after the other, and the best run of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from nodeprep.diagnose.engine import wanted_words

MOST_TIMES_GREP = 2.0
MOST_MIB = 200
_OTHERS = (
    'audit: type=1400 audit(1700000000.%d:%d): apparmor="STATUS" operation="profile_replace" pid=%d',
    "docker0: port %d(veth%x) entered blocking state",
    "eth0: renamed from veth%x%x",
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth%x: link becomes ready",
    "EXT4-fs (nvme%dn1p2): mounted filesystem with ordered data mode. Quota mode: none.",
    "usb 1-%d: new high-speed USB device number %d using xhci_hcd",
    "mlx5_core 0000:%02x:00.0 ens%df0: Link up",
    "perf: interrupt took too long (%d > %d), lowering kernel.perf_event_max_sample_rate",
    "IPVS: rr: UDP 10.0.%d.%d:53 - no destination available",
    "[UFW BLOCK] IN=ens3 OUT= SRC=10.0.0.%d DST=10.0.0.%d LEN=40 TOS=0x00 TTL=243 PROTO=TCP SPT=%d",
)
_MATTER = (
    "pcieport 0000:40:01.1: AER: Corrected error received: 0000:40:01.1",
    "pcieport 0000:40:01.1: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)",
    "pcieport 0000:40:01.1:   device [1022:14ab] error status/mask=00001000/00006000",
    "pcieport 0000:40:01.1:    [12] Timeout",
    "NVRM: Xid (PCI:0000:41:00): 31, pid=%d, name=python3, Ch 00000010, intr 00000000. MMU Fault: ENGINE "
    "GRAPHICS GPCCLIENT_T1_2 faulted @ 0x7f1a_20000000. Fault is of type FAULT_PDE ACCESS_TYPE_READ",
)
_EVERY = 10_000
_LINES_A_DAY = 400_000


def write_log(path: Path, mib: int) -> None:
    """A kern.log of that size, the same each time: one boot after the other, a day each."""
    day = b"".join(_day())
    with path.open("wb") as out:
        for number in range(-(-(mib << 20) // len(day))):
            out.write(day.replace(b"Nov  1", b"Nov %2d" % (1 + number % 28)))
        out.truncate(mib << 20)


def _day() -> Iterator[bytes]:
    choose = random.Random(1)  # noqa: S311  # a benchmark, no secret
    uptime = 0.0
    yield b"Nov  1 00:00:00 node07 kernel: [    0.000000] Linux version 6.8.0-79-generic\n"
    for number in range(_LINES_A_DAY):
        uptime += choose.random() * 0.2
        place = number % _EVERY
        text = _MATTER[place] if place < len(_MATTER) else choose.choice(_OTHERS)
        values = tuple(choose.randrange(1, 255) for _ in range(len(re.findall(r"%[\d]*[dx]", text))))
        second = int(uptime)
        clock = f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        yield f"Nov  1 {clock} node07 kernel: [{uptime:12.6f}] {text % values}\n".encode()


def _escaped(word: bytes) -> bytes:
    return re.sub(rb"([][\\.*^$()|+?{}])", rb"\\\1", word)


def measure(command: list[str], locale: str) -> dict[str, float]:
    """Wall time, processor time and peak memory of a command, which must end by itself."""
    begun = time.monotonic()
    environment = {**os.environ, "LC_ALL": locale}
    # No /dev/null: grep sees that nobody reads, and ends with the first line it finds.
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(command, stdout=output, env=environment) as process,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 20, 21) and not (command[0] == "grep" and process.returncode == 1):
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return {
        "wall_s": round(time.monotonic() - begun, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_mib": round(usage.ru_maxrss / 1024, 1),
    }


def main() -> int:
    """Makes the log, runs both, prints the figures; 1 when a limit does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="nodeprep-benchmark-", dir=asked.folder))
    try:
        log, patterns = folder / "kern.log", folder / "patterns"
        write_log(log, asked.mib)
        patterns.write_bytes(b"|".join(_escaped(word) for word in wanted_words()) + b"\n")
        commands = {
            "grep": ["grep", "-c", "-E", "-f", str(patterns), str(log)],
            "nodeprep": [sys.executable, "-m", "nodeprep.cli", "diagnose", "--json", "-q", str(log)],
        }
        best: dict[str, dict[str, float]] = {}
        for _ in range(asked.runs):
            for name, locale in (("grep", "C"), ("grep", "C.UTF-8"), ("nodeprep", "C.UTF-8")):
                got = measure(commands[name], locale)
                key = f"{name} LC_ALL={locale}"
                best[key] = min(best.get(key, got), got, key=lambda each: each["wall_s"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ours, grep = best["nodeprep LC_ALL=C.UTF-8"], best["grep LC_ALL=C"]
    times = {name: round(ours[name] / grep[name], 2) for name in ("wall_s", "cpu_s")}
    held = times["wall_s"] <= MOST_TIMES_GREP and ours["peak_mib"] <= MOST_MIB
    told = {"mib": asked.mib, "words": len(wanted_words()), "best": best, "times_grep": times, "held": held}
    sys.stdout.write(json.dumps(told, indent=1) + "\n")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
