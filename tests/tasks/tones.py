"""A sixth kind of data, as somebody would add it: tones, each a short wave whose frequency is to be found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from kattn_cli.console import console
from kattn_cli.data.dataset import DataSet, FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.sequences import Padded
from kattn_cli.models import AttentionModel, Layers, build_sequence_classifier, sequence_layers
from kattn_cli.recipe.data import DataSection
from kattn_cli.recipe.model import Encoder, OtherModel
from kattn_cli.recipe.schema import Recipe
from kattn_cli.recipe.strict_yaml import Fault
from kattn_cli.runs.csv_rows import replace_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.measures import Measure
from kattn_cli.tasks.task import OF_SPLITS, Asked, Task
from kattn_cli.training.objective import Objective


class ToneSection(DataSection):
    """Tones, and how loud they are."""

    loudness: float = 1.0


class Ear(OtherModel):
    """An encoder that hears."""

    name: Literal["ear"] = "ear"
    hears: float = 2.0


STEPS = 16
EXPLAINED = Measure("explained", "explained", 3)


@dataclass(frozen=True)
class ToneSplit:
    """``waves`` ``(n, N)`` and their ``frequencies`` ``(n,)``."""

    waves: Tensor
    frequencies: Tensor

    def __len__(self) -> int:
        return len(self.waves)

    def take(self, indices: Tensor | slice) -> tuple[Padded, Tensor]:
        """Return the waves at ``indices`` as sequences of one channel, and their frequencies."""
        return Padded(self.waves[indices][..., None]), self.frequencies[indices]

    def subset(self, indices: Tensor) -> ToneSplit:
        """Return the waves at ``indices``."""
        return ToneSplit(self.waves[indices], self.frequencies[indices])

    def first(self, count: int | None) -> ToneSplit:
        """Return the first ``count``, or all."""
        return ToneSplit(self.waves[:count], self.frequencies[:count])

    def to(self, device: torch.device) -> ToneSplit:
        """Return the same on another device."""
        return ToneSplit(self.waves.to(device), self.frequencies.to(device))

    def batches(self, size: int) -> Iterator[tuple[Padded, Tensor]]:
        """Yield all in order."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))


@dataclass(frozen=True)
class ToneData:
    """Loaded tones."""

    unit: ClassVar[str] = "tones"
    reads: ClassVar[str] = "tones"
    name: str
    splits: dict[SplitName, ToneSplit]
    chosen_on: SplitName = "validation"
    unreadable: Callable[[], list[str]] = list

    def sample(self, count: int, device: torch.device | str) -> Padded:
        """Return ``count`` waves of noise."""
        return Padded(torch.randn(count, STEPS, 1, device=device))

    def targets(self, count: int, device: torch.device | str) -> Tensor:
        """Return frequencies of as many."""
        return torch.rand(count, device=device)


class ToneSet(DataSet):
    """Tones that are computed."""

    description = "tones of a test"
    how_to_get = "nothing is needed"
    reads = "tones"
    section = ToneSection

    def __init__(self, count: int = 64) -> None:
        self.count = count

    def missing(self) -> str:
        """Return nothing: all is computed."""
        return ""

    def files(self) -> list[FileCheck]:
        """Return none."""
        return []

    def fetch(self) -> None:
        """Do nothing."""

    def split(self, seed: int, loudness: float) -> ToneSplit:
        """Return ``count`` tones."""
        frequencies = torch.rand(self.count, generator=torch.Generator().manual_seed(seed))
        return ToneSplit(loudness * torch.sin(torch.arange(STEPS) * frequencies[:, None]), frequencies)


@dataclass(frozen=True)
class ToneChecked:
    """What a model is worth on a split."""

    loss: float
    measures: dict[str, float]
    auxiliary_loss: float = 0.0


