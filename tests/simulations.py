"""Whether the error rates and the power that kattn states are those that it has, by drawing data whose truth is known.

    python tests/simulations.py results/reference/statistics/simulations.csv

A row for each model, kind of noise, and number of seeds: ``promised`` is the rate that is stated, ``found`` the one
that was drawn, ``error`` its Monte-Carlo standard error, and ``holds`` says whether they agree within three of them, or
``found`` is on the safe side. Noise is that of a seed, in points, beyond what mechanism and seed have in common.
Seeds vary here; Bouthillier et al. (2021) find that data drawn anew vary more, which only the crossed model has.
"""

from __future__ import annotations

import argparse
import csv
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

from kattn_cli.statistics.crossed import Bits, crossed, pigeonhole
from kattn_cli.statistics.effect import Effect
from kattn_cli.statistics.power import Components, equivalence_power, seeds_needed
from kattn_cli.statistics.robust import ranks
from kattn_cli.statistics.two_way import compare, one_sample
from kattn_cli.statistics.verdict import Decision, Question, Verdict, across, decide

LEVEL, MARGIN, ARMS = 0.05, 1.0, 5
SEED = 0
SAFE = {"type I": 1, "equivalence": 1, "family": 1, "page": 1, "power": -1}
"""On which side of what is promised a rate may lie: errors below it, power above it."""
Random = np.random.Generator
Noise = Callable[[Random, tuple[int, ...]], NDArray[np.floating]]
NOISE: dict[str, Noise] = {
    "normal": lambda random, shape: random.normal(size=shape),
    "exponential": lambda random, shape: random.exponential(size=shape) - 1,
    "lognormal": lambda random, shape: (np.exp(random.normal(size=shape)) - math.exp(0.5)) / 2.16,
    "t of 3 df": lambda random, shape: random.standard_t(3, size=shape) / math.sqrt(3),
}
"""Of mean 0 and variance 1."""


@dataclass(frozen=True)
class Row:
    """One rate, as it is promised and as it was found."""

    rate: str
    model: str
    noise: str
    seeds: int
    images: int
    promised: float
    found: float
    error: float
    repetitions: int

    @property
    def holds(self) -> bool:
        return SAFE[self.rate] * (self.found - self.promised) <= 3 * self.error


