"""The operations of RandAugment on whole batches, as Pillow and timm have them on single images.

Pixels are whole levels 0 … 255, ``(B, C, H, W)`` float32, cut off as Pillow cuts them off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.transforms.v2.functional import equalize

from kattn_cli.training.erasing import to_device


def argument(operation: str, magnitude: Tensor, sign: Tensor, increasing: bool) -> Tensor:
    """What an operation is called with at each ``magnitude`` (0 … 10, float64): degrees, shares, bits, levels, factors.

    ``sign``: −1 or 1, heeded where timm draws one.
    """
    share = magnitude / 10
    if operation == "Rotate":
        return share * 30 * sign
    if operation.startswith("Shear"):
        return share * 0.3 * sign
    if operation.startswith("Translate"):
        return share * 0.45 * sign
    if operation == "Posterize":
        bits = (share * 4).trunc()
        return (4 - bits if increasing else bits).clamp(min=1)
    if operation == "Solarize":
        threshold = (share * 256).trunc()
        return 256 - threshold if increasing else threshold
    if operation == "SolarizeAdd":
        return (share * 110).trunc()
    if operation in ("Color", "Contrast", "Brightness", "Sharpness"):
        return 1 + share * 0.9 * sign if increasing else share * 1.8 + 0.1
    return torch.zeros_like(magnitude)


def _auto_contrast(levels: Tensor, _: Tensor) -> Tensor:
    low, high = levels.amin((2, 3), keepdim=True), levels.amax((2, 3), keepdim=True)
    return torch.where(high > low, ((levels - low) * 255 / (high - low)).floor(), levels)


def _equalize(levels: Tensor, _: Tensor) -> Tensor:
    return equalize(levels.to(torch.uint8)).float()


def _invert(levels: Tensor, _: Tensor) -> Tensor:
    return 255 - levels


def _posterize(levels: Tensor, bits: Tensor) -> Tensor:
    step = 2 ** (8 - bits)
    return (levels / step).floor() * step


def _solarize(levels: Tensor, threshold: Tensor) -> Tensor:
    return torch.where(levels < threshold, levels, 255 - levels)


def _solarize_add(levels: Tensor, added: Tensor) -> Tensor:
    return torch.where(levels < 128, (levels + added).clamp(max=255), levels)


def _color(levels: Tensor, factor: Tensor) -> Tensor:
    return _blend(_grey(levels), levels, factor)


def _contrast(levels: Tensor, factor: Tensor) -> Tensor:
    return _blend((_grey(levels).mean((1, 2, 3), keepdim=True) + 0.5).floor(), levels, factor)


def _brightness(levels: Tensor, factor: Tensor) -> Tensor:
    return (levels * factor).floor().clamp(0, 255)


def _sharpness(levels: Tensor, factor: Tensor) -> Tensor:
    """Pillow's SMOOTH: the centre five times, its eight neighbours once; the outermost pixels stay."""
    inner = levels[..., 1:-1, 1:-1]
    smooth = levels.clone()
    smooth[..., 1:-1, 1:-1] = ((F.avg_pool2d(levels, 3, 1, 1)[..., 1:-1, 1:-1] * 9 + inner * 4) / 13).round()
    return _blend(smooth, levels, factor)


def _blend(without: Tensor, levels: Tensor, factor: Tensor) -> Tensor:
    return (without + factor * (levels - without)).floor().clamp(0, 255)


def _grey(levels: Tensor) -> Tensor:
    """Luma as Pillow rounds it, ``(B, 1, H, W)``: weights in 2⁻¹⁶, sums below 2²⁴ and so exact."""
    if levels.shape[1] == 1:
        return levels
    red, green, blue = levels.split(1, 1)
    return ((red * 19595 + green * 38470 + blue * 7471 + 32768) / 65536).floor()


def matrices(move: str, value: Tensor, height: int, width: int) -> Tensor:
    """For :func:`warp`, ``(B, 6)``, from one :func:`argument` each, ``(B,)``; rotations are about the centre."""
    one, zero = torch.ones_like(value), torch.zeros_like(value)
    if move == "Rotate":
        angle = value * (math.pi / 180)
        cos, sin, x, y = angle.cos(), angle.sin(), width / 2, height / 2
        entries = (cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y)
    else:
        entries = {
            "ShearX": (one, value, zero, zero, one, zero),
            "ShearY": (one, zero, zero, value, one, zero),
            "TranslateX": (one, zero, value * width, zero, one, zero),
            "TranslateY": (one, zero, zero, zero, one, value * height),
        }[move]
    return torch.stack(entries, 1)


def warp(levels: Tensor, matrix: Tensor, fill: Sequence[float], mode: str = "bicubic") -> Tensor:
    """Move images ``(B, C, H, W)`` in levels 0 … 255 as Pillow's ``Image.transform`` does.

    ``matrix`` ``(B, 6)``: output (x, y) shows what is at (ax + by + c, dx + ey + f), in pixels from the top left
    corner, pixel centres at halves; where that is outside, ``fill`` (one level a channel).
    """
    _, _, height, width = levels.shape
    y = torch.arange(height, device=levels.device)[:, None] + 0.5
    x = torch.arange(width, device=levels.device) + 0.5
    a, b, c, d, e, f = matrix[..., None, None].unbind(1)
    from_x, from_y = a * x + b * y + c, d * x + e * y + f
    grid = torch.stack([from_x * (2 / width) - 1, from_y * (2 / height) - 1], -1)
    moved = F.grid_sample(levels, grid, mode=mode, padding_mode="border", align_corners=False)
    # Pillow cuts fractions off, in float64; float32 errs by 0.01 at 224 pixels, and 99.99 is to stay 100
    moved = (moved + 1 / 64).floor().clamp(0, 255)
    inside = (from_x >= 0) & (from_x < width) & (from_y >= 0) & (from_y < height)
    colour = to_device(torch.tensor(fill, dtype=levels.dtype, device="cpu")[:, None, None], levels.device)
    return torch.where(inside[:, None], moved, colour)


POINTWISE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "AutoContrast": _auto_contrast,
    "Equalize": _equalize,
    "Invert": _invert,
    "Posterize": _posterize,
    "Solarize": _solarize,
    "SolarizeAdd": _solarize_add,
    "Color": _color,
    "Contrast": _contrast,
    "Brightness": _brightness,
    "Sharpness": _sharpness,
}
"""From levels ``(B, C, H, W)`` and one argument each, ``(B, 1, 1, 1)``, to levels."""

MOVES = ("Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY")

OPERATIONS = (*POINTWISE, *MOVES)
