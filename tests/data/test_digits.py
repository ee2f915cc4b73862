"""The split of the digits, as written down."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits

from kattn_cli.data import load_data
from kattn_cli.data.digits import load


def test_split_is_the_rule_that_is_written_down() -> None:
    bunch = load_digits()
    seen = dict.fromkeys(range(10), 0)
    expected: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
    for index, label in enumerate(bunch.target.tolist()):
        turn = seen[label] % 10
        seen[label] += 1
        expected["validation" if turn == 0 else "test" if turn in (4, 9) else "train"].append(index)
    for name, split in load().items():
        images = torch.tensor(bunch.images[expected[name]] / 16, dtype=torch.float32)[:, None]
        assert torch.equal(split.images, images)
        assert split.labels.tolist() == bunch.target[expected[name]].tolist()
    assert {name: len(split) for name, split in load().items()} == {"train": 1257, "validation": 185, "test": 355}


def test_every_class_is_in_every_split_alike() -> None:
    for split in load().values():
        counts = torch.bincount(split.labels, minlength=10)
        assert counts.max() - counts.min() <= counts.max() * 0.1 + 1


def test_pixels_and_statistics() -> None:
    data = load_data("digits")
    pixels = data.splits["train"].images
    assert (pixels.min(), pixels.max()) == (0, 1)
    assert abs(data.mean[0] - pixels.mean().item()) < 1e-6
    assert abs(data.std[0] - pixels.std().item()) < 1e-6


def test_resizing() -> None:
    data = load_data("digits", 16)
    assert data.splits["test"].images.shape == (355, 1, 16, 16)
    assert data.splits["test"].images.min() >= 0
    assert data.splits["test"].images.max() <= 1
