"""Sequences to classify: padded to a common length, with the padding marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from kattn_cli.data.images import SplitName
from kattn_cli.data.vocabulary import Vocabulary


class Padded(NamedTuple):
    """Sequences in one tensor: ``values`` ``(B, N)`` int64 tokens or ``(B, N, channels)`` float32.

    ``mask``: ``(B, N)``, True where there is something, or None where there is no padding. Of pairs, ``(B, 2, N, …)``
    and ``(B, 2, N)``.
    """

    values: Tensor
    mask: Tensor | None = None


@dataclass(frozen=True)
class SequenceSplit:
    """``n`` sequences, padded with zeros at the end.

    ``values``: ``(n, N)`` tokens of any integer type, or ``(n, N, channels)`` float32; ``lengths`` and ``labels``:
    ``(n,)`` int64. Of pairs, ``(n, 2, N)`` and lengths ``(n, 2)``; where queries are asked, labels ``(n, queries)``.
    """

    values: Tensor
    lengths: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Tensor | slice) -> tuple[Padded, Tensor]:
        """Return the sequences at ``indices``, cut to the longest of them, and their labels."""
        lengths = self.lengths[indices]
        longest = int(lengths.max()) if lengths.numel() else 0
        axis = lengths.ndim
        values = self.values[indices].narrow(axis, 0, longest)
        if not values.is_floating_point():
            values = values.long()
        mask = torch.arange(longest, device=lengths.device) < lengths[..., None]
        # No mask where nothing is padded, which spares the mechanisms their masked path.
        return Padded(values, None if bool(mask.all()) else mask), self.labels[indices]

    def subset(self, indices: Tensor) -> SequenceSplit:
        """Return the sequences at ``indices`` ``(m,)``, in that order."""
        return SequenceSplit(self.values[indices], self.lengths[indices], self.labels[indices])

    def first(self, count: int | None) -> SequenceSplit:
        """Return the first ``count`` sequences, or all."""
        return SequenceSplit(self.values[:count], self.lengths[:count], self.labels[:count])

    def to(self, device: torch.device) -> SequenceSplit:
        """Return the same split on another device."""
        return SequenceSplit(self.values.to(device), self.lengths.to(device), self.labels.to(device))

    def batches(self, size: int) -> Iterator[tuple[Padded, Tensor]]:
        """Yield batches in order, ``size`` sequences at a time."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))


@dataclass(frozen=True)
class SequenceData:
    """A loaded data set of sequences; ``mean`` and ``std`` of each channel are those of the training series.

    ``vocabulary_size`` is 0 for series, whose ``channels`` are not; ``vocabulary`` is that of a text. ``queries``: how
    many tokens at the end have a class each; 0 where the sequence has one.
    ``chosen_on``: the split that the best epoch is chosen by.
    """

    unit: ClassVar[str] = "sequences"
    reads: ClassVar[str] = "sequences"
    name: str
    classes: int
    seq_len: int
    channels: int
    vocabulary_size: int
    pairs: bool
    mean: tuple[float, ...]
    std: tuple[float, ...]
    splits: dict[SplitName, SequenceSplit]
    chosen_on: SplitName = "validation"
    vocabulary: Vocabulary | None = None
    unreadable: Callable[[], list[str]] = list
    queries: int = 0

    def sample(self, count: int, device: torch.device | str) -> Padded:
        """Return ``count`` random inputs of the greatest length."""
        shape = (count, *((2,) if self.pairs else ()), self.seq_len)
        if self.channels:
            return Padded(torch.randn(*shape, self.channels, device=device))
        return Padded(torch.randint(self.vocabulary_size, shape, device=device))

    def targets(self, count: int, device: torch.device | str) -> Tensor:
        """Return ``count`` random classes, or ``(count, queries)`` of them."""
        return torch.randint(self.classes, (count, *((self.queries,) if self.queries else ())), device=device)


def channel_moments(split: SequenceSplit) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each channel over all steps of all series; of constants 1."""
    mask = torch.arange(split.values.shape[1]) < split.lengths[:, None]
    steps = split.values[mask].double()
    # Constant channels are divided by 1, not by 0.
    std = steps.std(0) if len(steps) > 1 else torch.ones(steps.shape[1:])
    return tuple(steps.mean(0).tolist()), tuple(torch.where(std > 0, std, 1.0).tolist())


def padded(sequences: list[Tensor], labels: Tensor) -> SequenceSplit:
    """Return a split of ``sequences``, ``(Nᵢ,)`` or ``(Nᵢ, channels)`` each."""
    lengths = torch.tensor([len(one) for one in sequences], dtype=torch.int64)
    return SequenceSplit(torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True), lengths, labels)
