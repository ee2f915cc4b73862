"""Against results of the imagecorruptions package and of the authors' elastic transform; see corruptions.md there.

Their random numbers are numpy's, from the seeds named there, and are drawn again here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from reference_vectors import load
from torch import Tensor

from kattn_cli.data.corruptions import CORRUPTIONS, ParameterSet
from kattn_cli.data.corruptions.blur import moved
from kattn_cli.data.corruptions.corruption import truncated
from kattn_cli.data.corruptions.elastic import ElasticDraws
from kattn_cli.data.corruptions.frost import frost
from kattn_cli.data.corruptions.glass import Glass
from kattn_cli.data.corruptions.weather import SnowDraws

SEED = 7
SIDE = 40


@pytest.fixture(scope="module")
def vectors() -> dict[str, Tensor]:
    return load("corruptions")


def batch(image: Tensor) -> Tensor:
    """``(H, W, C)`` uint8 to ``(1, C, H, W)`` float64 in [0, 1]."""
    return image.permute(2, 0, 1)[None].double() / 255


def numbers(name: str, severity: int, parameters: ParameterSet = "imagenet-c") -> Any:
    return CORRUPTIONS[name].parameters(parameters)[severity - 1]


def numpys(severity: int) -> np.random.RandomState:
    return np.random.RandomState(SEED + severity)


def apart(found: Tensor, expected: Tensor) -> Tensor:
    """In levels, of a result before it is cut to 8 bits."""
    return ((truncated(found) - batch(expected)) * 255).round().abs()


def found(name: str, severity: int, vectors: dict[str, Tensor], draws: Any) -> Tensor:
    result = CORRUPTIONS[name].apply(batch(vectors["image"]), numbers(name, severity), draws)
    return apart(result, vectors[f"{name}_{severity}"])


def test_the_file_holds_what_is_tested(vectors: dict[str, Tensor]) -> None:
    types = {name.rstrip("0123456789_").removesuffix("_cifar") for name in vectors} - {"image", "frost_texture"}
    assert types == set(CORRUPTIONS)


@pytest.mark.parametrize("severity", [1, 5])
@pytest.mark.parametrize("name", ["brightness", "contrast", "jpeg_compression"])
def test_nothing_random(name: str, severity: int, vectors: dict[str, Tensor]) -> None:
    difference = found(name, severity, vectors, None)
    assert difference.max() <= 1
    assert difference.mean() < 0.01


@pytest.mark.parametrize("severity", [2, 5])
def test_pixelate(severity: int, vectors: dict[str, Tensor]) -> None:
    """Where the factor divides the side, enlarging by the box filter and by the nearest pixel are the same."""
    assert found("pixelate", severity, vectors, None).max() == 0


@pytest.mark.parametrize("severity", [1, 5])
@pytest.mark.parametrize("name", ["defocus_blur", "zoom_blur"])
def test_blurs(name: str, severity: int, vectors: dict[str, Tensor]) -> None:
    """In float32 the package's smallest disk does not quite sum to 1, so that it darkens flat patches by a level."""
    difference = found(name, severity, vectors, None)
    assert difference.max() <= 1
    assert difference.mean() < 0.06


@pytest.mark.parametrize("severity", [1, 5])
def test_gaussian_noise(severity: int, vectors: dict[str, Tensor]) -> None:
    draws = numpys(severity).normal(size=(SIDE, SIDE, 3))
    assert found("gaussian_noise", severity, vectors, torch.from_numpy(draws).permute(2, 0, 1)[None]).max() == 0


@pytest.mark.parametrize("severity", [1, 5])
def test_shot_noise(severity: int, vectors: dict[str, Tensor]) -> None:
    draws = numpys(severity).poisson(vectors["image"].numpy() / 255 * numbers("shot_noise", severity))
    difference = found("shot_noise", severity, vectors, torch.from_numpy(draws).permute(2, 0, 1)[None])
    assert difference.max() <= 1
    assert difference.mean() < 0.01


@pytest.mark.parametrize("severity", [1, 5])
def test_impulse_noise(severity: int, vectors: dict[str, Tensor]) -> None:
    draws = np.random.default_rng(SEED).random((2, SIDE, SIDE, 3))
    assert found("impulse_noise", severity, vectors, torch.from_numpy(draws).permute(0, 3, 1, 2)[:, None]).max() == 0


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_glass_blur(severity: int, vectors: dict[str, Tensor]) -> None:
    parameters: Glass = numbers("glass_blur", severity)
    reach, side = parameters.reach, SIDE - 2 * parameters.reach
    draws = numpys(severity).randint(-reach, reach, (parameters.rounds, side, side, 2))
    difference = found("glass_blur", severity, vectors, torch.from_numpy(draws)[..., None])
    assert difference.max() <= 1
    assert difference.mean() < 0.01


