"""The 15 corruptions of ImageNet-C at 5 severities, on whole batches of any size and number of channels.

Source: Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations", ICLR
2019, arXiv:1903.12261, and its programs at github.com/hendrycks/robustness, whose results these are for equal random
numbers, but for frost (see :mod:`~kattn_cli.data.corruptions.frost`). ImageNet-C's published files went through a JPEG
of quality 85 besides; CIFAR-10-C's did not, and nothing here does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kattn_cli.data.corruptions.alexnet import ALEXNET_ERRORS
from kattn_cli.data.corruptions.blur import defocus_blur, draw_angles, motion_blur, zoom_blur
from kattn_cli.data.corruptions.digital import brightness, contrast, jpeg_compression
from kattn_cli.data.corruptions.draws import no_draws
from kattn_cli.data.corruptions.elastic import draw_elastic, elastic_transform
from kattn_cli.data.corruptions.frost import draw_frost, frost, read_textures
from kattn_cli.data.corruptions.glass import draw_neighbours, glass_blur
from kattn_cli.data.corruptions.levels import precise, rounded, truncated
from kattn_cli.data.corruptions.noise import (
    draw_gaussian,
    draw_impulses,
    draw_photons,
    gaussian_noise,
    impulse_noise,
    shot_noise,
)
from kattn_cli.data.corruptions.parameters import PARAMETERS, ParameterSet, parameters_for
from kattn_cli.data.corruptions.pixelate import pixelate
from kattn_cli.data.corruptions.weather import draw_fog, draw_snow, fog, snow
from kattn_cli.errors import DataError, did_you_mean

__all__ = [
    "ALEXNET_ERRORS",
    "CORRUPTIONS",
    "SEVERITIES",
    "Corruption",
    "ParameterSet",
    "corrupt",
    "parameters_for",
    "read_textures",
]

SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Corruption:
    """One type. ``apply(images, parameters, draws)`` is a function of its arguments alone; it need not stay in [0, 1].

    ``draw(images, parameters, generator)``: the random numbers that ``apply`` needs, on the CPU.
    """

    description: str
    apply: Callable[..., Tensor]
    draw: Callable[[Tensor, Any, torch.Generator], Any] = no_draws


CORRUPTIONS: dict[str, Corruption] = {
    "gaussian_noise": Corruption("normal noise, as in poor light", gaussian_noise, draw_gaussian),
    "shot_noise": Corruption("Poisson noise, of light's being counted", shot_noise, draw_photons),
    "impulse_noise": Corruption("salt and pepper, as of faulty bits", impulse_noise, draw_impulses),
    "defocus_blur": Corruption("out of focus: every point a disk", defocus_blur),
    "glass_blur": Corruption("through frosted glass: near pixels change places", glass_blur, draw_neighbours),
    "motion_blur": Corruption("a camera that moves", motion_blur, draw_angles),
    "zoom_blur": Corruption("a camera that nears its object", zoom_blur),
    "snow": Corruption("falling snow", snow, draw_snow),
    "frost": Corruption("ice on the lens", frost, draw_frost),
    "fog": Corruption("drifting clouds of fog", fog, draw_fog),
    "brightness": Corruption("more light", brightness),
    "contrast": Corruption("less contrast", contrast),
    "elastic_transform": Corruption("small regions stretched and shifted", elastic_transform, draw_elastic),
    "pixelate": Corruption("too few pixels, shown large", pixelate),
    "jpeg_compression": Corruption("JPEG of low quality", jpeg_compression),
}
"""By name, in ImageNet-C's order."""


def corrupt(
    images: Tensor,
    name: str,
    severity: int,
    generator: torch.Generator,
    parameters: ParameterSet | None = None,
    textures: Iterable[Tensor] | None = None,
) -> Tensor:
    """Images ``(B, C, H, W)`` float32 in [0, 1], of 8 × 8 or more, corrupted; the same shape, device and dtype.

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
    corruption, numbers = CORRUPTIONS[name], PARAMETERS[chosen][name][severity - 1]
    clean = rounded(precise(images))
    draws = corruption.draw(clean, numbers, generator)
    extra = {"textures": textures} if name == "frost" else {}
    levels = truncated(corruption.apply(clean, numbers, draws, **extra)) * 255
    return levels.round().to(images.dtype) / 255


def _check(name: str, severity: int, parameters: str) -> None:
    if name not in CORRUPTIONS:
        near = did_you_mean(name, CORRUPTIONS) or f"; there are {', '.join(CORRUPTIONS)}"
        raise DataError(f'there is no corruption "{name}"{near}')
    if severity not in SEVERITIES:
        raise DataError(f"{name}: severity is one of 1, 2, 3, 4, 5, and {severity} was given")
    if parameters not in PARAMETERS:
        raise DataError(f'corruptions have the parameters {" or ".join(PARAMETERS)}, and "{parameters}" was given')
