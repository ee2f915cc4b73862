"""What attacks draw, always on the CPU, so that every device gets the same numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.attacks.settings import Settings


def uniform_in_ball(images: Tensor, settings: Settings, generator: torch.Generator) -> Tensor:
    """Perturbations of the images' shape, uniform in the ε-ball of the norm (linf or l2).

    ℓ2: a uniform direction times ε · radius^(1/d), the radius uniform in [0, 1] and d the number of pixel values.
    """
    if settings.norm == "linf":
        draw = torch.rand(images.shape, generator=generator, dtype=images.dtype)
        return draw.mul_(2).sub_(1).mul_(settings.epsilon).to(images.device)
    direction = torch.randn(images.shape, generator=generator, dtype=images.dtype)
    radius = torch.rand(len(images), 1, 1, 1, generator=generator, dtype=images.dtype)
    lengths = torch.linalg.vector_norm(direction, dim=(1, 2, 3), keepdim=True)
    scale = settings.epsilon * radius ** (1 / images[0].numel()) / lengths
    return direction.mul_(scale).to(images.device)


def random_signs(images: Tensor, generator: torch.Generator) -> Tensor:
    """-1 or 1, each with probability ½, of the images' shape and type."""
    draw = torch.randint(2, images.shape, generator=generator, dtype=torch.int8)
    return draw.mul_(2).sub_(1).to(images)


def seed_from(generator: torch.Generator) -> int:
    """A seed for a library that wants one, in [0, 2³¹)."""
    return int(torch.randint(2**31, (), generator=generator))
