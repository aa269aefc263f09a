"""A soak of a simulated node from the command line, killed half-way: it goes on, and its checks say so."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from commands import Cli

from nodeprep.sim.rack import build_rack


def test_a_soak_survives_the_kill_of_its_probe(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "home")
    rack = build_rack(tmp_path / "rack", nodes=1, gpus=2)
    out = tmp_path / "run"
    # 0.015 h: a minute, a few legs of a simulated node.
    asked = ("certify", "-i", rack.inventory, "-o", out, "--level", "soak", "--soak-hours", "0.015", "--json")
    process = cli.start(*asked)
    job = _job(rack.nodes[0].root)
    os.kill(job["pid"], signal.SIGKILL)
    said, talk = process.communicate(timeout=400)
    found = json.loads((out / "probe" / "node01" / "result.json").read_text())
    account = found["soak"]["value"]
    assert (found["level"], found["state"]) == ("soak", "completed"), talk
    assert account["lost_legs"] == 1
    assert account["gaps"][0]["rebooted"] is False
    gaps = next(check for check in _checks(out) if check["id"] == "soak_gaps")
    # The time the controller took to start it again is most of so short a soak.
    assert gaps["status"] in ("PASS", "ERROR"), gaps
    assert "killed" in gaps["reason"]
    assert process.returncode in (0, 20, 21), said


def _checks(run: Path) -> list[dict[str, Any]]:
    """Of the certificate, signed as it is."""
    envelope = json.loads((run / "certificates" / "node01.json").read_text())
    payload = base64.b64decode(envelope["payload"]) if "payload" in envelope else json.dumps(envelope)
    statement = json.loads(payload)
    return list(statement.get("predicate", statement)["checks"])


def _job(root: Path) -> dict[str, int]:
    """The probe's job once a leg of it has ended."""
    end = time.monotonic() + 240
    while time.monotonic() < end:
        for progress in Path(root, "var/lib/nodeprep/runs").glob("*/progress.jsonl"):
            if '"phase": "end"' in progress.read_text():
                return dict(json.loads((progress.parent / "job.json").read_text()))
        time.sleep(0.2)
    raise AssertionError("no leg came to its end")
