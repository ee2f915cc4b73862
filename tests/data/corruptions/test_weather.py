"""Snow and fog, one image at a time; plasma, point by point."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.ndimage
import torch
from torch import Tensor

from kattn_cli.data.corruptions.blur import Motion
from kattn_cli.data.corruptions.plasma import plasma, plasma_draws
from kattn_cli.data.corruptions.weather import Fog, Snow, SnowDraws


def moved(flakes: np.ndarray, motion: Motion, degrees: float) -> np.ndarray:
    weights = np.exp(-0.5 * (np.arange(2 * motion.radius + 1) / motion.sigma) ** 2)
    angle, reach = math.radians(degrees), len(weights)
    padded = np.pad(flakes, reach, mode="edge")
    height, width = flakes.shape
    blurred = np.zeros(flakes.shape)
    for i, weight in enumerate(weights / weights.sum()):
        top, left = reach + math.ceil(i * math.sin(angle) - 0.5), reach + math.ceil(i * math.cos(angle) - 0.5)
        blurred += weight * padded[top : top + height, left : left + width]
    return blurred


def plain_snow(image: np.ndarray, parameters: Snow, draws: SnowDraws) -> np.ndarray:
    height, width, channels = image.shape
    noise = parameters.mean + parameters.std * draws.noise[0].double().numpy()
    tall, wide = (math.ceil(side / parameters.zoom) for side in (height, width))
    top, left = (height - tall) // 2, (width - wide) // 2
    flakes = scipy.ndimage.zoom(noise[top : top + tall, left : left + wide], parameters.zoom, order=1)
    top, left = (flakes.shape[0] - height) // 2, (flakes.shape[1] - width) // 2
    flakes = flakes[top : top + height, left : left + width]
    flakes[flakes < parameters.threshold] = 0
    flakes = np.uint8(np.clip(flakes, 0, 1) * 255 + 1e-6)
    layer = np.round(moved(flakes, parameters.motion, float(draws.degrees)))[..., None] / 255
    pixels = image / 255
    grey = pixels @ [0.299, 0.587, 0.114] if channels == 3 else pixels[..., 0]
    whitened = np.maximum(pixels, grey[..., None] * 1.5 + 0.5)
    result = parameters.keep * pixels + (1 - parameters.keep) * whitened + layer + np.rot90(layer, 2)
    return 255 * result


def test_snow(check: Callable[..., None]) -> None:
    check("snow", plain_snow, rounds_inside=True)


def plain_plasma(draws: list[float], size: int, decay: float) -> np.ndarray:
    """Diamond-square in words: middles of squares from their corners, then middles of sides from four neighbours."""
    height = np.zeros((size, size))
    random, step, rough = iter(draws), size, 100.0

    def settle(points: list[tuple[int, int]], around: list[tuple[int, int]]) -> None:
        for y, x in points:
            mean = sum(height[(y + down) % size, (x + right) % size] for down, right in around) / 4
            height[y, x] = mean + rough * next(random) * rough

    while step > 1:
        half = step // 2
        corners = [(y, x) for y in range(0, size, step) for x in range(0, size, step)]
        settle([(y + half, x + half) for y, x in corners], [(a, b) for a in (-half, half) for b in (-half, half)])
        cross = [(-half, 0), (half, 0), (0, -half), (0, half)]
        settle([(y, x + half) for y, x in corners], cross)
        settle([(y + half, x) for y, x in corners], cross)
        step, rough = half, rough / decay
    return (height - height.min()) / (height.max() - height.min())


def plain_fog(image: np.ndarray, parameters: Fog, draws: Tensor) -> np.ndarray:
    height, width, _ = image.shape
    size = 2 ** math.ceil(math.log2(max(height, width)))
    cloud = plain_plasma(draws.tolist(), size, parameters.decay)[:height, :width, None]
    brightest = image.max() / 255
    result = (image / 255 + parameters.strength * cloud) * brightest / (brightest + parameters.strength)
    return 255 * result


def test_fog(check: Callable[..., None]) -> None:
    check("fog", plain_fog)


@pytest.mark.parametrize("decay", [1.4, 2, 3])
def test_plasma(decay: float) -> None:
    draws = plasma_draws(2, 13, torch.Generator().manual_seed(0))
    assert draws.shape == (2, 16**2 - 1)
    for row, found in enumerate(plasma(draws, decay)):
        np.testing.assert_allclose(found.numpy(), plain_plasma(draws[row].tolist(), 16, decay), atol=1e-12)
        assert (found.min(), found.max()) == (0, 1)


@pytest.mark.parametrize(("side", "size"), [(8, 8), (28, 32), (32, 32), (33, 64), (224, 256), (256, 256)])
def test_the_map_is_the_next_power_of_two(side: int, size: int) -> None:
    assert plasma_draws(1, side, torch.Generator()).shape == (1, size**2 - 1)
