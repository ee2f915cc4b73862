"""The gradient that white-box attacks climb, and the steepest way up in a norm."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.attacks.settings import Model, Norm

TINY = 1e-12


def loss_gradient(model: Model, images: Tensor, labels: Tensor) -> Tensor:
    """Gradient of the summed cross-entropy with respect to the images: of each image's own loss."""
    images = images.detach().requires_grad_()
    with torch.enable_grad():
        loss = F.cross_entropy(model(images), labels, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, images)
    return gradient


def steepest(gradient: Tensor, norm: Norm) -> Tensor:
    """The direction of length 1 in ``norm`` (linf or l2), image by image, along which the loss rises fastest.

    ``gradient``: ``(B, C, H, W)``. Where an image's is zero, so is its direction.
    """
    if norm == "linf":
        return gradient.sign()
    lengths = torch.linalg.vector_norm(gradient, dim=(1, 2, 3), keepdim=True)
    return gradient / lengths.clamp_(min=TINY)
