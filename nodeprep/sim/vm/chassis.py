"""What a BMC's power button switches: applies the BIOS settings, runs QEMU, and ends with it.

`ipmi_sim` starts this as a child of its own. Firmware takes staged settings into force at each power-on
and at each reset, whoever asked for it. QEMU's words are fixed while it runs, so with settings staged
QEMU ends instead of resetting (`arm`), and the chassis starts it anew; for the BMC the power was never off.

    python -m nodeprep.sim.vm.chassis FOLDER
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from nodeprep.sim.vm.bios import Bios
from nodeprep.sim.vm.layout import Layout
from nodeprep.sim.vm.machine import command
from nodeprep.sim.vm.programs import VmError
from nodeprep.sim.vm.qmp import Qmp

_SOCKET_S = 30.0


def arm(layout: Layout) -> None:
    """Settings are staged: let the next reset of the guest end QEMU, so that the chassis starts it with them.

    With the power off there is nothing to arm.
    """
    try:
        with Qmp(layout.qmp) as qmp:
            qmp.call("set-action", reboot="shutdown")
    except VmError:
        return


def main(folder: Path) -> int:
    """Run the machine until it is off."""
    layout = Layout(folder)
    running: list[subprocess.Popen[bytes]] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        for process in running:
            process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    while True:
        settings = Bios(folder).apply()
        words, environment = command(layout, settings)
        _note(layout, "power on")
        layout.chassis_qmp.unlink(missing_ok=True)
        process = subprocess.Popen(words, env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
        running[:] = [process]
        reset = _Reset(layout.chassis_qmp, process)
        status = process.wait()
        if not reset.ended_by_reset():
            _note(layout, f"power off (QEMU ended with {status})")
            return 0
        _note(layout, "reset with staged BIOS settings")


class _Reset:
    """Listens to QEMU in a thread and remembers whether a reset ended it."""

    def __init__(self, path: Path, process: subprocess.Popen[bytes]) -> None:
        self._path = path
        self._process = process
        self._reason = ""
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def ended_by_reset(self) -> bool:
        """Only once QEMU has ended."""
        self._thread.join(timeout=_SOCKET_S)
        return self._reason in ("guest-reset", "host-qmp-system-reset")

    def _listen(self) -> None:
        qmp = self._connected()
        if qmp is None:
            return
        with qmp:
            while (event := qmp.event()) is not None:
                if event["event"] == "SHUTDOWN":
                    self._reason = str(event["data"].get("reason", ""))

    def _connected(self) -> Qmp | None:
        deadline = time.monotonic() + _SOCKET_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                return Qmp(self._path, timeout_s=None)
            except VmError:
                time.sleep(0.05)
        return None


def _note(layout: Layout, what: str) -> None:
    with layout.power_log.open("a") as log:
        log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {what}\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
