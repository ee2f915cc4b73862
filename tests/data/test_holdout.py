"""The rule by which images are held out for validation."""

from __future__ import annotations

import torch

from kattn_cli.data.holdout import hold_out


def test_the_images_in_the_middle_of_equal_parts_of_each_class() -> None:
    labels = torch.tensor([0, 1] * 10)
    kept, held_out = hold_out(labels, 0.2)
    assert held_out.tolist() == [4, 5, 14, 15]
    assert kept.tolist() == [index for index in range(20) if index not in (4, 5, 14, 15)]


def test_concrete_indices_that_must_never_change() -> None:
    labels = torch.arange(1000) * 7919 % 13 % 5
    kept, held_out = hold_out(labels, 0.1)
    assert held_out[:8].tolist() == [22, 23, 25, 34, 37, 65, 66, 68]
    assert int(held_out.sum()) == 49506
    assert sorted(kept.tolist() + held_out.tolist()) == list(range(1000))


def test_as_many_of_each_class_as_the_share_says() -> None:
    labels = torch.cat([torch.full((count,), label) for label, count in enumerate((1000, 105, 14, 3, 2, 1))])
    shuffled = labels[torch.randperm(len(labels))]
    _, held_out = hold_out(shuffled, 0.1)
    assert shuffled[held_out].bincount(minlength=6).tolist() == [100, 11, 1, 1, 1, 0]


def test_something_is_left_to_train_on() -> None:
    kept, held_out = hold_out(torch.tensor([0, 0, 1, 1, 1]), 0.99)
    assert (len(kept), len(held_out)) == (2, 3)
