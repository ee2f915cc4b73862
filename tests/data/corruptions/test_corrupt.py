"""What all 15 types have in common, and what is said where there is no such corruption."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kattn_cli.data.corruptions import (
    CORRUPTIONS,
    PARAMETER_SETS,
    SEVERITIES,
    ParameterSet,
    alexnet_errors,
    corrupt,
    parameters_for,
)
from kattn_cli.errors import DataError

NAMES = [
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
]
RANDOM = {name for name in NAMES if CORRUPTIONS[name].draw.__name__ != "no_draws"}
NOT_MONOTONE = {
    "imagenet-c": {"glass_blur", "frost", "elastic_transform"},
    "cifar-c": {"glass_blur", "frost", "elastic_transform", "pixelate"},
}
"""Where published parameters trade one kind of strength for another; see :func:`test_severity`."""


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_names_and_tables() -> None:
    assert list(CORRUPTIONS) == NAMES
    assert all(corruption.description for corruption in CORRUPTIONS.values())
    for published in PARAMETER_SETS:
        assert {len(one.parameters(published)) for one in CORRUPTIONS.values()} == {len(SEVERITIES)}
    assert list(alexnet_errors()) == NAMES
    assert sum(alexnet_errors().values()) / 15 == pytest.approx(78.9, abs=0.05)


def test_zoom_factors_count_as_numpy_counts() -> None:
    """The end of a range is in it where rounding says so: 1.11 is, 1.31 is."""
    counts = [len(factors) for factors in CORRUPTIONS["zoom_blur"].parameters("imagenet-c")]
    ends = [round(factors[-1], 2) for factors in CORRUPTIONS["zoom_blur"].parameters("imagenet-c")]
    assert (counts, ends) == ([12, 16, 11, 13, 11], [1.11, 1.15, 1.2, 1.24, 1.3])


def test_small_images_have_small_parameters() -> None:
    assert [parameters_for(size) for size in (8, 32, 63, 64, 224)] == ["cifar-c"] * 3 + ["imagenet-c"] * 2


@pytest.mark.parametrize(("size", "expected"), [((40, 80), "cifar-c"), ((64, 70), "imagenet-c")])
def test_the_shorter_side_chooses(size: tuple[int, int], expected: ParameterSet) -> None:
    images = torch.rand(1, 3, *size)
    assert torch.equal(
        corrupt(images, "contrast", 1, generator()), corrupt(images, "contrast", 1, generator(), expected)
    )


@pytest.mark.parametrize("shape", [(2, 1, 8, 8), (1, 3, 9, 40), (3, 2, 33, 10), (1, 4, 28, 28), (3, 2, 16, 16)])
@pytest.mark.parametrize("parameters", PARAMETER_SETS)
@pytest.mark.parametrize("name", NAMES)
def test_any_batch_channels_and_size(name: str, parameters: ParameterSet, shape: tuple[int, ...]) -> None:
    """Shape and type stay, values are k/255, and the images given are left as they were."""
    images = torch.rand(shape, generator=generator())
    before = images.clone()
    for severity in SEVERITIES:
        found = corrupt(images, name, severity, generator(), parameters)
        assert (found.shape, found.dtype) == (images.shape, torch.float32)
        levels = found * 255
        assert torch.equal(levels.round().clamp(0, 255) / 255, found)
    assert torch.equal(images, before)


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides(name: str, pictures_of: Callable[..., Tensor]) -> None:
    images = pictures_of(2, 3, 32, 32)
    torch.manual_seed(1)
    first = corrupt(images, name, 3, generator())
    torch.manual_seed(2)
    assert torch.equal(corrupt(images, name, 3, generator()), first)
    assert torch.equal(corrupt(images, name, 3, generator(1)), first) == (name not in RANDOM)
    assert not torch.equal(first, images)


@pytest.mark.parametrize("name", sorted(RANDOM))
def test_each_image_has_draws_of_its_own(name: str, pictures_of: Callable[..., Tensor]) -> None:
    image = pictures_of(1, 3, 32, 32)
    first, second = corrupt(image.repeat(2, 1, 1, 1), name, 3, generator())
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", sorted(set(NAMES) - RANDOM))
def test_images_do_not_touch_each_other(name: str, pictures_of: Callable[..., Tensor]) -> None:
    images = pictures_of(3, 3, 20, 20)
    together = corrupt(images, name, 3, generator())
    alone = [corrupt(image[None], name, 3, generator()) for image in images]
    torch.testing.assert_close(together, torch.cat(alone), rtol=0, atol=1 / 255 + 1e-6)


@pytest.mark.parametrize("parameters", PARAMETER_SETS)
@pytest.mark.parametrize("name", NAMES)
def test_severity(name: str, parameters: ParameterSet, pictures_of: Callable[..., Tensor]) -> None:
    """The mean squared distance rises with severity, but for the types whose parameters do not do that alone.

    Glass blur has more rounds or a wider reach, not both; frost darkens the image as it whitens it; elastic shifts less
    and bends more; 24 of 32 pixels make more of an alias than 20.
    """
    size = 32 if parameters == "cifar-c" else 96
    images = pictures_of(8, 3, size, size)
    distances = [
        float((corrupt(images, name, severity, generator(), parameters) - images).square().mean())
        for severity in SEVERITIES
    ]
    rises = distances == sorted(distances)
    assert distances[0] > 0
    assert rises == (name not in NOT_MONOTONE[parameters])


def test_levels_between_are_rounded_first_and_results_cut_off() -> None:
    """127.6 becomes 128; of 128 · 0.4 + mean · 0.6 what is past the point is lost."""
    images = torch.tensor([127.6, 10.0]).repeat(32).view(1, 1, 8, 8) / 255
    found = corrupt(images, "contrast", 1, generator(), "imagenet-c") * 255
    assert found.unique().round().tolist() == [int(10 * 0.4 + 69 * 0.6), int(128 * 0.4 + 69 * 0.6)]


def test_whole_levels_survive_rounding() -> None:
    """A flat image is what blurs and contrast leave alone, at each of the 256 levels."""
    images = torch.arange(256).float().div(255).view(256, 1, 1, 1).expand(-1, 1, 12, 12)
    for name in ("contrast", "zoom_blur", "glass_blur", "motion_blur", "elastic_transform", "pixelate"):
        for parameters in PARAMETER_SETS:
            assert torch.equal(corrupt(images, name, 5, generator(), parameters), images), name


@pytest.mark.parametrize(
    ("name", "severity", "parameters", "message"),
    [
        ("gausian_noise", 1, None, 'there is no corruption "gausian_noise"; did you mean "gaussian_noise"?'),
        ("rain", 1, None, f'there is no corruption "rain"; there are {", ".join(NAMES)}'),
        ("fog", 0, None, "fog: severity is one of 1, 2, 3, 4, 5, and 0 was given"),
        ("fog", 6, None, "fog: severity is one of 1, 2, 3, 4, 5, and 6 was given"),
        ("fog", 1, "mnist-c", 'corruptions have the parameters imagenet-c or cifar-c, and "mnist-c" was given'),
    ],
)
def test_what_there_is_not(name: str, severity: int, parameters: ParameterSet | None, message: str) -> None:
    with pytest.raises(DataError) as raised:
        corrupt(torch.rand(1, 1, 8, 8), name, severity, generator(), parameters)
    assert str(raised.value) == message
