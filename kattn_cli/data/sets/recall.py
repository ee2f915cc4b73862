"""Multi-query associative recall (Arora et al. 2023, "Zoology", §3): pairs of key and value, then keys to be answered.

Generated, in milliseconds, whenever it is loaded. A sequence is ``k₁ v₁ k₂ v₂ … kₚ vₚ`` in random order and then some
of its keys, as queries, each of which has a class: its value. Of the vocabulary the first half are keys, the second
half values; within a sequence no key and no value comes twice. So a model that has seen nothing is right in one of
``vocabulary / 2``, and one that knows which values came, but not with which key, in one of ``pairs``.

Our deviation: queries follow the pairs at once, in random order, where Zoology spreads them over noise by a power law.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from kattn_cli.data.dataset import FileCheck, SequenceDataSet, SequenceFacts
from kattn_cli.data.images import SplitName
from kattn_cli.data.sequences import SequenceSplit

Count = Annotated[int, Field(ge=1)]
_SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


class Recall(SequenceDataSet):
    """See above. Each split is drawn from a stream of its own, so that its size changes no other's sequences.

    Args:
        vocabulary: how many tokens, half of them keys, half values.
        pairs: how many pairs a sequence has.
        queries: how many of its keys are asked for, by default all.
        train: how many sequences to train on.
        choose_by: how many to choose the best epoch by.
        test: how many to report on.
        seed: another one, other sequences.

    Raises:
        ValueError: if there are more pairs than keys, more queries than pairs, or the vocabulary has no halves.
    """

    name = "recall"
    description = "multi-query associative recall, of Zoology: pairs of key and value, then keys, generated"
    how_to_get = "it is generated"
    path_options = ()

    def __init__(
        self,
        *,
        vocabulary: Annotated[int, Field(ge=4, le=65_536)] = 64,
        pairs: Count = 8,
        queries: Count | None = None,
        train: Count = 8_000,
        choose_by: Count = 500,
        test: Count = 1_000,
        seed: Annotated[int, Field(ge=0)] = 0,
    ) -> None:
        if vocabulary % 2:
            raise ValueError(f"data.vocabulary: half of it are keys, half values, and {vocabulary:,} is odd")
        if pairs > vocabulary // 2:
            raise ValueError(f"data.pairs: {pairs:,} of {vocabulary // 2:,} keys; give data.vocabulary more tokens")
        if queries and queries > pairs:
            raise ValueError(f"data.queries: {queries:,} of {pairs:,} pairs; each key is asked for once at most")
        self.size, self.pairs, self.queries, self.seed = vocabulary, pairs, queries or pairs, seed
        self.counts = (train, choose_by, test)

    def facts(self) -> SequenceFacts:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`."""
        length = 2 * self.pairs + self.queries
        return SequenceFacts(
            self.size // 2, seq_len=length, vocabulary=self.size, own_validation=True, queries=self.queries
        )

    def missing(self) -> str:
        """Return an empty string: nothing ever is."""
        return ""

    def load(self) -> dict[SplitName, SequenceSplit]:
        """Generate the three splits."""
        return {split: self._drawn(place, self.counts[place]) for place, split in enumerate(_SPLITS)}

    def files(self) -> list[FileCheck]:
        """Return an empty list: there are none."""
        return []

    def fetch(self) -> None:
        """Do nothing: it is generated when it is loaded."""

    def _drawn(self, stream: int, count: int) -> SequenceSplit:
        draw = np.random.default_rng([self.seed, stream])
        keys, values = (_choices(draw, count, self.size // 2, self.pairs) for _ in range(2))
        asked = _choices(draw, count, self.pairs, self.queries)
        pairs = np.stack((keys, self.size // 2 + values), -1).reshape(count, -1)
        tokens = np.concatenate((pairs, np.take_along_axis(keys, asked, 1)), 1)
        lengths = torch.full((count,), tokens.shape[1], dtype=torch.int64)
        labels = np.take_along_axis(values, asked, 1)
        return SequenceSplit(torch.from_numpy(tokens.astype(np.int32)), lengths, torch.from_numpy(labels))


def _choices(draw: np.random.Generator, count: int, among: int, wanted: int) -> NDArray[np.int64]:
    """Return ``(count, wanted)`` different numbers below ``among`` in random order, row by row."""
    return draw.random((count, among)).argsort(1, kind="stable")[:, :wanted]
