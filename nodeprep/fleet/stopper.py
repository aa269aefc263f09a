"""`python -m nodeprep.fleet.stopper`: stops probes as told on standard input, and says how it went."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from nodeprep.errors import NodeprepError
from nodeprep.fleet.engine import Fleet
from nodeprep.fleet.inventory import Target

PHASE = "stop"


def main() -> int:
    """Runs stop.yml over the hosts of the order; exit code 1 when some could not be stopped."""
    order = json.load(sys.stdin)
    inventory = order["inventory"]
    fleet = Fleet(
        run_dir=Path(order["run_dir"]),
        inventory=None if inventory is None else Path(inventory),
        forks=order["forks"],
        become=order["become"],
        passwords=order["passwords"],
    )
    extra_vars = {name: value for name, value in order["extra_vars"].items() if name != "nodeprep_phase"}
    try:
        outcomes = fleet.run(
            "stop.yml", [Target(host, {}) for host in order["hosts"]], phase=PHASE, extra_vars=extra_vars
        )
    except NodeprepError as error:
        sys.stdout.write(f"probes not stopped: {error}\nhint: {error.hint}\n")
        return 1
    for host, outcome in outcomes.items():
        said = outcome.data.get("probe", {}).get("message", "stopped")
        sys.stdout.write(
            f"{host}: {said if outcome.state == 'done' else f'{outcome.state}: {outcome.error}'}\n"
        )
    return int(any(outcome.state != "done" for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
