"""Coverage-guided fuzzing of every reader and of the parting into sections: no input makes one raise.

    python tests/fuzz/fuzz_readers.py -runs=1000000 CORPUS_FOLDER

The first byte of an input chooses a reader; the rest is the text it reads. One choice more than there are
readers is the whole way: blocks, sections, the reader that is surest.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["nodeprep.diagnose"]):
    from nodeprep.diagnose.engine import read
    from nodeprep.diagnose.inputs_input import Input
    from nodeprep.diagnose.reader import RawLine
    from nodeprep.diagnose.readers import all_readers

import io

_READERS = tuple(all_readers().values())


def one(data: bytes) -> None:
    """One input; raises what a reader raises."""
    if not data:
        return
    chosen, text = data[0] % (len(_READERS) + 1), data[1:]
    if chosen == len(_READERS):
        read([Input(name="fuzz", open=lambda: io.BytesIO(text), size_bytes=len(text))])  # type: ignore[arg-type,return-value]
        return
    lines = text.split(b"\n")
    reader = _READERS[chosen]
    sure = reader.sniff(lines[:64])
    if not 0 <= sure <= 100:
        raise AssertionError(f"{reader.id} is {sure} sure")
    for _ in reader.read("fuzz", (RawLine(number, line) for number, line in enumerate(lines, 1))):
        continue


def seed(folder: Path) -> None:
    """One example of each format, from which libFuzzer goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    examples = Path(__file__).with_name("seeds").glob("*")
    for example in sorted(examples):
        number = next((n for n, reader in enumerate(_READERS) if reader.id == example.stem), len(_READERS))
        (folder / example.name).write_bytes(bytes([number]) + example.read_bytes())


if __name__ == "__main__":
    seed(Path(sys.argv[-1]))
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
