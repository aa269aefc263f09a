"""One BMC a machine: `ipmi_sim`, whose power button starts the chassis."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from pathlib import Path

from nodeprep.sim.vm.layout import Layout, Machine
from nodeprep.sim.vm.programs import program, run

USER = "admin"
# IPMI has room for 20 bytes.
_PASSWORD_BYTES = 9
_POWER_OFF_S = 60
_KILL_S = 20

# Sensor data records: "CPU0 Temp" and "PCIe Errors".
_TEMPERATURE = (
    "0x01 0x00 0x51 0x01 0x34 0x20 0x00 0x01 0x03 0x01 0x7f 0x68 0x01 0x01 0x80 0x0a 0x80 0x0a "
    "0x38 0x38 0x00 0x01 0x00 0x00 0x01 0x00 0x00 0x00 0x00 0x00 0x07 0x2d 0x50 0x0a 0xff 0x00 "
    "0xa0 0x90 0x70 0x00 0x00 0x00 0x02 0x02 0x00 0x00 0x00 "
    "0xc9 0x43 0x50 0x55 0x30 0x20 0x54 0x65 0x6d 0x70"
)
_CRITICAL_INTERRUPT = (
    "0x02 0x00 0x51 0x03 0x17 0x20 0x00 0x02 0x0b 0x01 0x13 0x6f 0x01 0x00 0x00 0x00 "
    "0xcb 0x50 0x43 0x49 0x65 0x20 0x45 0x72 0x72 0x6f 0x72 0x73"
)
_STATES = "000111111000000 000111111000000 000111111000000 000111111000000"
_INTERRUPTS = "000011111111111 000011111111111 000011111111111 000011111111111"
# A temperature, and "PCIe Errors": a critical interrupt sensor, as servers have it.
_SENSORS = f"""\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
sensor_add 0x20 0 1 0x01 0x01
sensor_set_value 0x20 0 1 45 0
sensor_set_threshold 0x20 0 1 settable 111000 0xa0 0x90 0x70 00 00 00
sensor_set_event_support 0x20 0 1 enable scanning per-state {_STATES}
sensor_add 0x20 0 2 0x13 0x6f event-only
sensor_set_event_support 0x20 0 2 enable scanning per-state {_INTERRUPTS}
main_sdr_add 0x20 {_TEMPERATURE}
main_sdr_add 0x20 {_CRITICAL_INTERRUPT}
mc_enable 0x20
"""


def write_bmc(layout: Layout, machine: Machine) -> None:
    """Files of the BMC, among them its password, made by chance."""
    layout.bmc.mkdir(mode=0o700)
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    _private(layout.password, password + "\n")
    start = f"{shlex.quote(sys.executable)} -m nodeprep.sim.vm.chassis {shlex.quote(str(layout.folder))}"
    auth = "".join(
        f"    allowed_auths_{level} none md2 md5 straight\n"
        for level in ("callback", "user", "operator", "admin")
    )
    _private(
        layout.bmc / "lan.conf",
        f'name "{machine.name}"\n'
        "set_working_mc 0x20\n"
        "  startlan 1\n"
        f"    addr 127.0.0.1 {machine.ipmi_port}\n"
        "    priv_limit admin\n"
        f"{auth}"
        "    guid a123456789abcdefa123456789abcdef\n"
        "  endlan\n"
        f"  serial 15 127.0.0.1 {machine.vm_port} codec VM\n"
        f'  startcmd "{start}"\n'
        "  startnow false\n"
        f"  poweroff_wait {_POWER_OFF_S}\n"
        f"  kill_wait {_KILL_S}\n"
        f'  user 2 true "{USER}" "{password}" admin 10 none md2 md5 straight\n',
    )
    _private(layout.bmc / "sensors.emu", _SENSORS)
    (layout.bmc / "state").mkdir()


def bmc_command(layout: Layout) -> list[str]:
    """The command that runs the BMC in the foreground."""
    folder = layout.bmc
    files = ("-c", str(folder / "lan.conf"), "-f", str(folder / "sensors.emu"), "-s", str(folder / "state"))
    # -n: it does not read commands from standard input, which it could not here.
    return [program("ipmi_sim"), *files, "-n"]


def ipmi(layout: Layout, machine: Machine, *words: str, timeout_s: float = 30) -> str:
    """Run ipmitool against the BMC, over the network as an operator would.

    Raises:
        VmError: It failed.
    """
    where = ("-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", str(machine.ipmi_port))
    who = ("-U", USER, "-f", str(layout.password))
    return run(["ipmitool", *where, *who, *words], timeout_s=timeout_s)


def _private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as made:
        made.write(text)
