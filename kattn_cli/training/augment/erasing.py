"""Random erasing (Zhong et al., arXiv:1708.04896) of whole batches, and the random boxes that it and crops need."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

ATTEMPTS = 10

Range = tuple[float, float]


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Move small ``values`` from the CPU without making it wait for the device."""
    return values.to(device, non_blocking=True)


def random_boxes(count: int, height: int, width: int, area: Range, ratio: Range, margin: int = 0) -> Tensor:
    """Draw boxes inside an image of ``height × width``: ``(count, 4)`` int64 on the CPU: top, left, height, width.

    ``area``: range of a box's share of the area, drawn uniformly; ``ratio``: range of width to height, its logarithm
    drawn uniformly; ``margin``: pixels by which the box must be smaller than the image each way. Of ten boxes
    drawn for each image the first that fits is taken; where none does, the box is empty: four zeros. Drawn from
    torch's global generator.
    """
    shares = torch.empty(ATTEMPTS, count, dtype=torch.float64, device="cpu").uniform_(*area)
    ratios = torch.empty(ATTEMPTS, count, dtype=torch.float64, device="cpu").uniform_(*map(math.log, ratio)).exp()
    place = torch.rand(2, count, dtype=torch.float64, device="cpu")
    area_px = shares * height * width
    sides = torch.stack([(area_px / ratios).sqrt().round(), (area_px * ratios).sqrt().round()])
    limits = torch.tensor([height, width], device="cpu")[:, None]
    fits = ((sides > 0) & (sides <= limits[:, None] - margin)).all(0)
    # argmax gives the first of equal maxima: the first attempt that fits.
    first = fits.byte().argmax(0).expand(2, 1, count)
    sides = sides.gather(1, first)[:, 0] * fits.any(0)
    corners = (place * (limits - sides + 1)).floor() * fits.any(0)
    return torch.cat([corners, sides]).T.long()


def random_erasing(images: Tensor, probability: float, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Put a box of noise into some of the images ``(B, C, H, W)``, as DeiT does: timm's mode "pixel".

    A box has 2 % to a third of the area and sides in a ratio of 0.3 to 1 / 0.3. DeiT erases normalised pixels with
    noise of N(0, 1); on pixels in [0, 1] that is ``mean + std · noise``, which may leave [0, 1], here as there. The
    noise is drawn on the images' device, all else on the CPU.
    """
    count, channels, height, width = images.shape
    chosen = (torch.rand(count, device="cpu") < probability).nonzero().flatten()
    # margin=1: timm's boxes are smaller than the image each way.
    boxes = random_boxes(len(chosen), height, width, (0.02, 1 / 3), (0.3, 1 / 0.3), margin=1)
    top, left, tall, wide = to_device(boxes.T[..., None, None, None], images.device)
    row = torch.arange(height, device=images.device)[:, None]
    column = torch.arange(width, device=images.device)
    inside = (row >= top) & (row < top + tall) & (column >= left) & (column < left + wide)
    offset, scale = to_device(
        torch.tensor([mean, std], dtype=images.dtype, device="cpu")[..., None, None], images.device
    )
    noise = torch.randn(len(chosen), channels, height, width, dtype=images.dtype, device=images.device)
    indices = to_device(chosen, images.device)
    return images.index_copy(0, indices, torch.where(inside, offset + scale * noise, images[indices]))
