"""Crops, flips and the whole of a batch's augmentation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode, RandomResizedCrop
from torchvision.transforms.v2.functional import resized_crop as torchvision_resized_crop

from kattn_cli.recipe.train import Train
from kattn_cli.training.augment.batches import (
    after_decoding,
    in_memory,
    random_crop,
    random_flip,
    random_resized_crop,
    resized_crop,
)

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
DEIT = Train(crop_scale=0.08, flip=0.5, randaugment="rand-m9-mstd0.5-inc1", erasing=0.25)


def test_every_crop_is_a_shift_with_zeros_coming_in() -> None:
    torch.manual_seed(0)
    images = torch.rand(64, 2, 5, 6)
    cropped = random_crop(images, 1)
    padded = torch.nn.functional.pad(images, (1, 1, 1, 1))
    shifts = set()
    for image, canvas in zip(cropped, padded, strict=True):
        found = [
            (top, left)
            for top in range(3)
            for left in range(3)
            if torch.equal(image, canvas[:, top : top + 5, left : left + 6])
        ]
        assert len(found) == 1
        shifts.add(found[0])
    assert len(shifts) == 9


def test_no_padding_changes_nothing() -> None:
    images = torch.rand(3, 1, 4, 4)
    assert torch.equal(random_crop(images, 0), images)


@pytest.mark.parametrize("shape", [(40, 3, 32, 32), (40, 1, 13, 21)])
def test_resized_crops_equal_torchvisions(shape: tuple[int, ...]) -> None:
    images = torch.rand(shape)
    _, _, height, width = shape
    rng = torch.Generator().manual_seed(4)
    tall = torch.randint(1, height + 1, (40,), generator=rng)
    wide = torch.randint(1, width + 1, (40,), generator=rng)
    top = (torch.rand(40, generator=rng) * (height - tall + 1)).long()
    left = (torch.rand(40, generator=rng) * (width - wide + 1)).long()
    boxes = torch.stack([top, left, tall, wide], 1)
    boxes[0] = torch.tensor([0, 0, height, width])
    ours = resized_crop(images, boxes)
    for image, box, result in zip(images, boxes.tolist(), ours, strict=True):
        theirs = torchvision_resized_crop(
            image, *box, size=[height, width], interpolation=InterpolationMode.BICUBIC, antialias=True
        )
        torch.testing.assert_close(result, theirs.clamp(0, 1), atol=3e-6, rtol=0)
    assert torch.equal(ours[0], images[0])


def boxes_of(crop: Callable[[Tensor], Tensor], height: int, width: int, count: int) -> Tensor:
    """Height and width of each box drawn, seen from how ramps grow: ``(count, 2)``."""
    ramp = torch.stack(torch.meshgrid(torch.arange(height) / height, torch.arange(width) / width, indexing="ij"))
    cropped = crop(ramp.expand(count, 2, height, width)).double()
    middle = slice(height // 4, -(height // 4)), slice(width // 4, -(width // 4))
    tall = cropped[:, 0, middle[0], 0].diff(dim=1).mean(1) * height**2
    wide = cropped[:, 1, 0, middle[1]].diff(dim=1).mean(1) * width**2
    return torch.stack([tall, wide], 1)


def test_crops_are_drawn_as_torchvision_draws_them() -> None:
    size, count = 32, 4000
    ours = boxes_of(lambda images: random_resized_crop(images, 0.08), size, size, count)
    image = torch.zeros(1, size, size)
    drawn = [RandomResizedCrop.get_params(image, [0.08, 1.0], [3 / 4, 4 / 3])[2:] for _ in range(count)]
    theirs = torch.tensor(drawn).double()
    for statistic in (
        lambda sides: sides.prod(1).mean() / size**2,
        lambda sides: sides.prod(1).std() / size**2,
        lambda sides: (sides[:, 1] / sides[:, 0]).log().std(),
        lambda sides: (sides.prod(1) < 0.3 * size**2).double().mean(),
    ):
        assert statistic(ours) == pytest.approx(statistic(theirs).item(), abs=0.025)


def test_a_crop_that_never_fits_is_the_whole_image() -> None:
    images = torch.rand(5, 2, 3, 40)
    torch.testing.assert_close(random_resized_crop(images, 1.0), images, atol=1e-6, rtol=0)


def test_resized_crops_are_exact_within_autocast() -> None:
    images, boxes = torch.rand(2, 3, 8, 8), torch.tensor([[1, 2, 5, 4], [0, 0, 7, 8]])
    with torch.autocast("cpu", torch.bfloat16):
        within = resized_crop(images, boxes)
    assert torch.equal(within, resized_crop(images, boxes))


def test_flips() -> None:
    images = torch.rand(4000, 1, 2, 3)
    flipped = random_flip(images, 0.3)
    mirrored = (flipped == images.flip(3)).flatten(1).all(1)
    kept = (flipped == images).flatten(1).all(1)
    assert (mirrored ^ kept).all()
    assert mirrored.double().mean() == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("build", [in_memory, after_decoding])
def test_seeds_decide_and_what_is_given_stays(build: Callable[..., Callable[[Tensor], Tensor]], channels: int) -> None:
    augment = build(DEIT, MEAN[:channels], STD[:channels])
    images = torch.rand(50, channels, 16, 12)
    before = images.clone()
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(augment(images))
    assert torch.equal(images, before)
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert results[0].shape == images.shape
    assert results[0].dtype == torch.float32
    assert (results[0] < 0).any(), "erased boxes leave [0, 1]"


def test_pixels_stay_in_range_but_for_erasing() -> None:
    augment = in_memory(DEIT.model_copy(update={"erasing": 0.0}), MEAN, STD)
    images = torch.rand(200, 3, 16, 16)
    images[100:] = (images[100:] > 0.5).float()
    result = augment(images)
    assert result.min() >= 0
    assert result.max() <= 1
    assert ((result * 255).round() / 255 == result).all(), "whole levels, as from a file"


def test_after_decoding_only_erases() -> None:
    images = torch.rand(200, 3, 10, 10)
    changed = (after_decoding(DEIT, MEAN, STD)(images) != images).any(1).flatten(1).double().mean(1)
    assert (changed > 0).double().mean() == pytest.approx(0.25, abs=0.08)
    assert changed.max() < 0.4
    assert after_decoding(Train(crop_scale=0.1, flip=0.5), MEAN, STD)(images) is images


def test_nothing_asked_for_is_nothing_done() -> None:
    images = torch.rand(2, 1, 4, 4)
    assert in_memory(Train(), MEAN[:1], STD[:1])(images) is images


def test_each_setting_is_heeded() -> None:
    images = torch.rand(30, 3, 12, 12)
    for setting in ({"crop_padding": 2}, {"crop_scale": 0.2}, {"flip": 1.0}, {"randaugment": "rand-m9"}):
        assert not torch.equal(in_memory(Train.model_validate(setting), MEAN, STD)(images), images), setting
    assert torch.equal(in_memory(Train(flip=1.0), MEAN, STD)(images), images.flip(3))


def test_a_policy_that_cannot_be_read_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match='"x1" is none of'):
        in_memory(Train(randaugment="rand-x1"), MEAN, STD)


def test_nothing_depends_on_what_the_pixels_are() -> None:
    """On the meta device there are none, so that whatever would wait for a GPU to tell fails."""
    augment = in_memory(DEIT, MEAN, STD)
    for _ in range(5):
        assert augment(torch.empty(40, 3, 16, 16, device="meta")).shape == (40, 3, 16, 16)


@pytest.mark.gpu
def test_a_gpu_is_never_waited_for_and_sees_what_the_cpu_sees() -> None:
    augment = in_memory(DEIT.model_copy(update={"erasing": 0.0}), MEAN, STD)
    erase = after_decoding(DEIT, MEAN, STD)
    images = torch.rand(128, 3, 32, 32)
    on_gpu = images.cuda()
    erase(augment(on_gpu))
    torch.cuda.synchronize()
    torch.manual_seed(5)
    torch.cuda.set_sync_debug_mode("error")
    try:
        moved = augment(on_gpu)
        erase(moved)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.manual_seed(5)
    difference = (moved.cpu() - augment(images)).abs()
    assert difference.mean() < 2e-3
    assert (difference > 1.5 / 255).double().mean() < 0.02
