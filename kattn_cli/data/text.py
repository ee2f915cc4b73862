"""Running text as tokens on disk, read in windows, so that a corpus may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from kattn_cli.data.images import SplitName
from kattn_cli.data.vocabulary import Vocabulary

CPU = torch.device("cpu")


@dataclass(frozen=True)
class TokenSplit:
    """``tokens`` ``(T,)``, usually mapped from a file, cut into windows of ``context`` tokens that do not overlap.

    Window ``i`` is ``tokens[i·context : (i+1)·context]``, its targets the same one further; a rest shorter than a
    window is seen only where windows begin elsewhere (:meth:`take`'s ``shift``). ``windows``: those of this split.
    ``bytes_``: of the text that the tokens stand for, in UTF-8.
    """

    tokens: np.ndarray
    context: int
    bytes_: int
    windows: Tensor
    device: torch.device = CPU

    def __len__(self) -> int:
        return len(self.windows)

    def take(self, indices: Tensor | slice, shift: int = 0) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of the windows at ``indices``, int64 ``(B, context)`` each.

        ``shift`` moves every window by so many tokens; those that would pass the end begin at their place without it.
        """
        starts = self.windows[indices] * self.context
        starts = torch.where(starts + shift + self.context < len(self.tokens), starts + shift, starts)
        rows = np.stack([self.tokens[start : start + self.context + 1] for start in starts.tolist()])
        windows = torch.from_numpy(rows.astype(np.int64))
        if self.device.type == "cuda":
            # From pinned memory the copy runs while the GPU works.
            windows = windows.pin_memory().to(self.device, non_blocking=True)
        return windows[:, :-1], windows[:, 1:]

    def subset(self, indices: Tensor) -> TokenSplit:
        """Return the windows at ``indices`` ``(m,)``, in that order."""
        return replace(self, windows=self.windows[indices.cpu()])

    def first(self, count: int | None) -> TokenSplit:
        """Return the first ``count`` windows, or all."""
        return replace(self, windows=self.windows[:count])

    def to(self, device: torch.device) -> TokenSplit:
        """Return the same split, giving its windows on another device."""
        return replace(self, device=torch.device(device))

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield batches in order, ``size`` windows at a time."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))


def windows_of(tokens: np.ndarray, context: int, bytes_: int) -> TokenSplit:
    """Return all windows of ``tokens``."""
    return TokenSplit(tokens, context, bytes_, torch.arange(max(len(tokens) - 1, 0) // context))


TextSplits = tuple[Vocabulary, dict[SplitName, TokenSplit]]


@dataclass(frozen=True)
class TextData:
    """A loaded corpus. ``chosen_on``: the split that the best epoch is chosen by, which is by its loss."""

    unit: ClassVar[str] = "sequences"
    reads: ClassVar[str] = "text"
    name: str
    vocabulary: Vocabulary
    context: int
    splits: dict[SplitName, TokenSplit]
    chosen_on: SplitName = "validation"
    unreadable: Callable[[], list[str]] = list

    @property
    def classes(self) -> int:
        """How many tokens there are to choose the next one from."""
        return self.vocabulary.size

    def sample(self, count: int, device: torch.device | str) -> Tensor:
        """Return ``count`` windows of random tokens."""
        return torch.randint(self.classes, (count, self.context), device=device)

    def targets(self, count: int, device: torch.device | str) -> Tensor:
        """Return as many windows of random targets, of the form of :meth:`sample`."""
        return self.sample(count, device)
