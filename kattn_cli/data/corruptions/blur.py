"""Defocus, motion and zoom blur. Images ``(B, C, H, W)`` in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.data.corruptions.corruption import Corruption, rounded, uniform
from kattn_cli.data.corruptions.filters import correlate, disk, edge


class Disk(NamedTuple):
    """Defocus: a disk of ``radius`` pixels, its edge softened by a Gaussian of ``sigma`` pixels."""

    radius: float
    sigma: float


class Motion(NamedTuple):
    """One side of a Gaussian of ``sigma`` pixels, cut off after 2 · ``radius``."""

    radius: int
    sigma: float


def defocus_blur(images: Tensor, parameters: Disk, draws: None) -> Tensor:
    """Blur images so that each point becomes a disk."""
    return correlate(images, disk(*parameters))


def draw_angles(images: Tensor, parameters: Motion, generator: torch.Generator) -> Tensor:
    """Draw the directions of motion, ``(B,)`` degrees, U(−45, 45)."""
    return uniform((len(images),), -45, 45, generator)


def motion_blur(images: Tensor, parameters: Motion, draws: Tensor) -> Tensor:
    """Blur images along a direction, rounded to 8 bits as ImageMagick does, which the published program calls."""
    return rounded(moved(images, parameters, draws))


def moved(images: Tensor, motion: Motion, degrees: Tensor) -> Tensor:
    """Return ImageMagick's MotionBlurImage: shifts along ``degrees`` ``(B,)``, with half a Gaussian's weights.

    There are 2 · radius + 1 shifts, each by whole pixels; beyond the border the outermost pixels go on.
    """
    height, width = images.shape[-2:]
    step = torch.arange(2 * motion.radius + 1, dtype=torch.float64)
    weights = torch.exp(-0.5 * (step / motion.sigma) ** 2)
    angle = torch.deg2rad(degrees)[:, None]
    down, right = (torch.ceil(step * along - 0.5).long().to(images.device) for along in (angle.sin(), angle.cos()))
    rows, columns = (torch.arange(size, device=images.device) for size in (height, width))
    flat, blurred = images.flatten(2), torch.zeros_like(images)
    for weight, y, x in zip((weights / weights.sum()).tolist(), down.T, right.T, strict=True):
        row, column = edge(rows + y[:, None], height), edge(columns + x[:, None], width)
        index = (row[:, :, None] * width + column[:, None]).flatten(1)[:, None].expand_as(flat)
        blurred += weight * flat.gather(2, index).view_as(images)
    return blurred


def zoom_blur(images: Tensor, factors: Sequence[float], draws: None) -> Tensor:
    """Return the mean of the image and its zooms, the first of which is by 1, so that the image counts twice."""
    return (images + sum(zoomed(images, factor) for factor in factors)) / (len(factors) + 1)


def zoomed(images: Tensor, factor: float) -> Tensor:
    """Return the middle enlarged by about ``factor``, bilinear, to the images' shape; scipy's ``zoom``, ``order=1``.

    At a few sizes scipy's last row and column are 0 for rounding (36 pixels by 1.2, but never 32 or 224); ours are not.
    """
    height, width = images.shape[-2:]
    tall, wide = math.ceil(height / factor), math.ceil(width / factor)
    middle = _centre(images, tall, wide)
    size = (round(tall * factor), round(wide * factor))
    return _centre(F.interpolate(middle, size, mode="bilinear", align_corners=True), height, width)


def _centre(images: Tensor, height: int, width: int) -> Tensor:
    top, left = (images.shape[-2] - height) // 2, (images.shape[-1] - width) // 2
    return images[..., top : top + height, left : left + width]


def _steps(stop: float, step: float) -> tuple[float, ...]:
    """Return zoom factors as the programs count them; rounding lets the end of some ranges in."""
    return tuple(np.arange(1, stop, step).tolist())


DEFOCUS_BLUR = Corruption(
    description="out of focus: every point a disk",
    position=3,
    apply=defocus_blur,
    imagenet_c=(Disk(3, 0.1), Disk(4, 0.5), Disk(6, 0.5), Disk(8, 0.5), Disk(10, 0.5)),
    cifar_c=(Disk(0.3, 0.4), Disk(0.4, 0.5), Disk(0.5, 0.6), Disk(1, 0.2), Disk(1.5, 0.1)),
    alexnet_error=81.988,
)

MOTION_BLUR = Corruption(
    description="a camera that moves",
    position=5,
    apply=motion_blur,
    draw=draw_angles,
    imagenet_c=(Motion(10, 3), Motion(15, 5), Motion(15, 8), Motion(15, 12), Motion(20, 15)),
    cifar_c=(Motion(6, 1), Motion(6, 1.5), Motion(6, 2), Motion(8, 2), Motion(9, 2.5)),
    alexnet_error=78.5948,
)

ZOOM_BLUR = Corruption(
    description="a camera that nears its object",
    position=6,
    apply=zoom_blur,
    imagenet_c=(_steps(1.11, 0.01), _steps(1.16, 0.01), _steps(1.21, 0.02), _steps(1.26, 0.02), _steps(1.31, 0.03)),
    cifar_c=(_steps(1.06, 0.01), _steps(1.11, 0.01), _steps(1.16, 0.01), _steps(1.21, 0.01), _steps(1.26, 0.01)),
    alexnet_error=79.836,
)
