"""Filters on ``(…, H, W)``, with borders by index, so that a kernel may reach further than the image."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

Border = Callable[[Tensor, int], Tensor]
"""From any whole indices to those of a row of ``size`` pixels."""


def edge(index: Tensor, size: int) -> Tensor:
    """Repeat the border's pixel: aaa|abcd|ddd."""
    return index.clamp(0, size - 1)


def mirror(index: Tensor, size: int) -> Tensor:
    """Mirror at the border's pixel: dcb|abcd|cba, OpenCV's REFLECT_101."""
    # At least 1, for a row of a single pixel.
    period = max(2 * size - 2, 1)
    index = index.remainder(period)
    return torch.minimum(index, period - index)


def reflect(index: Tensor, size: int) -> Tensor:
    """Mirror at the border: cba|abcd|dcb, scipy's reflect."""
    index = index.remainder(2 * size)
    return torch.minimum(index, 2 * size - 1 - index)


def gaussian_weights(sigma: float, radius: int) -> Tensor:
    """Return weights ``(2 · radius + 1,)`` float64, of sum 1; for a ``sigma`` of 0, one pixel's."""
    offset = torch.arange(-radius, radius + 1, dtype=torch.float64)
    weights = torch.exp(-0.5 * (offset / sigma) ** 2) if sigma > 0 else (offset == 0).double()
    return weights / weights.sum()


@lru_cache(maxsize=64)
def gaussian_matrix(size: int, sigma: float, truncate: float, border: Border) -> Tensor:
    """Return ``(size, size)`` float64: row i weighs the pixels that make up pixel i, cut off as scipy does."""
    radius = int(truncate * sigma + 0.5)
    index = border(torch.arange(size)[:, None] + torch.arange(-radius, radius + 1), size)
    return torch.zeros(size, size, dtype=torch.float64).scatter_add_(
        1, index, gaussian_weights(sigma, radius).expand(size, -1)
    )


def smooth(pixels: Tensor, sigma: float, truncate: float, border: Border) -> Tensor:
    """Filter with a Gaussian of ``sigma`` pixels, cut off after ``truncate`` of them; scipy's ``gaussian_filter``."""
    height, width = pixels.shape[-2:]
    rows = gaussian_matrix(height, sigma, truncate, border).to(pixels)
    columns = gaussian_matrix(width, sigma, truncate, border).to(pixels)
    return rows @ pixels @ columns.mT


@lru_cache(maxsize=16)
def disk(radius: float, sigma: float) -> Tensor:
    """Return a disk softened over 3 × 3 pixels (5 × 5 above a radius of 8): ``(k, k)`` float64, k = 17 or more.

    Its sum was 1 before softening; where the disk touches the kernel's border, it is a little off after.
    """
    reach, soft = (8, 1) if radius <= 8 else (int(radius), 2)
    offset = torch.arange(-reach, reach + 1)
    inside = (offset[:, None] ** 2 + offset**2 <= radius**2).double()
    index = mirror(torch.arange(2 * reach + 1)[:, None] + torch.arange(-soft, soft + 1), 2 * reach + 1)
    weights = gaussian_weights(sigma, soft).expand(2 * reach + 1, -1)
    matrix = torch.zeros_like(inside).scatter_add_(1, index, weights)
    return matrix @ (inside / inside.sum()) @ matrix.mT


def correlate(pixels: Tensor, kernel: Tensor) -> Tensor:
    """Filter ``pixels`` with a square ``kernel`` of odd side, mirrored at the border; OpenCV's ``filter2D``.

    By Fourier transforms: quick for wide kernels, in float64 too.
    """
    height, width = pixels.shape[-2:]
    reach = len(kernel) // 2
    rows, columns = (torch.arange(-reach, size + reach, device=pixels.device) for size in (height, width))
    padded = pixels[..., mirror(rows, height), :][..., mirror(columns, width)]
    shape = padded.shape[-2:]
    # Flipped, since a product of spectra convolves and OpenCV correlates.
    spectrum = torch.fft.rfft2(kernel.flip(0, 1).to(pixels), s=shape)
    filtered = torch.fft.irfft2(torch.fft.rfft2(padded) * spectrum, s=shape)
    return filtered[..., 2 * reach :, 2 * reach :]
