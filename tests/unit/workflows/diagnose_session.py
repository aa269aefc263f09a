"""Just enough of a session for `diagnose --host`: its playbook brings one small archive a host."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from nodeprep.fleet import Outcome, Target
from nodeprep.model.codec import encode_pretty
from nodeprep.model.diagnosis import Diagnosis, DiagnosisInput
from nodeprep.workflows.diagnose import EVENT_LOG, diagnose_hosts
from nodeprep.workflows.session import Session

BANNER = "Linux version 6.8.0 (built for this test)"


class DiagnoseSession:
    """One node whose kernel log is given, with the sequence numbers of its messages.

    Attributes:
        records: What the session was told of hosts.
        asked: The variables that its playbook got, by host.
    """

    def __init__(
        self,
        run_dir: Path,
        targets: Sequence[Target],
        *,
        kernel: Mapping[int, str] | None = None,
        boot_id: str = "boot-1",
        answers: bool = True,
    ) -> None:
        run_dir.mkdir()
        self.run_dir = run_dir
        self.targets = tuple(targets)
        self.fleet = SimpleNamespace(run=self._run)
        self.records: list[tuple[str, str, str]] = []
        self.asked: Mapping[str, Any] = {}
        self._kernel = {1: BANNER} if kernel is None else kernel
        self._boot_id = boot_id
        self._answers = answers

    def diagnose(self, since: Path | None = None) -> Diagnosis | None:
        """The diagnosis of its only node; None when there is none."""
        return diagnose_hosts(cast(Session, self), since=since).get(self.targets[0].host)

    def record(self, host: str, phase: str, state: str, **_more: Any) -> None:
        self.records.append((host, phase, state))

    def save(self, relative: str, document: object) -> None:
        path = self.run_dir / relative
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(encode_pretty(document))

    def _run(self, playbook: str, targets: Sequence[Target], **more: Any) -> dict[str, Outcome]:
        assert playbook == "diagnose.yml"
        self.asked = more["host_vars"]
        for target in targets if self._answers else ():
            with tarfile.open(self.run_dir / "evidence" / f"{target.host}.tar.gz", "w:gz") as archive:
                for name, data in self._parts():
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        state, error = ("done", "") if self._answers else ("unreachable", "no route to host")
        return {target.host: Outcome(target.host, state, {}, error, "") for target in targets}

    def _parts(self) -> list[tuple[str, bytes]]:
        last = {"state": "ok", "value": max(self._kernel, default=0)}
        cursor = {"boot_id": self._boot_id, "sequence": last, "monotonic_us": last}
        facts = {
            "schema": "nodeprep.facts/1",
            "simulated": False,
            "log_cursor": cursor,
            "pci": {"devices": {"state": "ok", "value": []}},
            "nvml": {"gpus": {"state": "ok", "value": []}},
        }
        log = "".join(f"{number},{number}000000,6;{text}\n" for number, text in self._kernel.items())
        return [("facts/now.json", json.dumps(facts).encode()), ("kernel.log", log.encode())]


def input_of(found: Diagnosis, name: str = EVENT_LOG) -> DiagnosisInput:
    """What is said of one of the inputs."""
    (one,) = [each for each in found.inputs if each.source.endswith(name)]
    return one
