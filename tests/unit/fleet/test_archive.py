from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nodeprep.errors import NodeprepError, UsageError
from nodeprep.fleet import archive


def entries(data: bytes) -> list[zipfile.ZipInfo]:
    return zipfile.ZipFile(io.BytesIO(data)).infolist()


def test_same_bytes_whatever_the_order_times_and_modes_of_the_files() -> None:
    files = {"b.py": b"b = 1\n", "a/__init__.py": b"", "__main__.py": b"print('ran')\n"}
    assert archive.pack(files) == archive.pack(dict(reversed(files.items())))
    for entry in entries(archive.pack(files)):
        assert entry.date_time == (1980, 1, 1, 0, 0, 0)
        assert entry.compress_type == zipfile.ZIP_STORED
        assert entry.external_attr >> 16 == 0o100644


def test_known_bytes(tmp_path: Path) -> None:
    """A change of this digest means that two versions of nodeprep name the same program differently."""
    data = archive.pack({"__main__.py": b"print('ran')\n"})
    assert (
        hashlib.sha256(data).hexdigest() == "751e919c136757ce82309610ea938df49d43b024524ae55d3616358f5258272f"
    )
    program = tmp_path / "p.pyz"
    program.write_bytes(data)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert done.stdout == "ran\n"


@pytest.mark.parametrize("name", ["node", "probe"])
def test_programs_hold_the_node_code_and_nvml_bindings_and_no_leftovers(name: str) -> None:
    built = archive.build(name)
    names = [entry.filename for entry in entries(built.data)]
    assert names == sorted(names)
    assert {"__main__.py", "nodeprep/__init__.py", "nodeprep/node/observe.py"} <= set(names)
    assert "nodeprep/node/vendor/pynvml.py" in names
    assert any(each.startswith("nodeprep/probe/") for each in names) == (name == "probe")
    assert not [each for each in names if each.endswith(".pyc") or "__pycache__" in each]
    assert built.sha256 == hashlib.sha256(built.data).hexdigest()


def test_the_controllers_packages_stay_at_home() -> None:
    names = [entry.filename for entry in entries(archive.build("probe").data)]
    packages = {each.split("/")[1] for each in names if each.startswith("nodeprep/") and each.count("/") > 1}
    assert packages == {"node", "probe"}


def test_another_copy_of_the_package_builds_the_same_bytes(tmp_path: Path) -> None:
    package = Path(archive.__file__).parents[1]
    copy = tmp_path / "elsewhere" / "nodeprep"
    ignore = shutil.ignore_patterns("__pycache__", "ansible_collections")
    shutil.copytree(package, copy, ignore=ignore)
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    script = "from nodeprep.fleet.archive import build; print(build('node').sha256)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=copy.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == archive.build("node").sha256


def test_unknown_program() -> None:
    with pytest.raises(UsageError, match="no program 'nude'") as caught:
        archive.build("nude")
    assert "node" in caught.value.hint


def test_an_incomplete_installation_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = archive.Program("broken", ("errors_are_no_package",), "nodeprep.absent")
    monkeypatch.setattr(archive, "_files", lambda _folder, _path: {})
    monkeypatch.setattr(archive, "PROGRAMS", {"broken": broken})
    with pytest.raises(NodeprepError, match=r"nodeprep/absent\.py is missing") as caught:
        archive.build("broken")
    assert "reinstall" in caught.value.hint
