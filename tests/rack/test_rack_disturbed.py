"""What is left when a run is disturbed: an honest answer, and nothing half-done."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from commands import Cli
from node_side import certify_node, judge_node, observe_node, probe_command, set_power_limit

from nodeprep.certify.statement import read_unverified
from nodeprep.model.codec import decode
from nodeprep.model.probe import ProbeResult
from nodeprep.sim import simulated_nvml
from nodeprep.sim.rack import RackInventory, RackNode, build_rack

# Long enough to be disturbed in the middle, also on a busy machine.
LONG = ("--duration-s", "60")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def workers(pid: int) -> list[int]:
    """Without the sampler, which is a child as well and belongs to no GPU."""
    return [
        child for child in children(pid) if b"probe.worker" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def alive(pid: int) -> bool:
    """False for a zombie, too: it does nothing any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_on(root: Path) -> list[int]:
    """Processes whose command line names this root."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(root).encode() in command and alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def loaded(root: Path) -> list[str]:
    folder = root / simulated_nvml.LOAD
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def loaded_by_the_living(root: Path) -> list[str]:
    return [name for name in loaded(root) if alive(int(name.rpartition("@")[2]))]


def told(out: Path) -> str:
    """Progress so far, without spaces."""
    progress = out / "progress.jsonl"
    return progress.read_text().replace(" ", "") if progress.exists() else ""


def computing(out: Path) -> bool:
    return '"phase":"compute"' in told(out)


@pytest.fixture
def node(make_node: Callable[..., RackNode]) -> RackNode:
    return make_node(gpus=2)


@pytest.fixture
def running(node: RackNode, tmp_path: Path) -> subprocess.Popen[bytes]:
    """A probe in the middle of its measured part."""
    probe = subprocess.Popen(
        probe_command(node, tmp_path / "probe", *LONG), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: computing(tmp_path / "probe"))
    except BaseException:
        probe.kill()
        raise
    return probe


def read(tmp_path: Path) -> ProbeResult:
    file = tmp_path / "probe" / "result.json"
    return decode(file.read_bytes(), ProbeResult, source=str(file))


def test_sigterm_stops_the_probe_with_an_interrupted_result(
    node: RackNode, running: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    workers = children(running.pid)
    running.terminate()
    assert running.wait(timeout=60) == 3
    result = read(tmp_path)
    assert result.state == "interrupted"
    assert result.simulated
    assert not any(alive(worker) for worker in workers)
    assert judge_node(node, result).verdict == "inconclusive"


def test_a_worker_that_is_killed_takes_nobody_along(
    node: RackNode, running: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    victim = workers(running.pid)[0]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: '"phase":"failed"' in told(tmp_path / "probe"))
    assert running.poll() is None, "the parent must outlive a worker"
    running.terminate()
    running.wait(timeout=60)
    states = sorted(gpu.state for gpu in read(tmp_path).gpus)
    assert states == ["failed", "interrupted"]
    assert judge_node(node, read(tmp_path)).verdict != "certified"


def test_a_killed_probe_leaves_no_result_and_no_load(
    node: RackNode, running: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    workers = children(running.pid)
    running.kill()
    running.wait(timeout=60)
    wait_for(lambda: not any(alive(worker) for worker in workers), 15)
    assert not (tmp_path / "probe" / "result.json").exists()
    # Its marks may be left behind, but a dead process loads nothing, and the next run is a clean one.
    facts, _ = observe_node(node)
    draws = [gpu.power.draw_w.require("draw") for gpu in facts.nvml.gpus.require("GPUs")]
    assert all(draw < 100 for draw in draws)
    again = certify_node(node, tmp_path / "second", "--duration-s", "0.5")
    assert again.certificate.verdict == "certified", again.certificate.reasons


def test_an_injected_fault_never_certifies(node: RackNode, tmp_path: Path) -> None:
    ended = certify_node(node, tmp_path / "probe", "--duration-s", "0.5", "--inject", "flip:block=3,bit=0")
    assert ended.certificate.verdict == "rejected"
    assert ended.probe is not None
    assert ended.probe.injected
    assert any("injected on purpose" in reason for reason in ended.certificate.reasons)
    assert any("block 3" in reason for reason in ended.certificate.reasons)


# ---- through the command line -----------------------------------------------------------------------


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "home")


@pytest.fixture
def rack(tmp_path: Path) -> RackInventory:
    return build_rack(tmp_path / "rack", nodes=1, gpus=2)


def change_policy(rack: RackInventory, **changes: object) -> None:
    file = rack.folder / "group_vars" / "all.yml"
    variables = yaml.safe_load(file.read_text())
    variables["nodeprep_policy"].update(changes)
    file.write_text(yaml.safe_dump(variables))


def test_ctrl_c_ends_certify_at_once_and_the_load_with_it(cli: Cli, rack: RackInventory) -> None:
    root = rack.nodes[0].root
    certify = cli.start("certify", "--level", "extended", "-i", rack.inventory, "-o", rack.folder / "run")
    try:
        wait_for(lambda: bool(loaded(root)), 90)
        pressed = time.monotonic()
        certify.send_signal(signal.SIGINT)
        _, stderr = certify.communicate(timeout=60)
        # Two seconds are promised; the rest is for a machine that runs other tests at the same time.
        assert time.monotonic() - pressed < 30
    finally:
        certify.kill()
    assert certify.returncode == 130, stderr
    assert "interrupted" in stderr
    wait_for(lambda: not processes_on(root), 60)
    assert (rack.folder / "run" / "run.json").exists()
    assert not (rack.folder / "run" / "certificates").exists()


def test_a_probe_killed_under_certify_is_inconclusive_with_a_reason(cli: Cli, rack: RackInventory) -> None:
    set_power_limit(rack.nodes[0])
    root = rack.nodes[0].root
    certify = cli.start(
        "certify", "--level", "extended", "-i", rack.inventory, "-o", rack.folder / "run", "--json"
    )
    try:
        wait_for(lambda: bool(loaded(root)), 90)
        for pid in processes_on(root):
            if b"--workload" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        stdout, stderr = certify.communicate(timeout=120)
    finally:
        certify.kill()
    assert certify.returncode == 21, stderr
    certificate, _ = read_unverified(stdout.encode(), source="stdout")
    assert certificate.verdict == "inconclusive"
    assert any("killed" in reason for reason in certificate.reasons), certificate.reasons
    assert not loaded_by_the_living(root)


def test_an_unknown_policy_key_is_named_with_its_path(cli: Cli, rack: RackInventory) -> None:
    change_policy(rack, gpu={"power_limt": "93%"})
    said = cli("plan", "-i", rack.inventory, "--json")
    assert said.code == 2
    assert "nodeprep_policy.gpu.power_limt" in said.stderr
    assert "power_limit" in said.stderr
    assert said.document["schema"] == "nodeprep.error/1"


def test_a_probe_python_that_is_not_there_is_named_with_a_hint(cli: Cli, rack: RackInventory) -> None:
    change_policy(rack, probe_python="/nowhere/bin/python3")
    said = cli("certify", "-i", rack.inventory, "-o", rack.folder / "run")
    assert said.code in (20, 21), said.stderr
    assert "/nowhere/bin/python3" in said.stdout
    assert "hint" in said.stderr
