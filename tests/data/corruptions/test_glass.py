"""Glass blur, position by position in numpy, whose views make the published swap a copy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.ndimage
import torch
from torch import Tensor

from kattn_cli.data.corruptions import corrupt
from kattn_cli.data.corruptions.glass import Glass, draw_neighbours, sources


def blurred(image: np.ndarray, sigma: float) -> np.ndarray:
    return scipy.ndimage.gaussian_filter(image / 255, (sigma, sigma, 0), mode="nearest", truncate=4)


def shuffle(image: np.ndarray, parameters: Glass, draws: Tensor) -> None:
    """In place, with the program's own statement for a swap."""
    height, width, _ = image.shape
    reach = parameters.reach
    for steps in draws.numpy():
        for row, y in enumerate(range(height - reach, reach, -1)):
            for column, x in enumerate(range(width - reach, reach, -1)):
                right, down = (int(step) for step in steps[row, column])
                image[y, x], image[y + down, x + right] = image[y + down, x + right], image[y, x]


def plain_glass(image: np.ndarray, parameters: Glass, draws: Tensor) -> np.ndarray:
    levels = np.uint8(blurred(image, parameters.sigma) * 255 + 1e-6)
    shuffle(levels, parameters, draws)
    return 255 * blurred(levels, parameters.sigma)


def test_glass_blur(check: Callable[..., None]) -> None:
    check("glass_blur", plain_glass, one=lambda draws, row: draws[..., row], rounds_inside=True)


def test_pixels_are_copied_not_swapped() -> None:
    """Every pixel shows one of at most ``reach · rounds`` away or further along a chain of copies; some are lost."""
    parameters = Glass(0.7, 2, 2)
    images = torch.zeros(3, 1, 12, 17)
    draws = draw_neighbours(images, parameters, torch.Generator().manual_seed(0))
    assert draws.shape == (2, 8, 13, 2, 3)
    assert (draws.min(), draws.max()) == (-2, 1)
    found = sources(draws, 12, 17)
    for row in range(3):
        numbered = np.arange(12 * 17).reshape(12, 17, 1)
        shuffle(numbered, parameters, draws[..., row])
        assert found[row].tolist() == numbered.ravel().tolist()
        assert len(set(found[row].tolist())) < 12 * 17


def test_an_image_too_small_to_shuffle_is_blurred_alone() -> None:
    image = torch.zeros(1, 1, 8, 8)
    image[..., 4, 4] = 1
    found = corrupt(image, "glass_blur", 5, torch.Generator(), "imagenet-c")
    once = np.uint8(blurred(255 * image[0].permute(1, 2, 0).numpy(), 1.5) * 255)
    assert found[0, 0].mul(255).round().byte().tolist() == np.uint8(blurred(once, 1.5) * 255)[..., 0].tolist()
