"""A real BMC for the tests: OpenIPMI's ipmi_sim, with a sleeping shell script for a host."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import threading
import time
from datetime import datetime
from pathlib import Path

from nodeprep.bmc import BmcTarget, connect
from nodeprep.bmc.failures import BmcUnreachable

PASSWORD = "pass-Wort_17"
REQUIRE = "NODEPREP_REQUIRE_IPMI_SIM"

# The serial line is there for the power: without one of codec VM, ipmi_sim refuses every power command.
_LAN = """\
name "node01"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  serial 15 127.0.0.1 {serial} codec VM
  startcmd "{host}"
  startnow false
  poweroff_wait 1
  kill_wait 1
  user 1 true  ""        "test" user  10 none md2 md5 straight
  user 2 true  "admin"   "{password}" admin 10 none md2 md5 straight
"""
_MC = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 {log_entries} 0x0a
{sensors}mc_enable 0x20
"""


def _sensor(number: int, name: str, unit: int, kind: int, value: int | None) -> str:
    """A sensor and its record, as the emulator's commands; without a value it is in the records alone."""
    record = [0, 0, 0x51, 1, 0, 0x20, 0, number, 7, 1, 0x7F, 0x68, kind, 1, *[0] * 6, 0, unit, 0, 0, 1]
    record += [*[0] * 22, 0xC0 | len(name), *name.encode()]
    record[4] = len(record) - 5
    lines = [f"main_sdr_add 0x20 {' '.join(f'0x{byte:02x}' for byte in record)}"]
    if value is not None:
        lines += [f"sensor_add 0x20 0 {number} {kind} 1", f"sensor_set_value 0x20 0 {number} {value} 0"]
    return "\n".join(lines) + "\n"


# Degrees Celsius, volts and turns a minute. Source: IPMI 2.0, table 43-15, Sensor Unit Type Codes.
_SENSORS = "".join(
    (
        _sensor(1, "Inlet Temp", 1, 1, 23),
        _sensor(2, "CPU1 VR Temp", 1, 1, 61),
        _sensor(3, "PS2 Temp", 1, 1, None),
        _sensor(4, "Fan1", 18, 4, 96),
    )
)


class Bmc:
    """One ipmi_sim and the host it switches."""

    def __init__(self, folder: Path, *, log_entries: int = 100) -> None:
        self._pids = folder / "host.pids"
        host = folder / "host.sh"
        host.write_text(f"#!/bin/sh\necho $$ >> '{self._pids}'\nexec sleep 1000\n")
        host.chmod(0o755)
        self.port = _free_port(socket.SOCK_DGRAM)
        self.target = BmcTarget("node01", "ipmi", "127.0.0.1", self.port, "admin", PASSWORD)
        (folder / "lan.conf").write_text(
            _LAN.format(port=self.port, serial=_free_port(socket.SOCK_STREAM), host=host, password=PASSWORD)
        )
        (folder / "node01.emu").write_text(_MC.format(log_entries=log_entries, sensors=_SENSORS))
        (folder / "state").mkdir()
        command = ["ipmi_sim", "-n", "-c", "lan.conf", "-f", "node01.emu", "-s", "state"]
        with (folder / "sim.log").open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            self._wait_until_it_answers(folder)
        except BaseException:
            self.end()
            raise

    def starts(self) -> list[int]:
        """Process ids of the host, one for each time it was started."""
        return [int(pid) for pid in self._pids.read_text().split()] if self._pids.exists() else []

    def host_runs(self, *, within_s: float = 5.0) -> int:
        """The process id of the host that runs now; 0 when none does."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            for pid in self.starts()[-1:]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 0)
                    return pid
            time.sleep(0.05)
        return 0

    def ipmitool(self, *arguments: str) -> str:
        """Another client than the one under test."""
        command = ["ipmitool", "-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", str(self.port)]
        done = subprocess.run(
            [*command, "-U", "admin", "-E", *arguments],
            env={**os.environ, "IPMI_PASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def add_event(self, data: str = "0xaa 0x03 0x00") -> None:
        """Adds a critical interrupt of sensor 2 to the event log; 0xaa is a fatal bus error."""
        self.add_record(f"0x13 2 0x6f {data}")

    def add_record(self, event: str) -> None:
        """Adds an event: sensor type, sensor, event type and three data bytes."""
        self.ipmitool("raw", "0x0a", "0x44", *f"0 0 2 0 0 0 0 0x20 0 4 {event}".split())

    def set_clock(self, now: datetime) -> None:
        """Sets the clock of the event log, which counts from the BMC's start until then."""
        self.ipmitool("raw", "0x0a", "0x49", *map(str, int(now.timestamp()).to_bytes(4, "little")))

    def freeze(self) -> None:
        """The BMC stops answering, its port stays open."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It answers again."""
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.thaw()
        self.process.kill()
        self.process.wait()
        for pid in self.starts()[-1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _wait_until_it_answers(self, folder: Path) -> None:
        for _ in range(20):
            with contextlib.suppress(BmcUnreachable), connect(self.target, connect_s=2.0):
                return
            assert self.process.poll() is None, (folder / "sim.log").read_text()
        raise AssertionError((folder / "sim.log").read_text())


class Relay:
    """Stands between client and BMC, counts what the client sends, and loses packets when told to."""

    def __init__(self, bmc_port: int) -> None:
        self._bmc = ("127.0.0.1", bmc_port)
        self._client: tuple[str, int] = ("127.0.0.1", 0)
        self._here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._here.bind(("127.0.0.1", 0))
        self._there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.port = int(self._here.getsockname()[1])
        self.lose = False
        self.sent = 0
        self._ended = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def end(self) -> None:
        self._ended = True
        self._thread.join()
        self._here.close()
        self._there.close()

    def _serve(self) -> None:
        while not self._ended:
            for ready in select.select([self._here, self._there], [], [], 0.1)[0]:
                packet, sender = ready.recvfrom(4096)
                if ready is self._here:
                    self._client = sender
                    self.sent += 1
                    if not self.lose:
                        self._there.sendto(packet, self._bmc)
                elif not self.lose:
                    self._here.sendto(packet, self._client)


def _free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
