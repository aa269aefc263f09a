"""Results on disks that are full, and on disks that are not."""

from __future__ import annotations

import errno
import json
import os

import pytest

from nodeprep.probe import files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def full(*_args, **_kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_earlier_runs_results_are_forgotten(tmp_path):
    for name in ("result.json", "telemetry-0000-17-00-0.json", "notes.txt"):
        (tmp_path / name).write_text("old")
    files.Folder(str(tmp_path))
    assert (tmp_path / "notes.txt").exists()
    assert not (tmp_path / "result.json").exists()
    assert not (tmp_path / "telemetry-0000-17-00-0.json").exists()


def test_the_reserve_is_given_up_for_the_result(tmp_path):
    folder = files.Folder(str(tmp_path))
    assert (tmp_path / files.RESERVE).stat().st_size == files.RESERVE_BYTES
    folder.write_result({"b": 1, "a": 2})
    assert not (tmp_path / files.RESERVE).exists()
    assert json.loads((tmp_path / "result.json").read_text()) == {"a": 2, "b": 1}


def test_a_file_is_whole_or_absent(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    files.write_json(str(path), {"old": 1})
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_json(str(path), {"new": 1})
    assert json.loads(path.read_text()) == {"old": 1}
    assert names(tmp_path) == ["x.json"]


def test_not_a_number_is_not_json(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        files.write_json(str(tmp_path / "x.json"), {"value": float("nan")})
    assert names(tmp_path) == []


def test_a_folder_on_a_full_disk_leaves_no_reserve_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.Folder(str(tmp_path))
    assert names(tmp_path) == []


def test_words_for_errors():
    assert files.explain(OSError(errno.ENOSPC, "x"), "/p") == "the disk is full: cannot write /p"
    assert files.explain(OSError(errno.EROFS, "Read-only file system"), "/p").endswith(
        "Read-only file system"
    )
