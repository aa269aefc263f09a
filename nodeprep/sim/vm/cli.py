"""The command line of the virtual rack: `python -m nodeprep.sim.vm`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from nodeprep.errors import ExitCode, NodeprepError
from nodeprep.sim.vm import image, qemu
from nodeprep.sim.vm.hardware import Hardware
from nodeprep.sim.vm.programs import missing_packages
from nodeprep.sim.vm.rack import Rack, make_rack

_DEFAULT_FOLDER = "virtual-rack"


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(words)
    try:
        return int(options.call(options))
    except NodeprepError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nodeprep.sim.vm", description="The virtual rack.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    build = commands.add_parser("build", help="build the image and fetch QEMU, if the cache has them not")
    build.add_argument("--again", action="store_true", help="even if it has: newer kernel, security fixes")
    build.set_defaults(call=_build)

    missing = commands.add_parser("missing", help="Debian packages that this machine lacks")
    missing.set_defaults(call=_missing)

    up = commands.add_parser("up", help="make a rack and switch it on")
    _folder(up)
    up.add_argument("--nodes", type=int, default=1, metavar="N")
    up.add_argument("--cloud", action="store_true", help="with a cloud image's GRUB drop-in")
    up.add_argument("--cpus", type=int, default=2)
    up.add_argument("--memory", type=int, default=512, metavar="MIB")
    up.add_argument(
        "--warm", action="store_true", help="continue from snapshots taken after a boot; made when missing"
    )
    up.add_argument("--off", action="store_true", help="BMCs only; leave the machines off")
    up.set_defaults(call=_up)

    down = commands.add_parser("down", help="end every process of a rack")
    _folder(down)
    down.add_argument("--remove", action="store_true", help="remove its files too")
    down.set_defaults(call=_down)

    status = commands.add_parser("status", help="power and ssh of each machine")
    _folder(status)
    status.set_defaults(call=_status)

    ssh = commands.add_parser("ssh", help="a shell, or a command, in a machine")
    _machine(ssh)
    ssh.add_argument("--user", default="root")
    ssh.add_argument("command", nargs=argparse.REMAINDER)
    ssh.set_defaults(call=_ssh)

    inject = commands.add_parser("inject", help="let a device report a PCIe error")
    _machine(inject)
    inject.add_argument("device", help="gpu0, port1, switch2, switch2-0, nic3")
    inject.add_argument("error", help="as the kernel prints it: BadTLP, CmpltTO, DLP")
    inject.set_defaults(call=_inject)

    power = commands.add_parser("power", help="press the power button of a BMC")
    _machine(power)
    power.add_argument("action", choices=("on", "off", "cycle", "reset", "soft", "status"))
    power.set_defaults(call=_power)

    console = commands.add_parser("console", help="the end of a machine's serial console")
    _machine(console)
    console.add_argument("--lines", type=int, default=40)
    console.set_defaults(call=_console)
    return parser


def _folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder", type=Path, default=Path(_DEFAULT_FOLDER), help=f"of the rack (default: {_DEFAULT_FOLDER})"
    )


def _machine(parser: argparse.ArgumentParser) -> None:
    _folder(parser)
    parser.add_argument("name", help="node1, node2, ...")


def _build(options: argparse.Namespace) -> int:
    print(f"image: {image.image(_say, again=options.again).folder}")
    print(f"QEMU: {qemu.qemu(_say).words[0]}")
    return 0


def _missing(_options: argparse.Namespace) -> int:
    print(*missing_packages())
    return 0


def _up(options: argparse.Namespace) -> int:
    hardware = Hardware(cpus=options.cpus, memory_mib=options.memory, cloud=options.cloud)
    rack = make_rack(options.folder, [hardware] * options.nodes, _say, warm_start=options.warm)
    try:
        rack.start(_say, power=not options.off)
        if not options.off:
            rack.wait(_say)
        if options.warm and not options.off:
            rack.keep_warm(_say)
    except BaseException:
        # Whatever went wrong: nothing is left running. The console logs stay.
        rack.down()
        raise
    print(f"inventory: {rack.inventory}")
    return 0


def _down(options: argparse.Namespace) -> int:
    rack = Rack(options.folder)
    print(f"{rack.down()} processes ended")
    if options.remove:
        rack.remove()
    return 0


def _status(options: argparse.Namespace) -> int:
    for vm in Rack(options.folder).machines:
        try:
            power = vm.power("status")
        except NodeprepError as error:
            power = f"the BMC does not answer: {error}"
        reachable = vm.ssh_result("true", timeout_s=30).returncode == 0
        ssh = "works" if reachable else "does not work"
        print(f"{vm.name}: {power}; ssh {ssh}; port {vm.machine.ssh_port}")
    return 0


def _ssh(options: argparse.Namespace) -> int:
    command = [*Rack(options.folder).vm(options.name).ssh_command(user=options.user), *options.command]
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606


def _inject(options: argparse.Namespace) -> int:
    Rack(options.folder).vm(options.name).inject_aer(options.device, options.error)
    return 0


def _power(options: argparse.Namespace) -> int:
    print(Rack(options.folder).vm(options.name).power(options.action))
    return 0


def _console(options: argparse.Namespace) -> int:
    print(Rack(options.folder).vm(options.name).console_tail(options.lines))
    return 0


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)
