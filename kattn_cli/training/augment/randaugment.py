"""RandAugment (Cubuk et al., arXiv:1909.13719) in timm's variant, for whole batches on the device they are on.

Every image draws its own operations, magnitudes and signs, on the CPU, so they are the same whatever the device
and nothing waits for it. Pixels are whole levels 0 … 255 in between, cut off as Pillow cuts them off.

Our deviations: posterize keeps at least one bit, where timm asks Pillow for none (magnitude 10 of the increasing
variant, less than 2.5 of the other), which gave a black image before Pillow 13 and is an error since; bicubic
interpolation has torch's a = −0.75, Pillow's has −1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.transforms.v2.functional import equalize

from kattn_cli.training.augment.erasing import to_device


def argument(operation: str, magnitude: Tensor, sign: Tensor, increasing: bool) -> Tensor:
    """Return an operation's arguments at each ``magnitude`` (0 … 10, float64): degrees, shares, bits, levels, factors.

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
    # A channel of one level stays; elsewhere fractions are cut off as in Pillow's table.
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
    # Pillow rounds the mean grey to a whole level.
    return _blend((_grey(levels).mean((1, 2, 3), keepdim=True) + 0.5).floor(), levels, factor)


def _brightness(levels: Tensor, factor: Tensor) -> Tensor:
    return (levels * factor).floor().clamp(0, 255)


def _sharpness(levels: Tensor, factor: Tensor) -> Tensor:
    """Apply Pillow's SMOOTH: the centre five times, its eight neighbours once; the outermost pixels stay."""
    inner = levels[..., 1:-1, 1:-1]
    smooth = levels.clone()
    smooth[..., 1:-1, 1:-1] = ((F.avg_pool2d(levels, 3, 1, 1)[..., 1:-1, 1:-1] * 9 + inner * 4) / 13).round()
    return _blend(smooth, levels, factor)


def _blend(without: Tensor, levels: Tensor, factor: Tensor) -> Tensor:
    return (without + factor * (levels - without)).floor().clamp(0, 255)


def _grey(levels: Tensor) -> Tensor:
    """Return the luma as Pillow rounds it, ``(B, 1, H, W)``: weights in 2⁻¹⁶, sums below 2²⁴ and so exact."""
    if levels.shape[1] == 1:
        return levels
    red, green, blue = levels.split(1, 1)
    return ((red * 19595 + green * 38470 + blue * 7471 + 32768) / 65536).floor()


def matrices(move: str, value: Tensor, height: int, width: int) -> Tensor:
    """Return ``(B, 6)`` for :func:`warp`, from one :func:`argument` each, ``(B,)``; rotations are about the centre."""
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


EXAMPLE = "rand-m9-mstd0.5-inc1"
UNIFORM_ABOVE = 100.0
"""An ``mstd`` above this means magnitudes drawn uniformly from 0 to ``m``."""


@dataclass(frozen=True)
class Policy:
    """``layers`` operations an image, each applied with ``probability``, at magnitude N(``magnitude``, ``std``²).

    Magnitudes are cut to [0, 10]; with ``increasing`` all operations grow stronger with them.
    """

    magnitude: int = 10
    layers: int = 2
    probability: float = 0.5
    std: float = 0.0
    increasing: bool = False


PARTS = {
    "m": (r"\d|10", "a whole number from 0 to 10"),
    "n": (r"[1-9]|1[0-5]", "a whole number from 1 to 15"),
    "p": (r"0(\.\d+)?|1(\.0+)?", "a number from 0 to 1"),
    "mstd": (r"\d+(\.\d+)?", "a number such as 0.5"),
    "inc": (r"[01]", "0 or 1"),
}


