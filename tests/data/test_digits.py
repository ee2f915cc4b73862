"""The split of the digits, as written down."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits

from kattn_cli.data import ImageData, MemorySplit
from kattn_cli.recipe.data import ImageSection
from kattn_cli.tasks import load_data


def memory(data: ImageData) -> dict[str, MemorySplit]:
    """The splits, which are in memory."""
    return {name: split for name, split in data.splits.items() if isinstance(split, MemorySplit)}


def test_split_is_the_rule_that_is_written_down() -> None:
    bunch = load_digits()
    seen = dict.fromkeys(range(10), 0)
    expected: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
    for index, label in enumerate(bunch.target.tolist()):
        turn = seen[label] % 10
        seen[label] += 1
        expected["validation" if turn == 0 else "test" if turn in (4, 9) else "train"].append(index)
    splits = memory(load_data(ImageSection()))
    for name, split in splits.items():
        images = torch.tensor(bunch.images[expected[name]] / 16, dtype=torch.float32)[:, None]
        assert torch.equal(split.images, images)
        assert split.labels.tolist() == bunch.target[expected[name]].tolist()
    assert {name: len(split) for name, split in splits.items()} == {"train": 1257, "validation": 185, "test": 355}


def test_every_class_is_in_every_split_alike() -> None:
    for split in memory(load_data(ImageSection())).values():
        counts = torch.bincount(split.labels, minlength=10)
        assert counts.max() - counts.min() <= counts.max() * 0.1 + 1


def test_pixels_and_statistics() -> None:
    data = load_data(ImageSection())
    pixels = memory(data)["train"].images
    assert (pixels.min(), pixels.max()) == (0, 1)
    assert data.mean == tuple(pixels.double().mean((0, 2, 3)).tolist()) == (0.30511013325377884,)
    assert data.std == tuple(pixels.double().std((0, 2, 3)).tolist())
    assert abs(data.std[0] - 0.37622082365073795) < 1e-15


def test_resizing() -> None:
    test = memory(load_data(ImageSection(image_size=16)))["test"]
    assert test.images.shape == (355, 1, 16, 16)
    assert test.images.min() >= 0
    assert test.images.max() <= 1
