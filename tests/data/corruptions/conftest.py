"""Pictures to corrupt, and how a batch is held against one image at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kattn_cli.data.corruptions import CORRUPTIONS, PARAMETER_SETS, SEVERITIES, corrupt

Plain = Callable[[np.ndarray, Any, Any], np.ndarray]
"""One image ``(H, W, C)`` uint8, parameters and this image's draws, to levels 0 … 255 before they are cut to 8 bits."""

SHAPES = ((3, 3, 24, 24), (2, 1, 21, 34))


def pictures(batch: int, channels: int, height: int, width: int) -> Tensor:
    """Waves, an edge, a flat and a black patch, some noise: whole levels / 255."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / rng.uniform(2, 9) + y / rng.uniform(2, 9)) for _ in range(batch * channels)]
    levels = 128 + 90 * np.stack(waves).reshape(batch, channels, height, width)
    levels = levels + rng.normal(0, 6, levels.shape) + 30 * (x > width / 2)
    levels[..., : height // 3, : width // 3] = 200
    levels[..., -height // 4 :, : width // 4] = 0
    return torch.tensor(levels).clamp(0, 255).round().float() / 255


def levels(images: Tensor) -> np.ndarray:
    """``(B, H, W, C)`` uint8."""
    return (images * 255).round().byte().permute(0, 2, 3, 1).numpy()


def of_image(draws: Any, row: int) -> Any:
    """The draws of one image of a batch."""
    if draws is None or isinstance(draws, Tensor):
        return None if draws is None else draws[row]
    return type(draws)(*(part[row] for part in draws))


def cut(levels: np.ndarray) -> np.ndarray:
    """As numpy casts to uint8, but for float64's own rounding, so that 99.9999999 is 100."""
    return np.uint8(np.clip(levels, 0, 255) + 1e-6)


def _check(
    name: str,
    plain: Plain,
    one: Callable[[Any, int], Any] = of_image,
    *,
    rounds_inside: bool = False,
    share: float = 0.999,
) -> None:
    """Both sets, all severities, two shapes: the same in float64; in 8 bits, at least ``share`` are the same level.

    The others are one level apart. ``rounds_inside``: of types that round on their way no more is asked than that.
    """
    for shape in SHAPES:
        images = pictures(*shape)
        clean = (images.double() * 255).round() / 255
        for parameters in PARAMETER_SETS:
            for severity in SEVERITIES:
                chosen = CORRUPTIONS[name].parameters(parameters)[severity - 1]
                draws = CORRUPTIONS[name].draw(clean, chosen, torch.Generator().manual_seed(severity))
                expected = np.stack([plain(image, chosen, one(draws, row)) for row, image in enumerate(levels(images))])
                where = f"{parameters}, severity {severity}, {shape}"
                if not rounds_inside:
                    exact = CORRUPTIONS[name].apply(clean, chosen, draws).permute(0, 2, 3, 1).numpy()
                    np.testing.assert_allclose(255 * exact, expected, rtol=0, atol=1e-9, err_msg=where)
                found = levels(corrupt(images, name, severity, torch.Generator().manual_seed(severity), parameters))
                apart = np.abs(found.astype(int) - cut(expected))
                assert apart.max() <= 1, where
                assert (apart == 0).mean() >= share, where


@pytest.fixture
def check() -> Callable[..., None]:
    return _check


@pytest.fixture
def pictures_of() -> Callable[..., Tensor]:
    return pictures