@dataclass(frozen=True)
class Case:
    """``happens`` draws data and says whether what ``promised`` counts happened."""

    rate: str
    model: str
    noise: str
    seeds: int
    images: int
    promised: float
    happens: Callable[[Random], bool | float]
    cost: int = 1
    """So many times fewer repetitions than others."""

    def row(self, repetitions: int) -> Row:
        """Return what so many draws find."""
        count = max(100, repetitions // self.cost)
        name = f"{self.rate} {self.model} {self.noise} {self.seeds} {self.images}"
        random = np.random.default_rng([SEED, zlib.crc32(name.encode())])
        drawn = np.asarray([float(self.happens(random)) for _ in range(count)])
        error = max(float(drawn.std(ddof=1)), math.sqrt(self.promised * (1 - self.promised))) / math.sqrt(count)
        shown = (round(self.promised, 4), round(float(drawn.mean()), 4), round(error, 4))
        return Row(self.rate, self.model, self.noise, self.seeds, self.images, *shown, count)


def table(
    noise: Noise, seeds: int, means: list[float], scale: list[float], random: Random
) -> dict[str, dict[int, float]]:
    """Draw arm → seed → value."""
    common = random.normal(0, 1, seeds)
    numbers = np.asarray(means)[:, None] + common + np.asarray(scale)[:, None] * noise(random, (len(means), seeds))
    return {str(arm): dict(enumerate(row.tolist())) for arm, row in enumerate(numbers)}


EQUAL, ONE_NOISY = [1.0] * ARMS, [1.0] * (ARMS - 1) + [3.0]


def of_seeds(model: str, noise: Noise, seeds: int, scale: list[float], mean: float, random: Random) -> Effect:
    """Return the effect of the last arm, whose mean is ``mean``, against the first, of 0."""
    values = table(noise, seeds, [0.0] * (len(scale) - 1) + [mean], scale, random)
    last = str(len(scale) - 1)
    if model == "two-way":
        return compare(values, [(last, "0"), *((str(arm), "0") for arm in range(1, len(scale) - 1))])[0]
    difference = {seed: values[last][seed] - values["0"][seed] for seed in range(seeds)}
    return ranks(difference) if model == "ranks" else one_sample(difference)


@dataclass(frozen=True)
class Mixed:
    """A mixed logistic model of bits: logits of images, of seeds, and of a mechanism on an image.

    Attributes:
        of_seed, of_image: standard deviations of the difference of both mechanisms' logits.
        gain: its mean.
    """

    of_seed: float
    of_image: float = 0.3
    gain: float = 0.0

    def draw(self, seeds: int, images: int, random: Random) -> tuple[Bits, Bits]:
        """Draw the bits of both."""
        hard = random.normal(2, 2, images) + random.normal(0, 0.2, (seeds, 1))
        half = (self.gain + random.normal(0, self.of_seed, (seeds, 1)) + random.normal(0, self.of_image, images)) / 2
        first, second = (special.expit(hard + side * half) > random.random((seeds, images)) for side in (1, -1))
        return dict(enumerate(first)), dict(enumerate(second))

    @property
    def components(self) -> Components:
        """Return what varies, in points, from many draws."""
        random = np.random.default_rng(SEED)
        found = [crossed(*self.draw(60, 1000, random)) for _ in range(20)]
        parts = np.mean([astuple(one.components) for one in found], axis=0)  # type: ignore[attr-defined]
        return Components(*map(float, parts))

    @property
    def points(self) -> float:
        """Return the mean difference, in points, by integrating over images and seeds."""
        random = np.random.default_rng(SEED)
        hard, half = (
            random.normal(2, 2.01, 10**6),
            random.normal(self.gain, math.hypot(self.of_seed, self.of_image), 10**6) / 2,
        )
        return 100 * float((special.expit(hard + half) - special.expit(hard - half)).mean())


SEED_NOISE = {"0.5 points": Mixed(0.05), "2 points": Mixed(0.2)}


def rejected(effect: Callable[[Random], Effect], random: Random) -> bool:
    return effect(random).p_apart() <= LEVEL


def called_equivalent(effect: Callable[[Random], Effect], random: Random) -> bool:
    return effect(random).p_within(MARGIN) <= LEVEL


def family(noise: Noise, seeds: int, scale: list[float], random: Random, means: tuple[float, ...]) -> list[Decision]:
    values = table(noise, seeds, list(means), scale, random)
    found = compare(values, [(str(arm), "0") for arm in range(1, ARMS)])
    return decide(
        [
            Question(one, MARGIN, published=MARGIN if mean == 0 else 0)
            for one, mean in zip(found, means[1:], strict=True)
        ]
    )


def is_wrong(decision: Decision, mean: float) -> bool:
    """Return whether a verdict says what is not so; that nothing can be told is never wrong."""
    right = {
        Verdict.better: mean > 0,
        Verdict.worse: mean < 0,
        Verdict.equivalent: abs(mean) < MARGIN,
        Verdict.excluded: mean < MARGIN,
        Verdict.undecided: True,
    }
    return not right[decision.verdict]


def family_errs(noise: Noise, seeds: int, scale: list[float], random: Random) -> bool:
    """Two arms do not differ from the first, two differ by the margin."""
    means = (0.0, 0.0, MARGIN, 0.0, -MARGIN)
    decisions = family(noise, seeds, scale, random, means)
    return any(is_wrong(one, mean) for one, mean in zip(decisions, means[1:], strict=True))


def page_errs(noise: Noise, seeds: int, random: Random) -> float:
    """Return the share that is wrong of a page's families that are told: of ten, half of them without a difference."""
    truths = [(0.0,) * ARMS if place % 2 else (0.0, *[5 * MARGIN] * (ARMS - 1)) for place in range(10)]
    told = across([family(noise, seeds, [2.0] * ARMS, random, truth) for truth in truths])
    wrong = [
        any(is_wrong(one, mean) for one, mean in zip(decisions, truth[1:], strict=True))
        for decisions, truth in zip(told, truths, strict=True)
        if any(one.verdict is not Verdict.undecided for one in decisions)
    ]
    return float(np.mean(wrong)) if wrong else 0.0


def cases() -> Iterator[Case]:
    """Yield all that is simulated."""
    for seeds in (3, 5, 10):
        for name, noise in NOISE.items():
            for model in ("Student", "two-way", "ranks"):
                if model == "ranks" and seeds < 6:
                    continue  # tells nothing
                null = partial(of_seeds, model, noise, seeds, EQUAL, 0.0)
                yield Case("type I", model, name, seeds, 0, LEVEL, partial(rejected, null))
            at_margin = partial(of_seeds, "two-way", NOISE[name], seeds, [0.5] * ARMS, MARGIN)
            yield Case("equivalence", "two-way", name, seeds, 0, LEVEL, partial(called_equivalent, at_margin))
            yield Case("family", "decide", name, seeds, 0, LEVEL, partial(family_errs, noise, seeds, [0.5] * ARMS))
        for name in ("normal", "exponential", "t of 3 df"):
            for model in ("Student", "two-way"):
                null = partial(of_seeds, model, NOISE[name], seeds, ONE_NOISY, 0.0)
                yield Case("type I", model, f"{name}, 3 × in one arm", seeds, 0, LEVEL, partial(rejected, null))
        half = [scale / 2 for scale in ONE_NOISY]
        errs = partial(family_errs, NOISE["normal"], seeds, half)
        yield Case("family", "decide", "normal, 3 × in one arm", seeds, 0, LEVEL, errs)
        yield Case("page", "across", "normal", seeds, 0, LEVEL, partial(page_errs, NOISE["normal"], seeds), 10)
        yield from _of_bits(seeds)
        yield from _of_power(seeds)


def _of_bits(seeds: int) -> Iterator[Case]:
    for name, mixed in SEED_NOISE.items():
        for images in (200, 2000):

            def effect(random: Random, mixed: Mixed = mixed, images: int = images) -> Effect:
                return crossed(*mixed.draw(seeds, images, random))

            def resampled(random: Random, mixed: Mixed = mixed, images: int = images) -> Effect:
                return pigeonhole(*mixed.draw(seeds, images, random), draws=400, seed=int(random.integers(2**31)))

            def of_means(random: Random, mixed: Mixed = mixed, images: int = images) -> Effect:
                first, second = mixed.draw(seeds, images, random)
                return one_sample({seed: 100 * float(first[seed].mean() - second[seed].mean()) for seed in first})

            noise = f"seeds {name}"
            yield Case("type I", "crossed", noise, seeds, images, LEVEL, partial(rejected, effect), 2)
            yield Case("type I", "Student on seeds' means", noise, seeds, images, LEVEL, partial(rejected, of_means), 2)
            if images == 200:
                yield Case("type I", "pigeonhole", noise, seeds, images, LEVEL, partial(rejected, resampled), 20)


def _of_power(seeds: int) -> Iterator[Case]:
    """Power as ``power.py`` promises it from variances that are known: of both arms' noise of 1 point each."""
    pilot = Components(2.0)
    effect = 1.5
    promised = pilot.power(effect, seeds)
    for model in ("Student", "two-way"):
        shifted = partial(of_seeds, model, NOISE["normal"], seeds, EQUAL, effect)
        yield Case("power", model, "normal", seeds, 0, promised, partial(rejected, shifted))
    error = Components(2 * 0.5**2).standard_error(seeds)
    same = partial(of_seeds, "Student", NOISE["normal"], seeds, [0.5, 0.5], 0.0)
    within = equivalence_power(MARGIN, error, seeds - 1)
    yield Case("power", "Student, equivalence", "normal", seeds, 0, within, partial(called_equivalent, same))
    for size in (1.0, 2.0):
        needed = seeds_needed(pilot, size)
        if needed is not None and seeds == 10:
            enough = partial(of_seeds, "Student", NOISE["normal"], needed, EQUAL, size)
            promised = pilot.power(size, needed)
            yield Case("power", f"seeds for {size:g} points", "normal", needed, 0, promised, partial(rejected, enough))
    for name, mixed in SEED_NOISE.items():
        better = Mixed(mixed.of_seed, gain=0.25)
        images, of_bits = 1000, better.components
        promised = of_bits.power(better.points, seeds, images)

        def drawn(random: Random, better: Mixed = better) -> Effect:
            return crossed(*better.draw(seeds, 1000, random))

        yield Case("power", "crossed", f"seeds {name}", seeds, images, promised, partial(rejected, drawn), 2)


def write(path: Path, rows: list[Row]) -> None:
    """Write the rows, with what holds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(field.name for field in fields(Row)), "holds"])
        writer.writerows([*astuple(row), "yes" if row.holds else "no"] for row in rows)


def main() -> None:
    """Simulate all cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--repetitions", type=int, default=4000)
    arguments = parser.parse_args()
    rows = []
    for case in cases():
        rows.append(row := case.row(arguments.repetitions))
        print(*astuple(row), "" if row.holds else "DOES NOT HOLD", sep="  ", flush=True)
    write(arguments.path, rows)


if __name__ == "__main__":
    main()
