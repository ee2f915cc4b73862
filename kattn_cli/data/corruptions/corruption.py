"""The form of a corruption: its code, its published parameters, its number in the seeds, and AlexNet's error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

SEVERITIES = (1, 2, 3, 4, 5)
ParameterSet = Literal["imagenet-c", "cifar-c"]
PARAMETER_SETS: tuple[ParameterSet, ...] = get_args(ParameterSet)


def no_draws(images: Tensor, parameters: Any, generator: torch.Generator) -> None:
    """Draw nothing, for types in which nothing is random."""


@dataclass(frozen=True)
class Corruption:
    """One type of corruption, with its parameters at severities 1 … 5.

    Args:
        description: what it imitates, in a few words.
        position: its number in the seeds of what is drawn. It belongs to the type for ever: another number would draw
            other noise, and results would no longer compare with those made before.
        apply: ``apply(images, parameters, draws)``, a function of its arguments alone; it need not stay in [0, 1].
        imagenet_c: the parameters of ImageNet-C, for 224 × 224 (``make_imagenet_c.py``).
        cifar_c: those of CIFAR-10-C, for 32 × 32 (``make_cifar_c.py``).
        alexnet_error: AlexNet's top-1 error on ImageNet-C in %, mean over severities, which mCE is measured by
            (Hendrycks and Dietterich, ICLR 2019, with their program's digits); None where none is published.
        draw: ``draw(images, parameters, generator)``: the random numbers that ``apply`` needs, on the CPU.
        takes_textures: whether ``apply`` takes photographs as ``textures``.
    """

    description: str
    position: int
    apply: Callable[..., Tensor]
    imagenet_c: tuple[Any, ...]
    cifar_c: tuple[Any, ...]
    alexnet_error: float | None = None
    draw: Callable[[Tensor, Any, torch.Generator], Any] = no_draws
    takes_textures: bool = False

    def parameters(self, published: ParameterSet) -> tuple[Any, ...]:
        """Return the parameters of severities 1 … 5 in one of the published sets."""
        return self.imagenet_c if published == "imagenet-c" else self.cifar_c

    def seed_position(self, severity: int) -> int:
        """Return the number that stands for this type and ``severity`` in a seed."""
        return len(SEVERITIES) * self.position + severity - 1


def parameters_for(size: int) -> ParameterSet:
    """Return ``"cifar-c"`` for images of fewer than 64 pixels a side, ``"imagenet-c"`` for others.

    ImageNet-C's blurs and shuffles reach so many pixels that at 32 × 32 little is left of an image (a disk of 21 × 21,
    motion over 41), which is why its authors chose other numbers for CIFAR-10-C. The change is at 64, between the two,
    nearer to 32 in ratio than to 224; the authors' third set, of Tiny-ImageNet-C at 64 × 64, is not here.
    """
    return "cifar-c" if size < 64 else "imagenet-c"


def uniform(shape: tuple[int, ...], low: float, high: float, generator: torch.Generator) -> Tensor:
    """Draw from [low, high) in float64 on the CPU, so that every device gets the same numbers."""
    return torch.empty(shape, dtype=torch.float64).uniform_(low, high, generator=generator)


def precise(pixels: Tensor) -> Tensor:
    """Return pixels in float64, as the published programs calculate, where the device has it (Apple's GPUs do not)."""
    return pixels if pixels.device.type == "mps" else pixels.double()


def rounded(pixels: Tensor) -> Tensor:
    """Return the nearest of 0/255 … 255/255: what an image file holds, and what ImageMagick returns."""
    return (pixels * 255).round().clamp(0, 255) / 255


def truncated(pixels: Tensor) -> Tensor:
    """Return the level below, as numpy's ``uint8`` has it, so that noise of mean 0 darkens by half a level.

    A level missed by rounding alone still counts as reached: 99.99999999 is to stay 100.
    """
    slack = 1e-6 if pixels.dtype == torch.float64 else 1e-3
    return (pixels * 255 + slack).floor().clamp(0, 255) / 255
