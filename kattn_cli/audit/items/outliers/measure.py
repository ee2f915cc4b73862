"""How far gross outliers among the tokens move what attention gives to all others, of any mechanism.

Some of the tokens that enter a layer are replaced by noise of so many times a token's size, and the outputs at the
tokens that were left alone are compared with what they were. B: batch, N: tokens, C: width.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from kattn_cli.audit.view import View, mean_and_deviation
from kattn_cli.runs.csv_rows import Row

SHARE = 0.1
"""Of the tokens, one at least."""
SIZES = (1, 4, 16, 64)


def displacements(view: View) -> Iterator[Row]:
    """Measure ``‖f(x') − f(x)‖ / ‖f(x)‖`` over the tokens that were left alone, in each layer, for each size."""
    for layer, (mechanism, x) in enumerate(zip(view.model.mechanisms(), view.entering, strict=True)):
        for size in SIZES:
            replaced, mask = with_outliers(x, size, view.generator())
            mean, deviation = mean_and_deviation(displacement(mechanism(x), mechanism(replaced), mask))
            yield {
                "layer": layer,
                "layer_mechanism": type(mechanism).__name__,
                "share": mask.double().mean().item(),
                "size": size,
                "displacement": 100 * mean.item(),
                "displacement_std": 100 * deviation.item(),
                "inputs": len(x),
            }


def with_outliers(x: Tensor, size: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return ``x`` ``(B, N, C)`` with outliers in the place of tokens, and where they are, ``(B, N)``.

    Each is noise of ``size`` times the root mean square of its sample. The generator is the CPU's, so that every device
    draws the same; the same draws for every size.
    """
    places = torch.rand(x.shape[:2], generator=generator).argsort(-1)
    mask = (places < max(1, round(SHARE * x.shape[1]))).to(x.device)
    noise = torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x)
    outliers = size * x.square().mean((1, 2), keepdim=True).sqrt() * noise
    return torch.where(mask[..., None], outliers, x), mask


def displacement(before: Tensor, after: Tensor, mask: Tensor) -> Tensor:
    """Return how far outputs moved where ``mask`` is False, as a share of their norm there, ``(B,)``."""
    left = ~mask[..., None]
    norm = (before * left).norm(dim=(1, 2)).clamp(min=torch.finfo(before.dtype).tiny)
    return ((after - before) * left).norm(dim=(1, 2)) / norm
