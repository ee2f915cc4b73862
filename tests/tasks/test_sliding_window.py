"""Sliding windows: where they begin, and what becomes of pixels that several see."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kattn_cli.tasks.masks.evaluate import resized_logits, slid, starts


@pytest.mark.parametrize(
    ("length", "window", "stride", "expected"),
    [
        (8, 8, 8, [0]),
        (16, 8, 8, [0, 8]),
        (17, 8, 8, [0, 8, 9]),
        (16, 8, 6, [0, 6, 8]),
        (20, 8, 6, [0, 6, 12]),
        (9, 8, 3, [0, 1]),
    ],
)
def test_windows_end_flush_with_the_border(length: int, window: int, stride: int, expected: list[int]) -> None:
    found = starts(length, window, stride)
    assert found == expected
    assert set().union(*(range(start, start + window) for start in found)) == set(range(length))


def test_a_side_shorter_than_the_window() -> None:
    with pytest.raises(ValueError, match="a side of 7 pixels is shorter than the window of 8"):
        starts(7, 8, 8)


def predict(windows: Tensor) -> Tensor:
    """Two classes: the window's mean in every pixel, and the pixels themselves."""
    mean = windows.mean((1, 2, 3), keepdim=True)
    return torch.cat([mean.expand_as(windows), windows], 1)


def test_one_window_is_the_whole_image() -> None:
    images = list(torch.rand(3, 1, 8, 8))
    for stride in (3, 8):
        logits = slid(predict, images, 8, stride, at_once=2)
        assert torch.equal(torch.stack(logits), predict(torch.stack(images)))


def test_where_windows_overlap_their_mean_counts() -> None:
    """A row of six pixels, windows of four that begin at 0 and at 2: by hand."""
    row = torch.tensor([0.0, 0.0, 4.0, 4.0, 8.0, 8.0])
    image = row.expand(1, 4, 6)
    (logits,) = slid(predict, [image], 4, 3, at_once=8)
    assert logits.shape == (2, 4, 6)
    assert logits[0, 0].tolist() == [2.0, 2.0, 4.0, 4.0, 6.0, 6.0]
    torch.testing.assert_close(logits[1], image[0])


def test_images_of_several_sizes_and_any_number_at_once() -> None:
    images = [torch.rand(1, *size) for size in ((8, 8), (11, 8), (9, 14), (8, 20))]
    alone = [slid(predict, [image], 8, 5, at_once=1)[0] for image in images]
    for at_once in (1, 3, 100):
        together = slid(predict, images, 8, 5, at_once)
        for one, other in zip(alone, together, strict=True):
            torch.testing.assert_close(one, other)
            assert one.shape[-2:] == other.shape[-2:]


def test_logits_of_the_size_asked_for_pass() -> None:
    logits = torch.rand(2, 4, 6)
    assert resized_logits(logits, (4, 6)) is logits
    assert resized_logits(logits, (8, 12)).shape == (2, 8, 12)
