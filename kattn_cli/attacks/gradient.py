"""The gradient that white-box attacks climb."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def loss_gradient(model: Callable[[Tensor], Tensor], images: Tensor, labels: Tensor) -> Tensor:
    """Gradient of the summed cross-entropy with respect to the images: of each image's own loss."""
    images = images.detach().requires_grad_()
    with torch.enable_grad():
        loss = F.cross_entropy(model(images), labels, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, images)
    return gradient


def uniform(images: Tensor, epsilon: float, generator: torch.Generator) -> Tensor:
    """Uniform in [−ε, ε], of the images' shape; drawn on the CPU, so that every device gets the same."""
    draw = torch.rand(images.shape, generator=generator, dtype=images.dtype)
    return (2 * draw - 1).to(images.device) * epsilon
