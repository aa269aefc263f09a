"""What a roll-back came to, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List


@dataclass(frozen=True)
class Undone:
    """What is as it was before again, and what is not, each in words."""

    back: List[str]
    stuck: List[str]

    def __str__(self) -> str:
        if not self.back and not self.stuck:
            return "nothing was changed"
        sentences = [f"rolled back: {', '.join(self.back)}"] if self.back else []
        sentences.extend([f"could not be rolled back: {', '.join(self.stuck)}"] if self.stuck else [])
        return "; ".join(sentences)
