"""The simulated rack's own all-reduce: real data over real sockets, compared with the exact sums."""

from __future__ import annotations

import tempfile
import threading
from array import array

import pytest

from nodeprep.probe.peers import ring


@pytest.fixture
def meeting():
    # Under pytest's own folders a socket's path would be too long.
    with tempfile.TemporaryDirectory(prefix="ring-") as folder:
        yield folder


def together(meeting: str, world: int, size: int) -> list[tuple[float, int | None]]:
    answers: dict[int, tuple[float, int | None]] = {}
    # A rank that is done keeps its connections, as a real one does until the parent lets it go.
    rings: list[ring.Ring] = []

    def take_part(rank: int) -> None:
        mine = ring.Ring(meeting, rank, world)
        rings.append(mine)
        answers[rank] = mine.reduce(size, 1, verify=True)

    threads = [threading.Thread(target=take_part, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    return [answers[rank] for rank in range(world)]


@pytest.mark.parametrize(("world", "size"), [(2, 4096), (3, 4096), (8, 1024), (3, 8)])
def test_every_rank_has_the_exact_sums(meeting, world, size):
    assert [wrong for _, wrong in together(meeting, world, size)] == [0] * world


def test_a_wrong_element_is_counted(meeting, monkeypatch):
    plain = ring.Ring._sums

    def wrong(self, count):
        data = plain(self, count)
        if self._rank == 1:
            data[3] ^= 1
        return data

    monkeypatch.setattr(ring.Ring, "_sums", wrong)
    assert [count for _, count in together(meeting, 3, 1024)] == [0, 1, 0]


def test_data_of_ranks_differ():
    assert len({bytes(array("q", ring._data(rank, 64)).tobytes()) for rank in range(8)}) == 8
