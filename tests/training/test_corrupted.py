"""Corrupted splits: the same numbers whenever and in whatever order they are asked for."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.data import MemorySplit
from kattn_cli.data.corruptions import corrupt
from kattn_cli.training.corrupted import CORRUPTED_BATCH, CorruptedSplit, Making
from kattn_cli.training.seed import Stream, derived_seed

SPLIT = MemorySplit(torch.rand(150, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(150) % 10)


def pixels(name: str, severity: int, seed: int = 0, split: MemorySplit = SPLIT) -> torch.Tensor:
    batches = CorruptedSplit(split, name, severity, Making("cifar-c", seed)).batches()
    return torch.cat([images for images, _ in batches])


def test_labels_and_order_stay() -> None:
    sizes = [len(labels) for _, labels in CorruptedSplit(SPLIT, "fog", 1, Making("cifar-c")).batches()]
    assert sizes == [CORRUPTED_BATCH, 150 - CORRUPTED_BATCH]
    labels = torch.cat([labels for _, labels in CorruptedSplit(SPLIT, "fog", 1, Making("cifar-c")).batches()])
    assert torch.equal(labels, SPLIT.labels)


def test_draws_are_a_function_of_seed_type_severity_and_batch() -> None:
    """Shot noise is type 1: its severity 3 is place 5 · 1 + 2, and the second batch counts on from there."""
    second = SPLIT.images[CORRUPTED_BATCH:]
    draws = torch.Generator().manual_seed(derived_seed(7, Stream.CORRUPTION, (7 << 32) + 1))
    expected = corrupt(second, "shot_noise", 3, draws, "cifar-c")
    assert torch.equal(pixels("shot_noise", 3, seed=7)[CORRUPTED_BATCH:], expected)


def test_nothing_depends_on_what_was_drawn_before() -> None:
    once = pixels("gaussian_noise", 2)
    torch.rand(5)
    pixels("snow", 1)
    assert torch.equal(pixels("gaussian_noise", 2), once)


@pytest.mark.parametrize("name", ["gaussian_noise", "glass_blur", "fog"])
def test_another_seed_gives_others(name: str) -> None:
    assert not torch.equal(pixels(name, 3, seed=0), pixels(name, 3, seed=1))


def test_equal_images_in_two_batches_are_corrupted_differently() -> None:
    same = MemorySplit(SPLIT.images[:1].expand(2 * CORRUPTED_BATCH, -1, -1, -1), torch.zeros(2 * CORRUPTED_BATCH))
    first, second = pixels("impulse_noise", 5, split=same).split(CORRUPTED_BATCH)
    assert not torch.equal(first, second)
