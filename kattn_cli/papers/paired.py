"""The difference of two models on images, of what was measured of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from kattn_cli.papers.evidence import Evidence, by_seed, less, told
from kattn_cli.papers.finding import Finding, judged
from kattn_cli.tables.frames import clean_rows

Choose = Callable[[pd.DataFrame], pd.DataFrame]
Printed = Callable[[str], float]
"""From the folder of a run to what its paper prints."""


@dataclass(frozen=True)
class Pair:
    """Means by seed of one label and of what it is compared with; ``folder`` is that of one of the label's runs."""

    label: str
    ours: dict[int, float]
    theirs: dict[int, float]
    folder: str

    @property
    def difference(self) -> dict[int, float]:
        return less(self.ours, self.theirs)

    def beside(self, unit: str = "%", digits: int = 3) -> str:
        """``81.2 against 80.9 %``."""
        return f"{told(self.ours, digits)} against {told(self.theirs, digits)} {unit}".rstrip()


def compared(
    evidence: Evidence,
    table: str,
    ours: str,
    base: str,
    *,
    choose: Choose = lambda rows: rows,
    on: Sequence[str] = (),
    column: str = "top1",
) -> Iterator[Pair]:
    """Recipes called like ``ours`` beside ``base`` of their folder, where both have rows that can be compared.

    Args:
        table, ours, base: see :meth:`~kattn_cli.papers.evidence.Evidence.pairs`.
        choose: which of a label's rows.
        on: columns that must be the same in both, beside the seed; of rows alike in them the last counts.
    """
    keys = ["run_seed", *on]
    for label, *both in evidence.pairs(table, ours, base):
        parts = [choose(rows).drop_duplicates(keys, keep="last") for rows in both]
        joined = parts[0].merge(parts[1], on=keys, suffixes=("", "_base"))
        if "images" in on:
            joined = joined[joined["images"] == joined.groupby("run_seed")["images"].transform("max")]
        joined = joined.dropna(subset=[column, f"{column}_base"])
        if len(joined):
            means = [by_seed(joined, one) for one in (column, f"{column}_base")]
            yield Pair(label, means[0], means[1], str(joined["folder"].iloc[0]))


def nothing_printed(folder: str) -> float:
    """Of a quantity that the paper does not print."""
    return math.nan


def judge_pairs(
    pairs: Iterator[Pair],
    *,
    above: float | None = None,
    below: float | None = None,
    unit: str = "%",
    digits: int = 3,
    printed: Printed = nothing_printed,
) -> list[Finding]:
    """One finding a pair, by its difference."""
    return [
        judged(
            pair.label,
            pair.difference,
            above=above,
            below=below,
            beside=pair.beside(unit, digits),
            paper_number=printed(pair.folder),
        )
        for pair in pairs
    ]


def clean_pairs(evidence: Evidence, ours: str, base: str) -> Iterator[Pair]:
    """Clean test top-1, over the most images that both were measured on."""
    return compared(evidence, "eval", ours, base, choose=clean_rows, on=["images"])


def more_accurate(
    evidence: Evidence, ours: str, base: str, *, above: float = 0.0, printed: Printed = nothing_printed
) -> list[Finding]:
    """The difference of clean test top-1."""
    return judge_pairs(clean_pairs(evidence, ours, base), above=above, digits=4, printed=printed)
