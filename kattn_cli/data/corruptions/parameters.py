"""The published parameters of the 15 types at severities 1 … 5.

``IMAGENET_C`` is ImageNet-C's, for 224 × 224 (``make_imagenet_c.py`` at github.com/hendrycks/robustness), ``CIFAR_C``
CIFAR-10-C's by the same authors, for 32 × 32 (``make_cifar_c.py``); both of Hendrycks and Dietterich, ICLR 2019,
arXiv:1903.12261.

Which lengths follow the size of the image is as the programs have it: those of the elastic transform are written there
as multiples of it (for ImageNet-C of 244 instead of 224, a slip its authors kept, and so do we), pixelate's factor and
zoom blur's are ratios; all others are pixels, at any size.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

ParameterSet = Literal["imagenet-c", "cifar-c"]


class Disk(NamedTuple):
    """Defocus: a disk of ``radius`` pixels, its edge softened by a Gaussian of ``sigma`` pixels."""

    radius: float
    sigma: float


class Glass(NamedTuple):
    """Blur of ``sigma`` pixels, before and after ``rounds`` of moving pixels by up to ``reach``."""

    sigma: float
    reach: int
    rounds: int


class Motion(NamedTuple):
    """One side of a Gaussian of ``sigma`` pixels, cut off after 2 · ``radius``."""

    radius: int
    sigma: float


class Snow(NamedTuple):
    """Flakes: noise N(``mean``, ``std``²), zoomed, what is below ``threshold`` removed, then in ``motion``.

    ``keep``: the image's share; the rest is the image whitened.
    """

    mean: float
    std: float
    zoom: float
    threshold: float
    motion: Motion
    keep: float


class Frost(NamedTuple):
    """Shares of the image and of the frost that is added, and what the frost's sides are scaled by first."""

    image: float
    frost: float
    scale: float


class Fog(NamedTuple):
    """What of the plasma is added, and what its roughness is divided by from one scale to the next."""

    strength: float
    decay: float


class Elastic(NamedTuple):
    """All as shares of the image's shorter side: displacement, its smoothness, shift of the affine map's corners."""

    strength: float
    sigma: float
    shift: float


def _steps(stop: float, step: float) -> tuple[float, ...]:
    """Zoom factors as the programs count them; rounding lets the end of some ranges in."""
    return tuple(np.arange(1, stop, step).tolist())


_SLIP = 244 / 224

IMAGENET_C: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.08, 0.12, 0.18, 0.26, 0.38),
    "shot_noise": (60, 25, 12, 5, 3),
    "impulse_noise": (0.03, 0.06, 0.09, 0.17, 0.27),
    "defocus_blur": (Disk(3, 0.1), Disk(4, 0.5), Disk(6, 0.5), Disk(8, 0.5), Disk(10, 0.5)),
    "glass_blur": (Glass(0.7, 1, 2), Glass(0.9, 2, 1), Glass(1, 2, 3), Glass(1.1, 3, 2), Glass(1.5, 4, 2)),
    "motion_blur": (Motion(10, 3), Motion(15, 5), Motion(15, 8), Motion(15, 12), Motion(20, 15)),
    "zoom_blur": (_steps(1.11, 0.01), _steps(1.16, 0.01), _steps(1.21, 0.02), _steps(1.26, 0.02), _steps(1.31, 0.03)),
    "snow": (
        Snow(0.1, 0.3, 3, 0.5, Motion(10, 4), 0.8),
        Snow(0.2, 0.3, 2, 0.5, Motion(12, 4), 0.7),
        Snow(0.55, 0.3, 4, 0.9, Motion(12, 8), 0.7),
        Snow(0.55, 0.3, 4.5, 0.85, Motion(12, 8), 0.65),
        Snow(0.55, 0.3, 2.5, 0.85, Motion(12, 12), 0.55),
    ),
    "frost": (Frost(1, 0.4, 1), Frost(0.8, 0.6, 1), Frost(0.7, 0.7, 1), Frost(0.65, 0.7, 1), Frost(0.6, 0.75, 1)),
    "fog": (Fog(1.5, 2), Fog(2, 2), Fog(2.5, 1.7), Fog(2.5, 1.5), Fog(3, 1.4)),
    "brightness": (0.1, 0.2, 0.3, 0.4, 0.5),
    "contrast": (0.4, 0.3, 0.2, 0.1, 0.05),
    "elastic_transform": (
        Elastic(2 * _SLIP, 0.7 * _SLIP, 0.1 * _SLIP),
        Elastic(2 * _SLIP, 0.08 * _SLIP, 0.2 * _SLIP),
        Elastic(0.05 * _SLIP, 0.01 * _SLIP, 0.02 * _SLIP),
        Elastic(0.07 * _SLIP, 0.01 * _SLIP, 0.02 * _SLIP),
        Elastic(0.12 * _SLIP, 0.01 * _SLIP, 0.02 * _SLIP),
    ),
    "pixelate": (0.6, 0.5, 0.4, 0.3, 0.25),
    "jpeg_compression": (25, 18, 15, 10, 7),
}

