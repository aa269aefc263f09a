"""Parts of the virtual rack that need no virtual machine."""

import json
import socket
import stat
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import web

from nodeprep.errors import UsageError
from nodeprep.sim.certificates import write_certificates
from nodeprep.sim.vm import Hardware, Slot, Vm, bios, cache, hardware, ports, processes, rack, recipe, redfish
from nodeprep.sim.vm.bmc import write_bmc
from nodeprep.sim.vm.cli import main
from nodeprep.sim.vm.layout import Layout, Machine, read_machine
from nodeprep.sim.vm.machine import command
from nodeprep.sim.vm.programs import VmError, run
from nodeprep.sim.vm.qmp import Qmp
from nodeprep.sim.vm.redfish import BIOS, RESET, ROOT, SETTINGS, SYSTEM


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A machine's folder without a disk, as the processes of its BMC find it."""
    made = Layout(tmp_path / "rack" / "node1")
    made.folder.mkdir(parents=True)
    numbers = iter(ports.free_ports(4))
    machine = Machine(
        name="node1",
        hardware=Hardware(slots=(Slot(holds="gpu"), Slot(holds="switch", generation=4))),
        image="0" * 16,
        ssh_port=next(numbers),
        ipmi_port=next(numbers),
        redfish_port=next(numbers),
        vm_port=next(numbers),
        qemu=("qemu",),
        qemu_environment={},
    )
    machine.write(made)
    bios.Bios(made.folder).set_current(bios.defaults(2))
    return made


def test_a_machine_is_read_as_it_was_written(layout: Layout) -> None:
    machine = read_machine(layout)
    assert machine.hardware == Hardware(slots=(Slot(holds="gpu"), Slot(holds="switch", generation=4)))
    assert machine.hardware.gpus == ("gpu0", "gpu1", "gpu2")


def test_a_link_speed_setting_limits_both_ends_of_the_link() -> None:
    settings = {**bios.defaults(3), "PcieSlot1LinkSpeed": "Gen4"}
    words = hardware.words(Hardware(), settings)
    assert next(word for word in words if "id=port1," in word).endswith("x-speed=16,x-width=16")
    assert "x-speed=16," in next(word for word in words if "id=gpu0," in word)
    assert "x-speed=32," in next(word for word in words if "id=port2," in word)


def test_the_iommu_is_there_only_while_the_bios_has_it_enabled() -> None:
    on = hardware.words(Hardware(), bios.defaults(3))
    off = hardware.words(Hardware(), {**bios.defaults(3), "Iommu": "Disabled"})
    assert "intel-iommu,intremap=on" in on
    assert not any("iommu" in word for word in off)


def test_a_warm_start_is_taken_once(layout: Layout) -> None:
    layout.warm_mark.touch()
    settings = bios.defaults(2)
    assert command(layout, settings)[0][-2:] == ["-loadvm", "warm"]
    assert "-loadvm" not in command(layout, settings)[0]


def test_staged_settings_add_up_and_come_into_force_together(layout: Layout) -> None:
    settings = bios.Bios(layout.folder)
    settings.stage({"Iommu": "Disabled"})
    settings.stage({"PcieSlot2LinkSpeed": "Gen3"})
    assert settings.current() == bios.defaults(2)
    expected = {**bios.defaults(2), "Iommu": "Disabled", "PcieSlot2LinkSpeed": "Gen3"}
    assert settings.apply() == settings.current() == expected
    assert settings.staged() == {}


def test_the_image_has_another_id_when_anything_in_it_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = {recipe.image_id("packages"), recipe.image_id("other packages")}
    changed = tmp_path / "finish"
    changed.write_text(recipe.FINISH.read_text() + "#")
    monkeypatch.setattr(recipe, "FINISH", changed)
    seen.add(recipe.image_id("packages"))
    monkeypatch.setattr(recipe, "FILES", tmp_path / "no files")
    seen.add(recipe.image_id("packages"))
    assert len(seen) == 4


def test_a_cache_entry_is_built_once_by_many() -> None:
    built = []

    def build(work: Path) -> None:
        built.append(work)
        (work / "file").write_text("whole")

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: cache.entry("thing", build), range(8)))
    assert len(built) == 1
    assert [(path / "file").read_text() for path in found] == ["whole"]
    assert stat.S_IMODE(cache.folder().stat().st_mode) == 0o700


def test_a_failed_build_leaves_no_entry_and_no_rest() -> None:
    def fail(work: Path) -> None:
        (work / "half").touch()
        raise VmError("no network")

    with pytest.raises(VmError):
        cache.entry("thing", fail)
    assert [path.name for path in cache.folder().iterdir()] == ["thing.lock"]


def test_what_a_killed_builder_left_is_removed() -> None:
    left = cache.folder() / ".thing.abc"
    left.mkdir()
    cache.entry("thing", lambda work: None)
    assert not left.exists()


def test_only_the_processes_of_a_rack_are_ended(tmp_path: Path) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    log = tmp_path / "log"
    racks = [tmp_path / "one", tmp_path / "two"]
    for folder in racks:
        folder.mkdir()
    processes.start(sleep, racks[0], "node1", log)
    other = processes.start(sleep, racks[0], "node2", log)
    foreign = processes.start(sleep, racks[1], "node1", log)
    try:
        assert processes.stop(racks[0], "node1") == 1
        assert processes.find(racks[0]) == [other]
        assert processes.stop(racks[0]) == 1
        assert processes.find(racks[0]) == []
        assert processes.find(racks[1]) == [foreign]
    finally:
        processes.stop(racks[1])


