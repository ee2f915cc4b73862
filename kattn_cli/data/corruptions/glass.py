"""Glass blur: pixels trade places with near ones, between two slight blurs. Images ``(B, C, H, W)`` in [0, 1].

The published program means to swap two pixels, but numpy's rows of a pixel are views, and the second half of its swap
writes back what the first has just written. So each pixel in turn, from the bottom right, is overwritten by one near
it, and some pixels are lost. That is what the published images hold, and what is done here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kattn_cli.data.corruptions.corruption import Corruption, truncated
from kattn_cli.data.corruptions.filters import edge, smooth


class Glass(NamedTuple):
    """Blur of ``sigma`` pixels, before and after ``rounds`` of moving pixels by up to ``reach``."""

    sigma: float
    reach: int
    rounds: int


_TRUNCATE = 4.0


def draw_neighbours(images: Tensor, parameters: Glass, generator: torch.Generator) -> Tensor:
    """Draw steps right and down, each from −reach to reach − 1: ``(rounds, rows, columns, 2, B)``, in order of use.

    The ``H − 2 · reach`` rows and ``W − 2 · reach`` columns that are visited: from H − reach and W − reach down to
    reach + 1.
    """
    reach = parameters.reach
    rows, columns = (max(size - 2 * reach, 0) for size in images.shape[-2:])
    shape = (parameters.rounds, rows, columns, 2, len(images))
    return torch.randint(-reach, reach, shape, generator=generator, dtype=torch.int16)


def glass_blur(images: Tensor, parameters: Glass, draws: Tensor) -> Tensor:
    """Blur images, cut them to 8 bits, shuffle their pixels, and blur again."""
    blurred = truncated(smooth(images, parameters.sigma, _TRUNCATE, edge)).flatten(2)
    source = sources(draws, *images.shape[-2:]).to(images.device)
    shuffled = blurred.gather(2, source[:, None].expand_as(blurred)).view_as(images)
    return smooth(shuffled, parameters.sigma, _TRUNCATE, edge)


def sources(draws: Tensor, height: int, width: int) -> Tensor:
    """Return which pixel each pixel shows in the end, as indices ``(B, H · W)``."""
    rows, columns, _, batch = draws.shape[1:]
    row = height - (height - rows) // 2 - np.arange(rows)
    column = width - (width - columns) // 2 - np.arange(columns)
    visited = (row[:, None] * width + column).ravel()
    image = np.arange(batch)
    source = np.repeat(np.arange(height * width), batch)
    steps = draws.numpy().astype(np.int64)
    for right, down in zip(steps[..., 0, :], steps[..., 1, :], strict=True):
        near = (visited[:, None] + (down * width + right).reshape(-1, batch)) * batch + image
        # One position after the other: a later one may take what an earlier one has overwritten.
        for start, taken in zip((visited * batch).tolist(), near, strict=True):
            source[start : start + batch] = source[taken]
    return torch.from_numpy(source.reshape(-1, batch).T.copy())


GLASS_BLUR = Corruption(
    description="through frosted glass: near pixels change places",
    position=4,
    apply=glass_blur,
    draw=draw_neighbours,
    imagenet_c=(Glass(0.7, 1, 2), Glass(0.9, 2, 1), Glass(1, 2, 3), Glass(1.1, 3, 2), Glass(1.5, 4, 2)),
    cifar_c=(Glass(0.05, 1, 1), Glass(0.25, 1, 1), Glass(0.4, 1, 1), Glass(0.25, 1, 2), Glass(0.4, 1, 2)),
    alexnet_error=82.6268,
)