CIFAR_C: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),
    "shot_noise": (500, 250, 100, 75, 50),
    "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),
    "defocus_blur": (Disk(0.3, 0.4), Disk(0.4, 0.5), Disk(0.5, 0.6), Disk(1, 0.2), Disk(1.5, 0.1)),
    "glass_blur": (Glass(0.05, 1, 1), Glass(0.25, 1, 1), Glass(0.4, 1, 1), Glass(0.25, 1, 2), Glass(0.4, 1, 2)),
    "motion_blur": (Motion(6, 1), Motion(6, 1.5), Motion(6, 2), Motion(8, 2), Motion(9, 2.5)),
    "zoom_blur": (_steps(1.06, 0.01), _steps(1.11, 0.01), _steps(1.16, 0.01), _steps(1.21, 0.01), _steps(1.26, 0.01)),
    "snow": (
        Snow(0.1, 0.2, 1, 0.6, Motion(8, 3), 0.95),
        Snow(0.1, 0.2, 1, 0.5, Motion(10, 4), 0.9),
        Snow(0.15, 0.3, 1.75, 0.55, Motion(10, 4), 0.9),
        Snow(0.25, 0.3, 2.25, 0.6, Motion(12, 6), 0.85),
        Snow(0.3, 0.3, 1.25, 0.65, Motion(14, 12), 0.8),
    ),
    "frost": (
        Frost(1, 0.2, 0.2),
        Frost(1, 0.3, 0.2),
        Frost(0.9, 0.4, 0.2),
        Frost(0.85, 0.4, 0.2),
        Frost(0.75, 0.45, 0.2),
    ),
    "fog": (Fog(0.2, 3), Fog(0.5, 3), Fog(0.75, 2.5), Fog(1, 2), Fog(1.5, 1.75)),
    "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),
    "elastic_transform": (
        Elastic(0, 0, 0.08),
        Elastic(0.05, 0.2, 0.07),
        Elastic(0.08, 0.06, 0.06),
        Elastic(0.1, 0.04, 0.05),
        Elastic(0.1, 0.03, 0.03),
    ),
    "pixelate": (0.95, 0.9, 0.85, 0.75, 0.65),
    "jpeg_compression": (80, 65, 58, 50, 40),
}

PARAMETERS: dict[ParameterSet, dict[str, tuple[Any, ...]]] = {"imagenet-c": IMAGENET_C, "cifar-c": CIFAR_C}
"""By set and type, those of severities 1 … 5."""


def parameters_for(size: int) -> ParameterSet:
    """``"cifar-c"`` for images of fewer than 64 pixels a side, ``"imagenet-c"`` for others.

    ImageNet-C's blurs and shuffles reach so many pixels that at 32 × 32 little is left of an image (a disk of 21 × 21,
    motion over 41), which is why its authors chose other numbers for CIFAR-10-C. The change is at 64, between the two,
    nearer to 32 in ratio than to 224; the authors' third set, of Tiny-ImageNet-C at 64 × 64, is not here.
    """
    return "cifar-c" if size < 64 else "imagenet-c"
