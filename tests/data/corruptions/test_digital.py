"""Brightness, contrast, pixelate and JPEG, one image at a time with colorsys and Pillow."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from kattn_cli.data.corruptions import corrupt
from kattn_cli.data.corruptions.digital import box_resize


def plain_brightness(image: np.ndarray, amount: float, draws: None) -> np.ndarray:
    bright = np.empty(image.shape)
    for place in np.ndindex(image.shape[:2]):
        pixel = image[place] / 255
        red, green, blue = pixel if len(pixel) == 3 else pixel.repeat(3)
        hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
        bright[place] = colorsys.hsv_to_rgb(hue, saturation, min(value + amount, 1))[: len(pixel)]
    return 255 * bright


def test_brightness(check: Callable[..., None]) -> None:
    check("brightness", plain_brightness)


def plain_contrast(image: np.ndarray, factor: float, draws: None) -> np.ndarray:
    pixels = image / 255
    mean = pixels.mean((0, 1))
    return 255 * ((pixels - mean) * factor + mean)


def test_contrast(check: Callable[..., None]) -> None:
    check("contrast", plain_contrast)


def to_pillow(image: np.ndarray) -> Image.Image:
    return Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)


def from_pillow(image: Image.Image) -> np.ndarray:
    array = np.asarray(image)
    return array[..., None] if array.ndim == 2 else array


def plain_pixelate(image: np.ndarray, factor: float, draws: None) -> np.ndarray:
    height, width, _ = image.shape
    small = to_pillow(image).resize((int(width * factor), int(height * factor)), Image.Resampling.BOX)
    return from_pillow(small.resize((width, height), Image.Resampling.BOX))


def test_pixelate_is_exact(check: Callable[..., None]) -> None:
    check("pixelate", plain_pixelate, share=1)


@pytest.mark.parametrize("old", [8, 13, 28, 32, 97, 224])
def test_box_filter_is_pillows(old: int) -> None:
    """Of two levels alone, so that ties are common."""
    pixels = np.random.default_rng(old).choice(np.array([100, 101], np.uint8), (9, old))
    for new in range(1, 2 * old, 1 if old < 50 else 7):
        expected = np.asarray(Image.fromarray(pixels).resize((new, 9), Image.Resampling.BOX))
        assert np.array_equal(box_resize(torch.from_numpy(pixels).int(), 9, new).numpy(), expected), new


def plain_jpeg(image: np.ndarray, quality: int, draws: None) -> np.ndarray:
    file = BytesIO()
    to_pillow(image).save(file, "JPEG", quality=quality)
    return from_pillow(Image.open(file))


def test_jpeg_compression_is_exact(check: Callable[..., None]) -> None:
    check("jpeg_compression", plain_jpeg, share=1)


@pytest.mark.parametrize("name", ["jpeg_compression", "pixelate"])
def test_channels_other_than_colours_go_one_by_one(name: str, pictures_of: Callable[..., torch.Tensor]) -> None:
    images = pictures_of(2, 4, 19, 22)
    together = corrupt(images, name, 3, torch.Generator())
    alone = [corrupt(channel, name, 3, torch.Generator()) for channel in images.split(1, 1)]
    assert torch.equal(together, torch.cat(alone, 1))
