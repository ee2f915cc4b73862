"""What a probe says, in one line with the number that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Word = Literal["passed", "found", "told", "not asked"]


@dataclass(frozen=True)
class Finding:
    """``found``: something is wrong, or not what it seems; ``told``: a property that is neither good nor bad."""

    question: str
    word: Word
    evidence: str

    @classmethod
    def of(cls, question: str, found: bool, evidence: str) -> Finding:
        """Return ``found`` or ``passed``."""
        return cls(question, "found" if found else "passed", evidence)

    @classmethod
    def unasked(cls, question: str, why: str) -> Finding:
        """Return that a question makes no sense here, and why."""
        return cls(question, "not asked", why)

    def __str__(self) -> str:
        return f"{self.word:9}  {self.question}  {self.evidence}"


def size(value: float) -> str:
    """Return a share of 1 in per cent, or as a power of ten where it is next to nothing."""
    return f"{100 * value:.3g} %" if value >= 1e-4 else f"{value:.0e}" if value else "0"
