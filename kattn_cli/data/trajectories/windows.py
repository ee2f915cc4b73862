"""Windows of episodes, of some steps each, which a model sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from kattn_cli.data.images import SplitName
from kattn_cli.data.sequences import Padded


class Windows(NamedTuple):
    """``K`` steps each; padding, which is zero, stands at the end.

    ``returns``: ``(B, K, 1)`` float32, what was still to be got from each step on, neither discounted nor scaled.
    ``states``: ``(B, K, S)``. ``actions``: ``(B, K, A)``. ``timesteps``: ``(B, K)`` int64, the step of the episode.
    ``mask``: ``(B, K)`` bool, True where there is a step.
    """

    returns: Tensor
    states: Tensor
    actions: Tensor
    timesteps: Tensor
    mask: Tensor


@dataclass(frozen=True)
class TrajectorySplit:
    """Episodes one after the other: ``T`` steps in all, of ``E`` episodes.

    A sample is a step, and the window of up to ``context`` steps of its episode that begins there. So an epoch begins
    once at every step: the sampling of Decision Transformer, episodes in proportion to their length, without
    replacement.

    ``returns``: ``(T,)``, to go. ``states``: ``(T, S)``. ``actions``: ``(T, A)``. ``timesteps``: ``(T,)``. ``ends``:
    ``(T,)``, where each step's episode ends (exclusive). ``starts``: ``(n,)``, the steps that windows begin at.
    """

    returns: Tensor
    states: Tensor
    actions: Tensor
    timesteps: Tensor
    ends: Tensor
    starts: Tensor
    context: int

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, indices: Tensor | slice) -> tuple[Windows, Padded]:
        """Return the windows at ``indices``, and the actions in them."""
        starts = self.starts[indices.to(self.starts.device) if isinstance(indices, Tensor) else indices]
        steps = starts[:, None] + torch.arange(self.context, device=starts.device)
        mask = steps < self.ends[starts][:, None]
        # Padding reads the window's first step, which exists, and is set to 0 below.
        steps = torch.where(mask, steps, starts[:, None])
        keep = mask[..., None]
        actions = self.actions[steps] * keep
        windows = Windows(
            self.returns[steps][..., None] * keep,
            self.states[steps] * keep,
            actions,
            self.timesteps[steps] * mask,
            mask,
        )
        return windows, Padded(actions, mask)

    def subset(self, indices: Tensor) -> TrajectorySplit:
        """Return the windows at ``indices`` ``(m,)``, in that order."""
        return replace(self, starts=self.starts[indices.to(self.starts.device)])

    def first(self, count: int | None) -> TrajectorySplit:
        """Return the first ``count`` windows, or all."""
        return replace(self, starts=self.starts[:count])

    def to(self, device: torch.device) -> TrajectorySplit:
        """Return the same split on another device."""
        names = ("returns", "states", "actions", "timesteps", "ends", "starts")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})

    def batches(self, size: int) -> Iterator[tuple[Windows, Padded]]:
        """Yield batches in order, ``size`` windows at a time."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))


@dataclass(frozen=True)
class TrajectoryData:
    """Loaded episodes of ``environment``, an id of gymnasium's or a short name.

    ``states``, ``actions``: widths. ``context``: steps of a window; ``longest``: of the longest episode. ``mean``,
    ``std``: of each entry of the states to train on. ``best_return``, ``worst_return``: of the episodes to train on.
    ``chosen_on``: the split that the best epoch is chosen by.
    """

    unit: ClassVar[str] = "windows"
    reads: ClassVar[str] = "trajectories"
    name: str
    environment: str
    states: int
    actions: int
    context: int
    longest: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    return_scale: float
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    best_return: float
    worst_return: float
    splits: dict[SplitName, TrajectorySplit]
    chosen_on: SplitName = "validation"
    unreadable: Callable[[], list[str]] = list

    def sample(self, count: int, device: torch.device | str) -> Windows:
        """Return ``count`` windows of noise, without padding."""
        shape = (count, self.context)
        return Windows(
            self.return_scale * torch.rand(*shape, 1, device=device),
            torch.randn(*shape, self.states, device=device),
            2 * torch.rand(*shape, self.actions, device=device) - 1,
            torch.arange(self.context, device=device).expand(shape) % self.longest,
            torch.ones(shape, dtype=torch.bool, device=device),
        )

    def targets(self, count: int, device: torch.device | str) -> Padded:
        """Return the actions of as many windows."""
        windows = self.sample(count, device)
        return Padded(windows.actions, windows.mask)
