"""RandAugment (Cubuk et al., arXiv:1909.13719) in timm's variant, for whole batches on the device they are on.

Every image draws its own operations, magnitudes and signs, on the CPU, so they are the same whatever the device
and nothing waits for it. Pixels are whole levels 0 … 255 in between, cut off as Pillow cuts them off.

Our deviations: posterize keeps at least one bit, where timm asks Pillow for none (magnitude 10 of the increasing
variant, less than 2.5 of the other), which gave a black image before Pillow 13 and is an error since; bicubic
interpolation has torch's a = −0.75, Pillow's has −1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kattn_cli.training.erasing import to_device
from kattn_cli.training.image_operations import MOVES, OPERATIONS, POINTWISE, argument, matrices, warp

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
    """Read timm's notation: ``rand``, then any of ``m9``, ``n2``, ``p0.5``, ``mstd0.5``, ``inc1``, joined by hyphens.

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
    """The colour that comes in at the borders, as timm has it: the mean, in levels 0 … 255."""
    return tuple(min(255, round(255 * value)) for value in mean)


class RandAugment:
    """``(B, C, H, W)`` float32 in [0, 1] to the same, with C = 1 or 3.

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
        """One operation for each image, in place."""
        count, _, height, width = levels.shape
        policy, device = self.policy, levels.device
        operation = torch.randint(len(OPERATIONS), (count,), device="cpu")
        operation[torch.rand(count, device="cpu") >= policy.probability] = -1
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
