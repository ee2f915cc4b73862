"""Segment means against the definition, token by token."""

from __future__ import annotations

import pytest
import torch
from against_naive import compare, draw
from torch import Tensor

from kattn_cli.kernels.landmarks import each_token_a_landmark, segment_means, segment_means_naive, segment_sizes


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [1, 7, 63])
@pytest.mark.parametrize("count", [1, 5, 8, 64])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(n: int, count: int, masked: bool) -> None:
    """The second sample has padding anywhere, the third is all padding."""
    there = torch.rand(3, n) < torch.tensor([[1.0], [0.6], [0.0]]) if masked else None
    compare(
        lambda z, mask: segment_means(z, there, count),
        lambda z, mask: segment_means_naive(z, there, count),
        draw(3, 2, n, 4),
        mask=None,
    )


def test_segments_that_divide_are_the_papers() -> None:
    z = draw(2, 3, 63, 4)
    close(segment_means(z, None, 9), z.unflatten(2, (9, 7)).mean(3))


def test_no_more_tokens_than_landmarks_are_the_landmarks() -> None:
    z = draw(1, 2, 9, 4)
    mask = torch.tensor([[False, True, True, False, True, False, False, True, False]])
    sizes = segment_sizes(z, mask, 7)
    assert sizes.sum() == 4
    close(segment_means(z, mask, 7)[:, :, sizes[0] > 0], z[:, :, mask[0]])
    assert each_token_a_landmark(mask, 4).all()
    assert not each_token_a_landmark(mask, 3).any()


def test_means_of_bfloat16_are_taken_in_float32() -> None:
    z = torch.ones(1, 1, 1000, 1, dtype=torch.bfloat16)
    means = segment_means(z, None, 2)
    assert means.dtype == torch.float32
    assert (means == 1).all()
