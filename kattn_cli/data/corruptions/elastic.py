"""Elastic transform: a random affine map, then small displacements. Images ``(B, C, H, W)`` in [0, 1].

Our deviations: the affine map is sampled where it says, as OpenCV 5 does it; OpenCV 4, of the published program's time,
does it at 32nds of a pixel, up to 3 levels away. The map's corners are (x, y), and lengths follow the shorter side,
which makes no difference for a square image.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kattn_cli.data.corruptions.corruption import Corruption, uniform
from kattn_cli.data.corruptions.filters import Border, mirror, reflect, smooth


class Elastic(NamedTuple):
    """Shares of the image's shorter side: displacement, its smoothness, shift of the affine map's corners."""

    strength: float
    sigma: float
    shift: float


_TRUNCATE = 3.0


class ElasticDraws(NamedTuple):
    """All of U(−1, 1): ``corners`` ``(B, 3, 2)`` of (x, y), ``field`` ``(B, 2, H, W)`` of x, then y."""

    corners: Tensor
    field: Tensor


def draw_elastic(images: Tensor, parameters: Elastic, generator: torch.Generator) -> ElasticDraws:
    """Draw one map and one field for each image."""
    batch, _, height, width = images.shape
    corners = uniform((batch, 3, 2), -1, 1, generator)
    return ElasticDraws(corners, uniform((batch, 2, height, width), -1, 1, generator))


def elastic_transform(images: Tensor, parameters: Elastic, draws: ElasticDraws) -> Tensor:
    """Warp images by an affine map, then by small displacements; bilinear both times, mirrored at the border."""
    height, width = images.shape[-2:]
    side = min(height, width)
    x, y = affine_positions(parameters.shift * side * draws.corners, height, width)
    warped = sampled(images, x.to(images), y.to(images), mirror)
    field = smooth(draws.field, parameters.sigma * side, _TRUNCATE, reflect) * (parameters.strength * side)
    right, down = field.to(images).unbind(1)
    rows, columns = (torch.arange(size, device=images.device) for size in (height, width))
    return sampled(warped, columns + right, rows[:, None] + down, reflect)


def affine_positions(shifts: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return where (x, then y, ``(B, H, W)``) pixels come from when three corners of a square move by ``shifts``.

    The square has a third of the image's shorter side around its middle to each side; ``shifts``: ``(B, 3, 2)`` pixels.
    """
    square = min(height, width) // 3
    middle = torch.tensor([width // 2, height // 2], dtype=shifts.dtype)
    old = middle + square * shifts.new_tensor([[1, 1], [1, -1], [-1, -1]])
    new = torch.cat([old + shifts, torch.ones_like(shifts[..., :1])], -1)
    # Solved for the map from new to old corners: each output pixel asks where it comes from.
    back = torch.linalg.solve(new, old.expand_as(shifts))
    y, x = torch.meshgrid(*(torch.arange(size, dtype=shifts.dtype) for size in (height, width)), indexing="ij")
    position = torch.stack([x, y, torch.ones_like(x)], -1) @ back[:, None]
    return position[..., 0], position[..., 1]


def sampled(images: Tensor, x: Tensor, y: Tensor, border: Border) -> Tensor:
    """Sample images at positions ``(B, H, W)``, bilinearly."""
    left, top = x.floor(), y.floor()
    beside, below = (x - left)[:, None], (y - top)[:, None]
    columns, rows = left.long(), top.long()
    upper = (1 - beside) * _at(images, rows, columns, border) + beside * _at(images, rows, columns + 1, border)
    lower = (1 - beside) * _at(images, rows + 1, columns, border) + beside * _at(images, rows + 1, columns + 1, border)
    return (1 - below) * upper + below * lower


def _at(images: Tensor, rows: Tensor, columns: Tensor, border: Border) -> Tensor:
    height, width = images.shape[-2:]
    index = (border(rows, height) * width + border(columns, width)).flatten(1)[:, None]
    flat = images.flatten(2)
    return flat.gather(2, index.expand_as(flat)).view_as(images)


_SLIP = 244 / 224
"""ImageNet-C's lengths are multiples of 244 instead of 224, a slip that its authors kept, and so do we."""


ELASTIC_TRANSFORM = Corruption(
    description="small regions stretched and shifted",
    position=12,
    apply=elastic_transform,
    draw=draw_elastic,
    imagenet_c=(
        Elastic(2 * _SLIP, 0.7 * _SLIP, 0.1 * _SLIP),
        Elastic(2 * _SLIP, 0.08 * _SLIP, 0.2 * _SLIP),
        Elastic(0.05 * _SLIP, 0.01 * _SLIP, 0.02 * _SLIP),
        Elastic(0.07 * _SLIP, 0.01 * _SLIP, 0.02 * _SLIP),
        Elastic(0.12 * _SLIP, 0.01 * _SLIP, 0.02 * _SLIP),
    ),
    cifar_c=(
        Elastic(0, 0, 0.08),
        Elastic(0.05, 0.2, 0.07),
        Elastic(0.08, 0.06, 0.06),
        Elastic(0.1, 0.04, 0.05),
        Elastic(0.1, 0.03, 0.03),
    ),
    alexnet_error=64.6056,
)