class ToneError(Objective):
    """The mean squared error of frequencies; an epoch is chosen by the share of their variance that is explained."""

    measure = EXPLAINED
    kept = 3

    def loss(self, outputs: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        """See :class:`Objective`."""
        return (outputs[:, 0] - targets).square().mean()

    def count(self, targets: Tensor) -> Tensor:
        """Return the number of tones."""
        return torch.full((), len(targets), dtype=torch.float64)

    def sums(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return squared errors, targets, and their squares."""
        parts = ((outputs[:, 0] - targets).square(), targets, targets.square())
        return torch.stack([one.double().sum() for one in parts])

    def measures(self, sums: Sequence[float], count: float) -> dict[str, float]:
        """Return the share explained."""
        squares, total, power = sums
        return {EXPLAINED.name: 1 - squares / (power - total**2 / count)}

    @torch.no_grad()
    def evaluate(
        self, model: AttentionModel, split: Any, gather: Callable[[Tensor], Tensor] | None = None
    ) -> ToneChecked:
        """See :class:`Objective`."""
        training = model.training
        model.eval()
        rows = [self.sums(model(waves), frequencies) for waves, frequencies in split.batches(256)]
        model.train(training)
        sums = torch.stack(rows).sum(0).tolist()
        return ToneChecked(sums[0] / len(split), self.measures(sums, len(split)))


class Tones(Task[ToneSet, ToneSection, ToneData]):
    """The frequency of each tone."""

    reads = "tones"
    holds = "tones"
    short = "tone"
    measure = EXPLAINED
    section = ToneSection
    models = (Ear,)
    options = OF_SPLITS
    data_sets: ClassVar[dict[str, type[DataSet]]] = {"tones": ToneSet}

    def load(self, source: ToneSet, section: ToneSection) -> ToneData:
        """See :class:`Task`."""
        names: tuple[SplitName, ...] = ("train", "validation", "test")
        return ToneData(section.name, {name: source.split(seed, section.loudness) for seed, name in enumerate(names)})

    def outline(self, source: ToneSet, section: ToneSection, folder: Path | None) -> ToneData:
        """See :class:`Task`."""
        return ToneData(section.name, {})

    def shape(self, data: ToneData) -> str:
        """See :class:`Task`."""
        return f"waves of {STEPS} steps"

    def length(self, source: ToneSet, section: ToneSection) -> int:
        """See :class:`Task`."""
        return STEPS

    def length_of(self, data: ToneData) -> int:
        """See :class:`Task`."""
        return STEPS

    def layers(self, model: Any, length: int) -> Layers:
        """See :class:`Task`."""
        return sequence_layers(model, length)

    def build(self, recipe: Recipe, data: ToneData) -> AttentionModel:
        """See :class:`Task`."""
        assert isinstance(recipe.model, Ear)
        ear = recipe.model
        encoder = Encoder(dim=ear.dim, depth=ear.depth, heads=ear.heads, mlp_ratio=ear.hears)
        sizes: dict[str, Any] = {"seq_len": STEPS, "classes": 1, "channels": 1, "vocabulary": 0, "pairs": False}
        return build_sequence_classifier(encoder, recipe.attention, **sizes, mean=(0.0,), std=(1.0,))

    def objective(self, data: ToneData) -> ToneError:
        """See :class:`Task`."""
        return ToneError()

    def facts(self, source: ToneSet) -> None:
        """Return nothing."""

    def data_faults(self, section: ToneSection, source: ToneSet, facts: None) -> Iterator[Fault]:
        """See :class:`Task`."""
        if section.classes:
            yield Fault(("data", "classes"), "tones have none; leave this out")

    def evaluate(self, runs: Sequence[Run], asked: Asked) -> None:
        """Print the share explained of each run, and keep it in ``tones.csv``."""
        for run in runs:
            opened = asked.opener.open(run)
            split = opened.data.splits[asked.split].first(asked.limit)
            found = self.objective(opened.data).evaluate(opened.model, split)
            row = {"split": asked.split, "loss": found.loss, **found.measures}
            replace_rows(run.folder / "tones.csv", [row], measured=list(found.measures))
            value = self.measure.formatted(found.measures[self.measure.name])
            console.print(f"{run.folder}  {asked.split}  {value}", markup=False)
