"""The 15 corruptions of ImageNet-C at 5 severities, on whole batches of any size and number of channels.

Source: Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations", ICLR
2019, arXiv:1903.12261, and its programs at github.com/hendrycks/robustness, whose results these are for equal random
numbers, but for frost (see :mod:`~kattn_cli.data.corruptions.frost`). ImageNet-C's published files went through a JPEG
of quality 85 besides; CIFAR-10-C's did not, and nothing here does.

Which lengths follow the size of the image is as the programs have it: those of the elastic transform are written there
as multiples of it, pixelate's factor and zoom blur's are ratios; all others are pixels, at any size.

A new corruption is one file with a :class:`~kattn_cli.data.corruptions.corruption.Corruption`, and a line below.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from kattn_cli.data.corruptions.blur import DEFOCUS_BLUR, MOTION_BLUR, ZOOM_BLUR
from kattn_cli.data.corruptions.corruption import (
    PARAMETER_SETS,
    SEVERITIES,
    Corruption,
    ParameterSet,
    parameters_for,
    precise,
    rounded,
    truncated,
)
from kattn_cli.data.corruptions.digital import BRIGHTNESS, CONTRAST, JPEG_COMPRESSION, PIXELATE
from kattn_cli.data.corruptions.elastic import ELASTIC_TRANSFORM
from kattn_cli.data.corruptions.frost import FROST, read_textures
from kattn_cli.data.corruptions.glass import GLASS_BLUR
from kattn_cli.data.corruptions.noise import GAUSSIAN_NOISE, IMPULSE_NOISE, SHOT_NOISE
from kattn_cli.data.corruptions.weather import FOG, SNOW
from kattn_cli.errors import DataError, did_you_mean

__all__ = [
    "CORRUPTIONS",
    "PARAMETER_SETS",
    "SEVERITIES",
    "Corruption",
    "ParameterSet",
    "alexnet_errors",
    "corrupt",
    "parameters_for",
    "read_textures",
]

CORRUPTIONS: dict[str, Corruption] = {
    "gaussian_noise": GAUSSIAN_NOISE,
    "shot_noise": SHOT_NOISE,
    "impulse_noise": IMPULSE_NOISE,
    "defocus_blur": DEFOCUS_BLUR,
    "glass_blur": GLASS_BLUR,
    "motion_blur": MOTION_BLUR,
    "zoom_blur": ZOOM_BLUR,
    "snow": SNOW,
    "frost": FROST,
    "fog": FOG,
    "brightness": BRIGHTNESS,
    "contrast": CONTRAST,
    "elastic_transform": ELASTIC_TRANSFORM,
    "pixelate": PIXELATE,
    "jpeg_compression": JPEG_COMPRESSION,
}
"""By name, in ImageNet-C's order."""


def alexnet_errors() -> dict[str, float]:
    """Return AlexNet's top-1 error in % of each type for which one is published."""
    return {name: one.alexnet_error for name, one in CORRUPTIONS.items() if one.alexnet_error is not None}


def corrupt(
    images: Tensor,
    name: str,
    severity: int,
    generator: torch.Generator,
    parameters: ParameterSet | None = None,
    textures: Iterable[Tensor] | None = None,
) -> Tensor:
    """Return images ``(B, C, H, W)`` float32 in [0, 1], of 8 × 8 or more, corrupted; same shape, device and dtype.

    They are first rounded to 8 bits, and so is the result, downwards, as the published program casts it to ``uint8``:
    every value is k/255.

    Args:
        name: one of :data:`CORRUPTIONS`.
        severity: 1 … 5.
        generator: on the CPU. The same state gives the same result for the same batch, on every device up to rounding.
        parameters: by default :func:`parameters_for` the images' shorter side.
        textures: photographs for frost, see :func:`read_textures`; by default textures drawn by rule.

    Raises:
        DataError: if there is no such corruption, severity or set of parameters.
    """
    chosen = parameters or parameters_for(min(images.shape[-2:]))
    _check(name, severity, chosen)
    corruption = CORRUPTIONS[name]
    numbers = corruption.parameters(chosen)[severity - 1]
    clean = rounded(precise(images))
    draws = corruption.draw(clean, numbers, generator)
    extra = {"textures": textures} if corruption.takes_textures else {}
    # Whole levels are divided in the images' own type, so that values equal those of images read from a file.
    levels = truncated(corruption.apply(clean, numbers, draws, **extra)) * 255
    return levels.round().to(images.dtype) / 255


def _check(name: str, severity: int, parameters: str) -> None:
    if name not in CORRUPTIONS:
        near = did_you_mean(name, CORRUPTIONS) or f"; there are {', '.join(CORRUPTIONS)}"
        raise DataError(f'there is no corruption "{name}"{near}')
    if severity not in SEVERITIES:
        raise DataError(f"{name}: severity is one of 1, 2, 3, 4, 5, and {severity} was given")
    if parameters not in PARAMETER_SETS:
        raise DataError(f'corruptions have the parameters {" or ".join(PARAMETER_SETS)}, and "{parameters}" was given')
