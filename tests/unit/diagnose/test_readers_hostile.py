"""No input makes a reader raise, and none makes it slow: time grows with the size and not with its square."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import as_input

from nodeprep.diagnose.engine import read
from nodeprep.diagnose.inputs_lines import MAX_LINE_BYTES
from nodeprep.diagnose.reader import RawLine
from nodeprep.diagnose.readers import all_readers
from nodeprep.diagnose.sections_boundaries import boundary

SEEDS = sorted((Path(__file__).parents[2] / "fuzz" / "seeds").glob("*.txt"))
READERS = all_readers()
WORDS = st.sampled_from(
    [word for seed in SEEDS for line in seed.read_bytes().splitlines() for word in (line, *line.split())]
)
ODDITIES = st.sampled_from([b"", b" ", b"\t", b"\xff\xfe", b"\x00", b"{", b"[", b"\x1b["])
TEXTS = st.lists(st.one_of(WORDS, st.binary(max_size=60), ODDITIES), max_size=40)


def run(name: str, data: bytes) -> int:
    """Reads to the end; how many items came."""
    lines = data.split(b"\n")
    reader = READERS[name]
    assert 0 <= reader.sniff(lines[:64]) <= 100
    return sum(1 for _ in reader.read("log", (RawLine(number, line) for number, line in enumerate(lines, 1))))


@pytest.mark.parametrize("seed", SEEDS, ids=[seed.stem for seed in SEEDS])
def test_no_wrong_character_in_the_head_of_a_line_makes_a_reader_raise(seed: Path) -> None:
    names = [seed.stem] if seed.stem in READERS else list(READERS)
    for line in [line for line in seed.read_bytes().splitlines() if line.strip()]:
        for at in range(min(len(line), 160)):
            for instead in (b"8", b":", b" ", b"x", b""):
                for name in names:
                    run(name, line[:at] + instead + line[at + 1 :])


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60, deadline=None)
@given(parts=TEXTS, glue=st.sampled_from([b"\n", b" ", b""]))
def test_no_text_makes_a_reader_raise(name: str, parts: list[bytes], glue: bytes) -> None:
    run(name, glue.join(parts))


@settings(max_examples=200, deadline=None)
@given(parts=TEXTS)
def test_no_text_makes_the_whole_way_raise(parts: list[bytes]) -> None:
    events, files = read([as_input("log", b"\n".join(parts))])
    assert len(files) == 1
    assert all(event.lines for event in events)


def test_there_is_an_example_of_every_format_that_is_more_than_its_lines() -> None:
    plain = {"plain", "traceback", "kernel_cmdline", "grub_default", "grubby_info", "grub_transcript",
             "os_release", "prometheus", "dmidecode", "nvidia_bug_report"}  # fmt: skip
    assert {seed.stem for seed in SEEDS} - {"mixed"} == set(READERS) - plain


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "spaces": lambda size: b" " * size,
    "padded value": lambda size: b' "A" : ' + b" " * size + b"x",
    "padded name": lambda size: b"A" + b" " * size + b": x",
    "brackets": lambda size: b"[" * size,
    "nested objects": lambda size: b'{"a":' * (size // 5),
    "nested lists": lambda size: b'{"msg":"x","a":' + b"[" * size,
    "digits": lambda size: b"1" * size,
    "colons": lambda size: b"a: " * (size // 3),
    "tags": lambda size: b"<a " * (size // 3),
    "bars": lambda size: b"| " * (size // 2),
    "commas": lambda size: b"index, name, ecc.x, " * (size // 20),
    "tree": lambda size: b"-[0000:00]-" + b"00.0-[01]-" * (size // 10),
    "escapes": lambda size: b"\x1b[" * (size // 2),
    "stamps": lambda size: b"[    1.000000] " * (size // 15),
    "seed words": lambda size: b" ".join(
        random.Random(1).choices([s.read_bytes().splitlines()[0] for s in SEEDS], k=size // 60)  # noqa: S311
    ),
}
SMALL, LARGE = MAX_LINE_BYTES // 8, MAX_LINE_BYTES
"""The engine cuts longer lines, so that this is the longest a reader ever sees."""


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_time_grows_with_the_length_of_a_line_and_not_with_its_square(name: str, kind: str) -> None:
    def took(size: int) -> float:
        data = HOSTILE[kind](size)
        begun = time.process_time()
        run(name, data)
        return time.process_time() - begun

    # Eight times the length; its square would be 64 times the time. What takes a moment proves nothing, and a
    # garbage collection in the wrong moment is not there the next time.
    tries = []
    for _ in range(4):
        small, large = took(SMALL), took(LARGE)
        if large < 0.05 or large < 32 * max(small, 0.002):
            return
        tries.append((small, large))
    pytest.fail(f"seconds for a short and a long line: {tries}")


@pytest.mark.parametrize(
    "line", [b"a@b:" + b"x" * 900, b"[a@b " + b"#" * 900, b"_" * 990 + b"x", b"$ " + b" x" * 480]
)
def test_a_boundary_is_looked_for_in_short_lines_and_found_fast(line: bytes) -> None:
    begun = time.process_time()
    boundary(line * 1)
    boundary(line * 1000)
    # What was quadratic took minutes here.
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_mebibyte_without_a_line_feed_is_read(kind: str) -> None:
    (told,) = read([as_input("log", HOSTILE[kind](1 << 20))])[1]
    assert told.lines == 1
    assert any("were cut" in note for note in told.notes)
