"""Finds the few lines of a block that somebody wants, at the speed of grep.

Most of a kernel log is about other things. The words that decoders and readers look for are
searched for all at once (Aho-Corasick); lines without any of them are counted and never decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import ahocorasick_rs


class Prefilter:
    """A set of words.

    Args:
        needles: Exact bytes; a line is wanted when it holds one of them.
    """

    def __init__(self, needles: Iterable[bytes]) -> None:
        self.needles = _shortest(needles)
        self._automaton = ahocorasick_rs.BytesAhoCorasick(
            self.needles, implementation=ahocorasick_rs.Implementation.DFA
        )

    def lines(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Where the wanted lines of a block lie, in order, each with the line before it.

        A line without a time of its own (the second and third of a fall-off) has that of the line
        before, wanted or not.

        Args:
            block: Whole lines.

        Yields:
            Start and end (the line feed is left out) of each line; none comes twice.
        """
        done = 0
        for _, at, _ in self._automaton.find_matches_as_indexes(block):
            if at < done:
                continue
            start = block.rfind(b"\n", done, at) + 1 or done
            if start > done:
                before = block.rfind(b"\n", done, start - 1) + 1 or done
                yield before, start - 1
            end = block.find(b"\n", at)
            if end < 0:
                end = len(block)
            yield start, end
            done = end + 1


def _shortest(needles: Iterable[bytes]) -> list[bytes]:
    """Without words that hold another one: they add nothing."""
    kept: list[bytes] = []
    for needle in sorted(set(needles), key=lambda each: (len(each), each)):
        if needle and not any(shorter in needle for shorter in kept):
            kept.append(needle)
    return kept