def test_passwords_and_keys_are_private(layout: Layout) -> None:
    write_bmc(layout, read_machine(layout))
    write_certificates(layout.folder.parent)
    private = [layout.password, layout.bmc / "lan.conf", layout.folder.parent / "bmc-server.pem"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}


@pytest.fixture
def redfish_vm(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Vm:
    """A machine that is off, with a Redfish service in this process and a BMC that says what it was asked."""
    write_bmc(layout, read_machine(layout))
    write_certificates(layout.folder.parent)
    asked: list[str] = []

    def ipmi(_layout: Layout, _machine: Machine, *words: str) -> str:
        asked.append(words[-1])
        return "Chassis Power is off\n"

    monkeypatch.setattr(redfish, "ipmi", ipmi)
    threading.Thread(target=redfish.main, args=(layout.folder,), daemon=True).start()
    found = Vm(layout.folder.parent, "node1")
    _until_it_listens(found.machine.redfish_port)
    return found


def test_redfish_settings_wait_and_wrong_ones_are_refused(redfish_vm: Vm) -> None:
    assert web.request(redfish_vm, "GET", ROOT, password="wrong")[0] == 200
    assert web.request(redfish_vm, "GET", BIOS, password="wrong")[0] == 401
    assert web.request(redfish_vm, "GET", SYSTEM)[1]["PowerState"] == "Off"
    for attributes in ({"Iommu": "Perhaps"}, {"Iommu": 1}, {"PcieSlot3LinkSpeed": "Gen4"}, {}, []):
        assert web.request(redfish_vm, "PATCH", SETTINGS, {"Attributes": attributes})[0] == 400, attributes
    assert web.request(redfish_vm, "PATCH", BIOS, {"Attributes": {"Iommu": "Disabled"}})[0] == 405
    assert web.request(redfish_vm, "GET", SETTINGS)[1]["Attributes"] == {}
    assert web.request(redfish_vm, "PATCH", SETTINGS, {"Attributes": {"Iommu": "Disabled"}})[0] == 200
    assert web.request(redfish_vm, "GET", SETTINGS)[1]["Attributes"] == {"Iommu": "Disabled"}
    assert web.request(redfish_vm, "GET", BIOS)[1]["Attributes"]["Iommu"] == "Enabled"
    assert web.request(redfish_vm, "GET", "/redfish/v1/Chassis")[0] == 404


def test_redfish_knows_the_kinds_of_reset(redfish_vm: Vm) -> None:
    assert web.request(redfish_vm, "POST", RESET, {"ResetType": "ForceRestart"})[0] == 204
    assert web.request(redfish_vm, "POST", RESET, {"ResetType": "Explode"})[0] == 400
    assert web.request(redfish_vm, "POST", RESET, ["On"])[0] == 400


def test_qmp_tells_a_refusal_from_a_dead_qemu(tmp_path: Path) -> None:
    path = tmp_path / "qmp"
    with pytest.raises(VmError, match="does not answer"):
        Qmp(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        threading.Thread(target=_serve_qmp, args=(server,), daemon=True).start()
        with Qmp(path) as qmp:
            assert qmp.hmp("info status") == "answer to info status"
            with pytest.raises(VmError, match="no such command"):
                qmp.call("nonsense")
            with pytest.raises(VmError, match="hung up"):
                qmp.call("quit")


def test_a_failed_program_is_an_error_with_its_own_words() -> None:
    with pytest.raises(VmError, match="status 3: so it goes"):
        run(["sh", "-c", "echo so it goes >&2; exit 3"])
    with pytest.raises(VmError, match="did not end within"):
        run(["sh", "-c", "sleep 5"], timeout_s=0.1)


def test_a_command_without_a_rack_says_how_to_make_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["down", "--folder", str(tmp_path)]) == 2
    assert "holds no virtual rack" in capsys.readouterr().err


def test_a_rack_that_cannot_be_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_say: object) -> None:
        raise VmError("no network")

    monkeypatch.setattr(rack, "image", fail)
    monkeypatch.setattr(rack, "program", lambda name: name)
    with pytest.raises(VmError, match="no network"):
        rack.make_rack(tmp_path / "rack", [Hardware()], print)
    assert not (tmp_path / "rack").exists()


def test_a_folder_with_something_in_it_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rack, "program", lambda name: name)
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(UsageError, match="is not empty"):
        rack.make_rack(tmp_path, [Hardware()], print)
    assert (tmp_path / "mine").read_text() == "precious"


def _until_it_listens(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"nobody listens on port {port}")


def _serve_qmp(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection, connection.makefile("rw") as stream:

        def send(answer: object) -> None:
            stream.write(json.dumps(answer) + "\n")
            stream.flush()

        send({"QMP": {}})
        for line in stream:
            asked = json.loads(line)
            send({"event": "RTC_CHANGE", "data": {}})
            match asked["execute"]:
                case "qmp_capabilities":
                    send({"return": {}})
                case "human-monitor-command":
                    send({"return": f"answer to {asked['arguments']['command-line']}"})
                case "quit":
                    return
                case _:
                    send({"error": {"desc": "no such command"}})
