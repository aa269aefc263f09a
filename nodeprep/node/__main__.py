"""The program node.pyz: what nodeprep leaves on a node to be run there without Ansible.

python3 node.pyz observe                 facts as JSON
python3 node.pyz gpu-power --show        present power settings as JSON
python3 node.pyz gpu-power --apply       sets them again; what the systemd unit runs at boot
python3 node.pyz link-pin --show         how the GPUs' PCIe links stand as JSON
python3 node.pyz link-pin --apply        pins them again; what the systemd unit runs at boot
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import List, Optional

# What a command does not need it does not import: link-pin runs at boot before the drivers load, and
# compiling nvidia-ml-py out of an archive, which keeps no bytecode, takes most of such a run.

EXIT_OK = 0
EXIT_APPLY_FAILED = 11

# After a cold boot the driver needs a while to bring up all GPUs of a baseboard.
WAIT_S = 180.0


def main(argv: Optional[List[str]] = None) -> int:
    """Runs one subcommand and returns the exit code."""
    parser = argparse.ArgumentParser(prog="node.pyz", description="nodeprep on a node")
    commands = parser.add_subparsers(dest="command", required=True)
    facts = commands.add_parser("observe", help="print facts about this node as JSON")
    facts.add_argument("--nvml-deadline-s", type=float, default=30.0, metavar="S")
    power = commands.add_parser("gpu-power", help="GPU power limit and persistence")
    action = power.add_mutually_exclusive_group(required=True)
    action.add_argument("--apply", action="store_true", help="set what nodeprep was told to set")
    action.add_argument("--show", action="store_true", help="print the present settings as JSON")
    power.add_argument("--wait-s", type=float, default=WAIT_S, metavar="S", help="for GPUs to answer")
    links = commands.add_parser("link-pin", help="PCIe generation of the GPUs' links")
    pinning = links.add_mutually_exclusive_group(required=True)
    pinning.add_argument("--apply", action="store_true", help="pin what nodeprep was told to pin")
    pinning.add_argument("--show", action="store_true", help="print how the links stand as JSON")
    for command in (facts, power, links):
        command.add_argument("--root", default="/", help="another root than / is simulated")
    options = parser.parse_args(argv)
    if options.command == "observe":
        from . import observe  # noqa: PLC0415

        return _print(observe.collect(options.root, nvml_deadline_s=options.nvml_deadline_s))
    if options.command == "link-pin":
        return _show_links(options.root) if options.show else _pin_again(options.root)
    return _show_power(options.root) if options.show else _reapply(options.root, options.wait_s)


def _print(document: object, failed: bool = False) -> int:
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return EXIT_APPLY_FAILED if failed else EXIT_OK


def _show_power(root: str) -> int:
    from . import gpu_power  # noqa: PLC0415

    result = gpu_power.show(root)
    return _print(result, failed=result["failed"])


def _reapply(root: str, wait_s: float) -> int:
    from . import gpu_power  # noqa: PLC0415

    result = gpu_power.reapply(root, wait_s=wait_s)
    for gpu in result["gpus"]:
        enforced = "unknown" if gpu["enforced_w"] is None else f"{gpu['enforced_w']:g} W"
        mode = {True: "on", False: "off", None: "unknown"}[gpu["persistence"]]
        sys.stdout.write(f"{gpu['address']}: enforced limit {enforced}, persistence {mode}\n")
    if result["failed"]:
        hint = f"\nhint: {result['hint']}" if result["hint"] else ""
        sys.stderr.write(f"gpu-power: {result['msg']}{hint}\n")
        return EXIT_APPLY_FAILED
    return EXIT_OK


def _show_links(root: str) -> int:
    from . import link_pin  # noqa: PLC0415

    result = link_pin.show(root)
    return _print(result, failed=result["failed"])


def _pin_again(root: str) -> int:
    from . import link_pin  # noqa: PLC0415

    result = link_pin.reapply(root)
    for link in result["links"]:
        sys.stdout.write(
            f"{link['gpu']} below {link['port']}: at most Gen{link['target_gen']}, runs at Gen{link['gen']}\n"
        )
    if result["failed"]:
        hint = f"\nhint: {result['hint']}" if result["hint"] else ""
        sys.stderr.write(f"link-pin: {result['msg']}{hint}\n")
        return EXIT_APPLY_FAILED
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
