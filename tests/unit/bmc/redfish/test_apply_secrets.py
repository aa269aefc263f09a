"""Passwords of the BMC and of the BIOS are in nothing that nodeprep writes, says or starts."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import bios_trees
import pytest
from bios_bench import SECRET, TARGET, Bench

from nodeprep.bmc.failures import BmcLoginRefused
from nodeprep.model.codec import encode_pretty
from nodeprep.sim.bmc import SimulatedBmc, serving, tls_in
from nodeprep.workflows.bios_work import Asked

BIOS_SECRET = "simulated"
FAULTS = ("", "licence", "bios_password", "silent_drop", "lost_answer", "session_expiry", "no_sessions")


def written(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("fault", FAULTS)
def test_no_password_in_documents_run_folder_events_or_logs(
    fault: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bench = Bench(bios_trees.hpe(), tmp_path, faults=(fault,) if fault else ())
    document = bench.apply("iommu=disabled", bios_password=BIOS_SECRET)
    token = next((headers["x-auth-token"] for headers in bench.headers if "x-auth-token" in headers), SECRET)
    logins = [headers["authorization"] for headers in bench.headers if "authorization" in headers]
    everything = "\n".join((encode_pretty(document).decode(), written(tmp_path), caplog.text, *bench.said))
    assert "IommuSupport" in everything
    # "simulated" is a field of every document.
    for secret in (SECRET, token, f'"{BIOS_SECRET}"', *(login.split()[-1] for login in logins)):
        assert secret not in everything.replace('"simulated":', "")


def test_no_password_in_what_python_shows_of_the_objects() -> None:
    shown = repr(Asked(TARGET, bios_password=BIOS_SECRET + "!"))
    assert SECRET not in shown
    assert BIOS_SECRET + "!" not in shown


def test_a_refused_login_does_not_repeat_the_password(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path)
    bench.bmc.state.sessions.fits = lambda *_: False  # type: ignore[method-assign]
    with pytest.raises(BmcLoginRefused) as caught:
        bench.apply("iommu=disabled")
    assert SECRET not in f"{caught.value} {caught.value.hint}"
    assert not list(tmp_path.rglob("*.json"))


def test_no_password_in_the_process_list_while_it_runs(tmp_path: Path) -> None:
    bmc = SimulatedBmc(bios_trees.small(), user="admin", password=SECRET, faults=("slow",))
    tls = tls_in(tmp_path / "tls")
    with serving([bmc], tls=tls) as served:
        command = [sys.executable, "-m", "nodeprep.cli", "bios", "plan", "--bmc", served[0].url]
        command += ["--ca", str(tls.ca), "--set", "iommu=disabled", "--json", "-v"]
        environment = {**os.environ, "NODEPREP_BMC_PASSWORD": SECRET, "NODEPREP_HOME": str(tmp_path / "home")}
        seen: list[str] = []
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            while process.poll() is None and not bmc.state.sessions.ids():
                seen += _command_lines()
            seen += _command_lines()
            told, _ = process.communicate(timeout=120)
    assert process.returncode == 10, told
    assert any("bios\0plan" in line for line in seen)
    assert not any(SECRET in line for line in seen)
    assert SECRET not in told
    assert SECRET not in written(tmp_path)


def _command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text(errors="replace"))
        except OSError:
            continue
    return found
