"""What was tried, and what came of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from fault_injection.commands import Said

GOOD = ("ok", "refused", "stopped")
"""A command does what it is asked to, or says in a line why it cannot; all else is a fault of kattn."""
VERDICTS = ("ok", "refused", "stopped", "traceback", "hangs", "silent", "lost", "leftover")
"""``silent``: other numbers than asked for, without a word. ``lost``: what had been written is not there, or is not the
same. ``leftover``: what a dead process left counts as a run."""


@dataclass(frozen=True)
class Case:
    """One fault: the part of the harness, what was done, the verdict, and what kattn said."""

    part: str
    what: str
    verdict: str
    said: str = ""

    @property
    def good(self) -> bool:
        """Whether this is how it must be."""
        return self.verdict in GOOD


def judged(part: str, what: str, said: Said, otherwise: str = "") -> Case:
    """Return a command's case; ``otherwise`` is the verdict where the command itself has nothing wrong."""
    verdict = said.verdict if said.verdict not in GOOD else otherwise or said.verdict
    told = f"kattn {' '.join(said.words)}\n{said.out[-2000:]}{said.err[-4000:]}"
    return Case(part, what, verdict, f"{told}exit code {said.code} after {said.seconds:.1f} s")


def chance(seed: int, *words: object) -> random.Random:
    """Return what draws for one case: the same for the same seed and words, whatever else is run."""
    return random.Random(" ".join(map(str, (seed, *words))))


def table(cases: Iterable[Case]) -> list[dict[str, object]]:
    """Return a row a part: how many were tried, and how many had each verdict."""
    counted: dict[str, Counter[str]] = {}
    for case in cases:
        counted.setdefault(case.part, Counter())[case.verdict] += 1
    return [
        {"part": part, "tried": sum(counts.values()), **{one: counts[one] for one in VERDICTS}}
        for part, counts in counted.items()
    ]
