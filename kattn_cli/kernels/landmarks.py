"""Landmarks: the means of consecutive segments of a sequence, as many as one likes.

Source: Nyströmformer (Xiong et al. 2021), "segment-means" (eq. 16). The paper's segments are equal, N/m tokens
each; here m need not divide N, and padding belongs to no segment: of a sample's n tokens the i-th (from 0) is in
segment ⌊i·m/n⌋. With n ≤ m every token is a landmark of its own, and the other landmarks are empty.
B: batch, H: heads, N: tokens, m: landmarks, d: head width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.kernels.entry import check_mask
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact


def segment_means(z: Tensor, mask: Tensor | None, count: int) -> Tensor:
    """Return the landmarks ``(B, H, count, d)`` of ``(B, H, N, d)``, zero where empty; in float32 or better."""
    z = exact(without_padding(z, mask))
    segment = _segments(z, mask, count)[:, None, :, None].expand_as(z)
    sums = z.new_zeros(*z.shape[:2], count, z.shape[-1]).scatter_add(-2, segment, z)
    # Empty segments have a sum of 0, and keep it.
    return sums / segment_sizes(z, mask, count).clamp(min=1)[:, None, :, None]


def segment_sizes(z: Tensor, mask: Tensor | None, count: int) -> Tensor:
    """Return how many tokens each segment of the sequences ``z`` has, ``(B or 1, count)``."""
    there = _tokens(z, mask).long()
    return there.new_zeros(there.shape[0], count).scatter_add(-1, _segments(z, mask, count), there)


def segment_means_naive(z: Tensor, mask: Tensor | None, count: int) -> Tensor:
    """Return the landmarks of :func:`segment_means`, token by token."""
    samples = []
    for sample, there in zip(z, _tokens(z, mask).expand(len(z), -1), strict=True):
        tokens = sample[:, there]
        n = tokens.shape[1]
        members = [[i for i in range(n) if i * count // n == segment] for segment in range(count)]
        means = [tokens[:, of].mean(1) if of else torch.zeros_like(sample[:, 0]) for of in members]
        samples.append(torch.stack(means, 1))
    return torch.stack(samples)


def each_token_a_landmark(mask: Tensor, count: int) -> Tensor:
    """Return which samples have no more tokens than landmarks, ``(B, 1, 1, 1)``."""
    return (mask.sum(-1) <= count)[:, None, None, None]


def _tokens(z: Tensor, mask: Tensor | None) -> Tensor:
    check_mask("landmarks", mask, z)
    return torch.ones(1, z.shape[-2], dtype=torch.bool, device=z.device) if mask is None else mask


def _segments(z: Tensor, mask: Tensor | None, count: int) -> Tensor:
    """Return the segment of each token, ``(B or 1, N)``; at the padding any valid one."""
    there = _tokens(z, mask)
    # Padding before the first token would have the rank −1, which is no place to scatter to.
    rank = (there.cumsum(-1) - 1).clamp(min=0)
    return rank * count // there.sum(-1, keepdim=True).clamp(min=1)