@pytest.mark.parametrize("severity", [1, 5])
def test_motion_blur(severity: int, vectors: dict[str, Tensor]) -> None:
    """Before it is rounded, since the package cuts off where ImageMagick rounds."""
    degrees = torch.tensor([numpys(severity).uniform(-45, 45)], dtype=torch.float64)
    blurred = moved(batch(vectors["image"]), numbers("motion_blur", severity), degrees)
    difference = apart(blurred, vectors[f"motion_blur_{severity}"])
    assert difference.max() <= 1
    assert difference.mean() < 0.01


@pytest.mark.parametrize("severity", [2, 3, 4])
def test_snow(severity: int, vectors: dict[str, Tensor]) -> None:
    """The package does not cut flakes to 8 bits before they are moved, which each of the two layers shows."""
    rng = numpys(severity)
    parameters = numbers("snow", severity)
    noise = (rng.normal(parameters.mean, parameters.std, (SIDE, SIDE)) - parameters.mean) / parameters.std
    degrees = torch.tensor([rng.uniform(-135, -45)], dtype=torch.float64)
    difference = found("snow", severity, vectors, SnowDraws(torch.from_numpy(noise)[None, None], degrees))
    assert difference.max() <= 2
    assert difference.mean() < 0.05


@pytest.mark.parametrize("severity", [1, 5])
def test_frost(severity: int, vectors: dict[str, Tensor]) -> None:
    """With a texture of noise for the photographs."""
    rng = numpys(severity)
    texture = vectors["frost_texture"].permute(2, 0, 1).double() / 255
    rng.randint(5)
    room = [side - SIDE for side in texture.shape[1:]]
    start = [rng.randint(0, places) for places in room]
    draws = [0, *((place + 0.5) / places for place, places in zip(start, room, strict=True))]
    result = frost(batch(vectors["image"]), numbers("frost", severity), torch.tensor([draws]), [texture])
    difference = apart(result, vectors[f"frost_{severity}"])
    assert difference.max() <= 1
    assert difference.mean() < 0.005


@pytest.mark.parametrize("severity", [1, 5])
def test_fog(severity: int, vectors: dict[str, Tensor]) -> None:
    """The draws of each halving are scaled as they are drawn, by a roughness that is taken out again."""
    rng = numpys(severity)
    parameters, size, rough, draws = numbers("fog", severity), 64, 100.0, []
    for halving in range(6):
        draws.append(rng.uniform(-rough, rough, 3 * 4**halving) / rough)
        rough /= parameters.decay
    difference = found("fog", severity, vectors, torch.from_numpy(np.concatenate(draws))[None])
    assert sum(map(len, draws)) == size**2 - 1
    assert difference.max() <= 1
    assert difference.mean() < 0.001


def elastic_difference(image: Tensor, severity: int, parameters: ParameterSet, expected: Tensor, every: int) -> Tensor:
    rng, side = numpys(severity), len(image)
    chosen = numbers("elastic_transform", severity, parameters)
    shift = chosen.shift * side
    corners = rng.uniform(-shift, shift, (1, 3, 2)) / shift
    field = rng.uniform(-1, 1, (1, 2, side, side))
    draws = ElasticDraws(torch.from_numpy(corners), torch.from_numpy(field))
    result = CORRUPTIONS["elastic_transform"].apply(batch(image), chosen, draws)
    return apart(result[..., ::every, ::every], expected)


@pytest.mark.parametrize("severity", [2, 5])
def test_elastic_transform(severity: int, vectors: dict[str, Tensor]) -> None:
    """At 224 × 224, every ninth pixel; OpenCV's own versions 4 and 5 differ by 3 levels."""
    image = vectors["image"].repeat(6, 6, 1)[:224, :224]
    difference = elastic_difference(image, severity, "imagenet-c", vectors[f"elastic_transform_{severity}"], 9)
    assert difference.max() <= 1
    assert difference.mean() < 0.005


@pytest.mark.parametrize("severity", [1, 5])
def test_elastic_transform_of_cifar(severity: int, vectors: dict[str, Tensor]) -> None:
    image = vectors["image"][:32, :32]
    difference = elastic_difference(image, severity, "cifar-c", vectors[f"elastic_transform_cifar_{severity}"], 1)
    assert difference.max() <= 1
    assert difference.mean() < 0.005