def parse_policy(text: str) -> Policy:
    """Parse timm's notation: ``rand``, then any of ``m9``, ``n2``, ``p0.5``, ``mstd0.5``, ``inc1``, hyphenated.

    Raises:
        ValueError: naming the part that cannot be read.
    """
    head, *parts = text.split("-")
    if head != "rand":
        raise ValueError(f'must begin with "rand", as in {EXAMPLE}, not with "{head}"')
    found: dict[str, float] = {}
    for part in parts:
        key = part.rstrip("0123456789.")
        if key not in PARTS:
            raise ValueError(f'"{part}" is none of {", ".join(PARTS)} with a number, as in {EXAMPLE}')
        pattern, expected = PARTS[key]
        if not re.fullmatch(pattern, part[len(key) :]):
            raise ValueError(f'"{part}": {key} takes {expected}, as in {EXAMPLE}')
        if key in found:
            raise ValueError(f'"{part}": {key} is given twice; give it once, as in {EXAMPLE}')
        found[key] = float(part[len(key) :])
    return Policy(
        magnitude=int(found.get("m", Policy.magnitude)),
        layers=int(found.get("n", Policy.layers)),
        probability=found.get("p", Policy.probability),
        std=found.get("mstd", Policy.std),
        increasing=bool(found.get("inc", Policy.increasing)),
    )


def fill_levels(mean: Sequence[float]) -> tuple[int, ...]:
    """Return the colour that comes in at the borders, as timm has it: the mean, in levels 0 … 255."""
    return tuple(min(255, round(255 * value)) for value in mean)


class RandAugment:
    """Batches ``(B, C, H, W)`` float32 in [0, 1] to augmented ones of that shape, with C = 1 or 3.

    Args:
        policy: in timm's notation, see :func:`parse_policy`.
        mean: of each channel, in [0, 1]; what comes in at the borders of a moved image.

    Raises:
        ValueError: if the policy cannot be read.
    """

    def __init__(self, policy: str, mean: Sequence[float]) -> None:
        self.policy, self.fill = parse_policy(policy), fill_levels(mean)

    def __call__(self, images: Tensor) -> Tensor:
        levels = (images * 255).round_()
        for _ in range(self.policy.layers):
            self._layer(levels)
        return levels / 255

    def _layer(self, levels: Tensor) -> None:
        """Apply one operation to each image, in place."""
        count, _, height, width = levels.shape
        policy, device = self.policy, levels.device
        operation = torch.randint(len(OPERATIONS), (count,), device="cpu")
        operation[torch.rand(count, device="cpu") >= policy.probability] = -1
        # Both are drawn whatever the policy uses, so that later numbers do not depend on it.
        magnitude = _magnitudes(policy, torch.rand(count, device="cpu"), torch.randn(count, device="cpu"))
        sign = torch.randint(2, (count,), device="cpu") * 2 - 1

        chosen = [(operation == number).nonzero().flatten() for number in range(len(OPERATIONS))]
        values = [
            argument(name, magnitude[one], sign[one], policy.increasing)
            for name, one in zip(OPERATIONS, chosen, strict=True)
        ]
        sizes = [len(one) for one in chosen]
        indices = to_device(torch.cat(chosen), device).split(sizes)
        arguments = to_device(torch.cat(values).float(), device).split(sizes)
        # Images are grouped by operation, so that each operation runs once a layer.
        for apply, index, value in zip(POINTWISE.values(), indices, arguments, strict=False):
            if len(index):
                levels.index_copy_(0, index, apply(levels[index], value[:, None, None, None]))

        moved = torch.cat(indices[len(POINTWISE) :])
        if len(moved):
            moves = zip(MOVES, values[len(POINTWISE) :], strict=True)
            matrix = torch.cat([matrices(move, value, height, width) for move, value in moves])
            levels.index_copy_(0, moved, warp(levels[moved], to_device(matrix.float(), device), self.fill))


def _magnitudes(policy: Policy, uniform: Tensor, normal: Tensor) -> Tensor:
    if policy.std > UNIFORM_ABOVE:
        return uniform.double() * policy.magnitude
    return (policy.magnitude + policy.std * normal.double()).clamp(0, 10)
