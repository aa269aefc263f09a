"""Steps of a trial do not overlap on a node."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from nodeprep.node import trial_lock
from nodeprep.node.trial_result import result


def test_a_second_step_waits_for_the_first(tmp_path: Path) -> None:
    path, told, begun = str(tmp_path / "lock"), [], threading.Event()

    def slow() -> dict[str, Any]:
        begun.set()
        time.sleep(0.7)
        told.append("first")
        return result()

    first = threading.Thread(target=trial_lock.alone, args=("/", slow), kwargs={"path": path})
    first.start()
    begun.wait()
    done = trial_lock.alone("/", lambda: result(notes=[told.append("second")]), path=path)
    first.join()
    assert told == ["first", "second"]
    assert not done["failed"]


def test_a_step_that_hangs_is_told_and_nothing_is_done(tmp_path: Path) -> None:
    path, done = str(tmp_path / "lock"), []

    def inside() -> dict[str, Any]:
        return trial_lock.alone("/", lambda: result(notes=done.append(1)), path=path, wait_s=0)

    refused = trial_lock.alone("/", inside, path=path)
    assert refused["failed"]
    assert "another step of a trial boot has been running here" in refused["msg"]
    assert done == []
    # And the lock is free again afterwards.
    assert not trial_lock.alone("/", result, path=path, wait_s=0)["failed"]


def test_a_lock_that_cannot_be_made_stops_the_step(tmp_path: Path) -> None:
    refused = trial_lock.alone("/", result, path=str(tmp_path / "no" / "lock"))
    assert refused["failed"]
    assert "No such file" in refused["msg"]
