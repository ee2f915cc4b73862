"""Mixup and CutMix, against timm's Mixup."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from timm.data.mixup import Mixup

from kattn_cli.recipe.train import Train
from kattn_cli.training.augment.batches import Mix

BOTH = Train(mixup=0.8, cutmix=1.0, label_smoothing=0.1)


@pytest.mark.parametrize("settings", [BOTH, Train(mixup=0.3, label_smoothing=0.0), Train(cutmix=1.0)])
def test_even_batches_are_timms(settings: Train) -> None:
    theirs = Mixup(settings.mixup, settings.cutmix, label_smoothing=settings.label_smoothing, num_classes=7)
    ours = Mix(settings, 7)
    for seed in range(20):
        images, labels = torch.rand(6, 3, 9, 11), torch.randint(7, (6,))
        np.random.seed(seed)
        mixed, targets = ours(images, labels)
        np.random.seed(seed)
        expected, expected_targets = theirs(images.clone(), labels)
        assert torch.equal(mixed, expected)
        assert torch.equal(targets, expected_targets)
        assert targets.dtype == torch.float32


def test_both_ways_are_met_at_even_odds() -> None:
    mix, images = Mix(BOTH, 2), torch.tensor([0.0, 1.0])[:, None, None, None].expand(2, 1, 16, 16)
    np.random.seed(0)
    binary = [
        bool(((mixed == 0) | (mixed == 1)).all())
        for mixed, _ in (mix(images, torch.tensor([0, 1])) for _ in range(600))
    ]
    assert sum(binary) / 600 == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_targets_are_shares_of_what_is_in_the_image(count: int) -> None:
    """Image i is all 1 in channel i, so that its channels' means are the shares of each image in it."""
    images = torch.eye(count)[:, :, None, None].expand(count, count, 8, 8)
    before = images.clone()
    mix = Mix(Train(mixup=0.8, cutmix=1.0, label_smoothing=0.0), count)
    smooth = Mix(Train(mixup=0.8, cutmix=1.0, label_smoothing=0.2), count)
    for seed in range(20):
        np.random.seed(seed)
        mixed, targets = mix(images, torch.arange(count))
        assert mixed.shape == images.shape
        assert targets.shape == (count, count)
        torch.testing.assert_close(targets, mixed.mean((2, 3)), atol=1e-6, rtol=0)
        torch.testing.assert_close(targets.sum(1), torch.ones(count))
        np.random.seed(seed)
        again, softer = smooth(images, torch.arange(count))
        assert torch.equal(again, mixed)
        torch.testing.assert_close(softer, targets * 0.8 + 0.2 / count)
        assert mixed.min() >= 0
        assert mixed.max() <= 1 + 1e-6
    assert torch.equal(images, before)
    assert torch.equal(mixed[-1], images[-1]) == (count % 2 == 1)


def test_seeds_decide() -> None:
    mix, images, labels = Mix(BOTH, 4), torch.rand(5, 1, 8, 8), torch.arange(5) % 4
    results = []
    for seed in (1, 1, 2):
        np.random.seed(seed)
        results.append(mix(images, labels))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert not torch.equal(results[0][0], results[2][0])


def test_targets_are_where_the_images_are() -> None:
    for count in (1, 4, 5):
        images, labels = torch.rand(count, 1, 4, 4, device="meta"), torch.zeros(count, dtype=torch.int64, device="meta")
        mixed, targets = Mix(BOTH, 3)(images, labels)
        assert (mixed.device.type, targets.device.type) == ("meta", "meta")
