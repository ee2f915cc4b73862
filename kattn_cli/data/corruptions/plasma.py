"""Plasma by the diamond-square algorithm on a torus: what fog is made of."""

from __future__ import annotations

import torch
from torch import Tensor


def plasma(draws: Tensor, decay: float) -> Tensor:
    """Return clouds ``(B, M, M)`` in [0, 1], each reaching both; M is a power of two, 2 at least.

    From one corner of height 0 on, the grid is halved again and again: the middle of each square, then the middles of
    its sides, get the mean of the four nearest and a random part, whose size is divided by ``decay`` squared from one
    halving to the next.

    Args:
        draws: ``(B, M² − 1)`` in [−1, 1), in the order of use: of each halving, squares, then sides from left to right,
            then from top to bottom.
        decay: above 1.
    """
    size = round((draws.shape[1] + 1) ** 0.5)
    height = draws.new_zeros(len(draws), size, size)
    step, rough, used = size, 100.0, 0
    while step >= 2:
        half, count = step // 2, (size // step) ** 2
        random = (rough**2 * draws[:, used : used + 3 * count]).view(-1, 3, size // step, size // step)
        corners = height[:, ::step, ::step]
        across = corners + corners.roll(-1, 2)
        middles = (across + across.roll(-1, 1)) / 4 + random[:, 0]
        height[:, half::step, half::step] = middles
        height[:, ::step, half::step] = (middles + middles.roll(1, 1) + across) / 4 + random[:, 1]
        below = corners + corners.roll(-1, 1)
        height[:, half::step, ::step] = (middles + middles.roll(1, 2) + below) / 4 + random[:, 2]
        step, rough, used = half, rough / decay, used + 3 * count
    height = height - height.amin((1, 2), keepdim=True)
    return height / height.amax((1, 2), keepdim=True)


def plasma_draws(batch: int, side: int, generator: torch.Generator) -> Tensor:
    """Draw what :func:`plasma` needs for clouds that cover ``side`` pixels."""
    size = 1 << max(side - 1, 1).bit_length()
    return torch.empty(batch, size**2 - 1, dtype=torch.float64).uniform_(-1, 1, generator=generator)
