"""A claim, its class, and what runs say of it before it is judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import fmean

from kattn_cli.papers.evidence import Evidence
from kattn_cli.statistics.effect import Effect
from kattn_cli.tables.margins import Margin

SCALE_BOUND = "scale-bound"


class Kind(str, Enum):
    """What a claim is held against, where its scale is reached."""

    statistical = "statistical"
    """Numbers of several seeds, judged by :mod:`kattn_cli.statistics`."""
    arithmetic = "arithmetic"
    """Counting: parameters, the bytes of a state, what a threshold lets through by construction."""
    measurement = "measurement"
    """Time or memory, measured on one machine, with the spread of its rounds."""


@dataclass(frozen=True)
class Scale:
    """From what size on a claim can be tested; of a finding, what its runs come up to.

    Attributes:
        tokens: N, of the shortest task.
        accuracy: top-1 in %, of what is compared with, on the hardest task.
        batch: samples in a step.
        points: of kernel PCA.
        data: the sets of which any will do, nothing for all.
    """

    tokens: int = 0
    accuracy: float = 0.0
    batch: int = 0
    points: int = 0
    data: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return ``from 1,000 tokens and 30 % top-1 on``."""
        sizes = [WORDS[name].format(value) for name, value in self._sizes.items() if value]
        parts = [f"from {' and '.join(sizes)} on"] if sizes else []
        return ", ".join([*parts, *([f"on {' or '.join(self.data)}"] if self.data else [])])

    def unmet(self, reached: Scale) -> str:
        """Return what is missing, with what is there: ``1,000 tokens (here 64)``; nothing where nothing is."""
        here = reached._sizes
        missing = [
            f"{WORDS[name].format(value)} (here {here[name]:,.4g})"
            for name, value in self._sizes.items()
            if here[name] < value
        ]
        if self.data and not set(self.data) & set(reached.data):
            missing.append(f"{' or '.join(self.data)} (here {', '.join(reached.data) or 'other data'})")
        return ", ".join(missing)

    @property
    def _sizes(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in WORDS}


WORDS = {
    "tokens": "{:,} tokens",
    "accuracy": "{:g} % top-1",
    "batch": "batches of {:,}",
    "points": "{:,} points",
}
"""Of the sizes of a :class:`Scale`."""


@dataclass(frozen=True)
class Finding:
    """What one label's runs say.

    Attributes:
        label: of the runs.
        beside: what else to know, in words.
        paper_number: what the paper prints of the same quantity, on its own data; nan where it prints none.
        reached: what the runs come up to, for the claim's scale.
    """

    label: str
    beside: str = ""
    paper_number: float = math.nan
    reached: Scale = Scale()


@dataclass(frozen=True)
class Estimated(Finding):
    """A difference or a number of several seeds, which the claim says is above ``bound``, or below it.

    Attributes:
        effect: what its model comes to; None where there is nothing to judge, and ``why`` says why.
        sample: seed → number, in place of an effect: its variance is pooled over the samples of the claim.
        below: whether the claim says that it is below.
        why: nothing can be told: ``no number for 2 of 5 seeds``; empty where it can.
    """

    effect: Effect | None = None
    sample: Mapping[int, float] = field(default_factory=dict)
    bound: float = 0.0
    below: bool = False
    why: str = ""


class Truth(str, Enum):
    """What a fact says of the claim."""

    true = "true"
    false = "false"
    unclear = "within its spread"
    no_bound = "no bound stated"


@dataclass(frozen=True)
class Fact(Finding):
    """A number that is counted or measured, with the range of its rounds or seeds; nothing is tested."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    truth: Truth = Truth.no_bound
    seeds: int = 1


Judge = Callable[[Evidence], list[Finding]]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper.

    Attributes:
        where: in the paper.
        criterion: what is measured, and when the claim holds.
        command: that measures it.
        judge: returns what the runs say, for each label.
        margin: of a comparison of two models, within which they are equivalent; None of a number against a bound.
        kind: what it is held against.
        scale: from what size on it can be tested; None where any will do.
    """

    where: str
    text: str
    criterion: str
    command: str
    judge: Judge
    margin: Margin | None = None
    kind: Kind = Kind.statistical
    scale: Scale | None = None

    @property
    def classed(self) -> str:
        """Return its class: ``scale-bound``, or else the name of its kind."""
        return SCALE_BOUND if self.scale else self.kind.value

    @property
    def rule(self) -> str:
        """Return the criterion, with margin and scale."""
        parts = [self.criterion]
        parts += [f"margin {self.margin}"] if self.margin else []
        parts += [f"can be tested {self.scale}"] if self.scale else []
        return "; ".join(parts)


def truth_of(low: float, high: float, below: float) -> Truth:
    """Return whether a range lies below a bound, at it or above, or on both sides."""
    return Truth.true if high < below else Truth.false if low >= below else Truth.unclear


def over_seeds(
    label: str,
    numbers: Sequence[float],
    beside: str = "",
    paper_number: float = math.nan,
    reached: Scale | None = None,
    truth: Truth = Truth.no_bound,
) -> Fact:
    """Return the fact of the mean over seeds, with the range of their numbers."""
    low, high, mean = min(numbers), max(numbers), fmean(numbers)
    return Fact(label, beside, paper_number, reached or Scale(), mean, low, high, truth, len(numbers))


def against_bound(
    label: str,
    by_seed: Mapping[int, float],
    *,
    above: float | None = None,
    below: float | None = None,
    beside: str = "",
    paper_number: float = math.nan,
) -> Estimated:
    """Return the finding on numbers that the claim says are ``above`` a bound, or ``below`` one.

    Args:
        by_seed: seed → number. Where one is not a number, nothing is told of the label: what is missing is seldom
            missing by chance.
    """
    bound = above if above is not None else below
    assert bound is not None
    return Estimated(
        label, beside, paper_number, sample=by_seed, bound=bound, below=above is None, why=missing(by_seed)
    )


def missing(by_seed: Mapping[int, float]) -> str:
    """Return ``no number for 2 of 5 seeds``; nothing where all have one."""
    lost = sum(not math.isfinite(value) for value in by_seed.values())
    return f"no number for {lost} of {len(by_seed)} seeds" if lost else ""
