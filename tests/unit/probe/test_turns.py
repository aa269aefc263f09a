"""Lone copies are lone, and nobody waits for a worker that is gone."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

from nodeprep.probe import turns
from nodeprep.probe.turns import Turns

A, B = "0000:17:00.0", "0000:63:00.0"


def take_turn(folder: str, address: str, log: Path) -> None:
    queue = Turns(folder, address, (A, B))
    with queue.alone() as alone, log.open("a") as file:
        file.write(f"{address} begins {alone}\n")
        file.flush()
        time.sleep(0.3)
        file.write(f"{address} ends\n")
    queue.wait_for_others()
    with log.open("a") as file:
        file.write("streams\n")


def test_one_at_a_time_and_no_streaming_before_all_were_alone(tmp_path):
    log = tmp_path / "log"
    workers = [
        multiprocessing.Process(target=take_turn, args=(str(tmp_path), address, log)) for address in (A, B)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
    lines = log.read_text().splitlines()
    first, second = lines[0].split()[0], lines[2].split()[0]
    assert {first, second} == {A, B}
    assert lines == [
        f"{first} begins True",
        f"{first} ends",
        f"{second} begins True",
        f"{second} ends",
        "streams",
        "streams",
    ]


def test_a_worker_that_is_gone_is_not_waited_for(tmp_path):
    queue = Turns(str(tmp_path), A, (A, B))
    with queue.alone() as alone:
        assert alone
    turns.mark_done(str(tmp_path), B)
    started = time.monotonic()
    assert queue.wait_for_others()
    assert time.monotonic() - started < 1


def test_patience_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "PATIENCE_S", 0.1)
    holder, waiter = Turns(str(tmp_path), A, (A, B)), Turns(str(tmp_path), B, (A, B))
    with holder.alone() as alone:
        assert alone
        with waiter.alone() as other:
            assert not other
    assert not Turns(str(tmp_path), A, (A, B, "0000:99:00.0")).wait_for_others()


def test_a_single_gpu_waits_for_nobody():
    queue = Turns("/nowhere", A, (A,))
    with queue.alone() as alone:
        assert alone
    assert queue.wait_for_others()
