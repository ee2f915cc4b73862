"""Random boxes and random erasing, against timm's RandomErasing."""

from __future__ import annotations

import random

import pytest
import torch
from timm.data.random_erasing import RandomErasing

from kattn_cli.training.augment.erasing import random_boxes, random_erasing

AREA, RATIO = (0.02, 1 / 3), (0.3, 1 / 0.3)
MEAN, STD = (0.2, 0.5, 0.7), (0.1, 0.2, 0.3)


def test_boxes_lie_inside_and_keep_to_their_ranges() -> None:
    boxes = random_boxes(5000, 60, 80, (0.1, 0.35), (0.5, 2.0))
    top, left, height, width = boxes.unbind(1)
    assert boxes.dtype == torch.int64
    assert boxes.min() >= 0
    assert (top + height).max() == 60
    assert (left + width).max() == 80
    share = height * width / 4800
    assert share.min() == pytest.approx(0.1, abs=0.01)
    assert share.max() == pytest.approx(0.35, abs=0.01)
    assert share.mean() == pytest.approx(0.225, abs=0.005)
    ratio = width / height
    assert ratio.min() == pytest.approx(0.5, abs=0.06)
    assert ratio.max() == pytest.approx(2.0, abs=0.15)
    assert ratio.log().mean() == pytest.approx(0, abs=0.02)


def test_boxes_are_anywhere() -> None:
    top, left, height, width = random_boxes(5000, 40, 40, (0.1, 0.1), (1.0, 1.0)).unbind(1)
    assert (height == 13).all()
    assert (width == 13).all()
    for corner in (top, left):
        assert corner.unique().tolist() == list(range(28))
        assert torch.bincount(corner).min() > 100


def test_a_box_that_cannot_fit_is_empty() -> None:
    assert not random_boxes(50, 2, 2000, (0.9, 1.0), (0.5, 2.0)).any()
    assert (random_boxes(50, 4, 4, (1.0, 1.0), (1.0, 1.0)) == torch.tensor([0, 0, 4, 4])).all()
    assert not random_boxes(50, 4, 4, (1.0, 1.0), (1.0, 1.0), margin=1).any()


def test_erased_share_and_sizes_are_timms() -> None:
    count, size = 4000, 24
    images = torch.full((count, 1, size, size), 9.0)
    ours = random_erasing(images, 0.25, (0.0,), (1.0,))
    random.seed(1)
    theirs = RandomErasing(0.25, mode="pixel", max_count=1, device="cpu")(images.clone())
    shares = [(each != 9).flatten(1).double().mean(1) for each in (ours, theirs)]
    for share in shares:
        assert (share > 0).double().mean() == pytest.approx(0.25, abs=0.02)
    erased = [share[share > 0] for share in shares]
    assert erased[0].mean() == pytest.approx(erased[1].mean().item(), abs=0.01)
    assert erased[0].std() == pytest.approx(erased[1].std().item(), abs=0.01)
    assert erased[0].max() < 0.36
    assert erased[0].min() < 0.03
    spread = []
    for each in (ours, theirs):
        box = (each != 9)[:, 0]
        rows, columns = box.any(2).sum(1), box.any(1).sum(1)
        spread.append((rows[rows > 0] / columns[rows > 0]).log().std().item())
    assert spread[0] == pytest.approx(spread[1], abs=0.05)


def test_a_box_is_smaller_than_the_image_each_way() -> None:
    erased = (random_erasing(torch.full((500, 1, 4, 30), 9.0), 1.0, (0.0,), (1.0,)) != 9)[:, 0]
    assert erased.any(2).sum(1).max() == 3


def test_noise_is_normal_after_normalisation() -> None:
    images = torch.full((600, 3, 12, 12), -50.0)
    erased = random_erasing(images, 1.0, MEAN, STD)
    normalised = (erased - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    for channel in range(3):
        noise = normalised[:, channel][erased[:, channel] != -50]
        assert noise.mean() == pytest.approx(0, abs=0.03)
        assert noise.std() == pytest.approx(1, abs=0.03)
    one_box = (erased != -50).all(1)
    assert torch.equal(one_box, (erased != -50).any(1))
    rows, columns = one_box.any(2).sum(1), one_box.any(1).sum(1)
    assert torch.equal(rows * columns, one_box.flatten(1).sum(1))


def test_what_is_given_stays_and_seeds_decide() -> None:
    images = torch.rand(20, 3, 9, 7)
    before = images.clone()
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(random_erasing(images, 0.5, MEAN, STD))
    assert torch.equal(images, before)
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert results[0].dtype == torch.float32
    assert torch.equal(random_erasing(images, 0.0, MEAN, STD), images)
