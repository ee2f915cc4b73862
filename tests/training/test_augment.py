"""Random crops."""

from __future__ import annotations

import torch

from kattn_cli.training.augment import random_crop


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
