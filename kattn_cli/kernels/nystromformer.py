"""Nyström attention: softmax attention seen through a few landmarks.

Source: Xiong et al. 2021, "Nyströmformer", eq. 13–17 and Algorithm 1.
B: batch, H: heads, N: tokens, m: landmarks, d: head width.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from kattn_cli.kernels.landmarks import each_token_a_landmark, segment_means, segment_means_naive, segment_sizes
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import without_autocast
from kattn_cli.kernels.softmax import softmax_attention, softmax_matrix

Convention = Literal["paper", "reference"]


def pseudo_inverse(a: Tensor, iterations: int, over_batch: bool = False) -> Tensor:
    """Return the iteration of eq. 14 towards the Moore–Penrose inverse of softmax matrices ``(B, H, m, m)``.

    It starts from ``Aᵀ / (‖A‖₁ ‖A‖∞)``, the norms each matrix's own or, ``over_batch``, the largest of all.
    """
    norm = a.sum(-2).amax(-1)  # ‖A‖₁; ‖A‖∞ is 1, since rows are distributions
    if over_batch and norm.numel():
        # As the authors' program does: one sample then changes another's output.
        norm = norm.max()
    identity = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    z = a.mT / norm[..., None, None]
    for _ in range(iterations):
        az = a @ z
        z = z @ (13 * identity - az @ (15 * identity - az @ (7 * identity - az))) / 4  # eq. 14
    return z


def nystrom_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    landmarks: int,
    iterations: int,
    mask: Tensor | None = None,
    convention: Convention = "paper",
) -> Tensor:
    """Return ``softmax(q k̃ᵀ/√d) softmax(q̃ k̃ᵀ/√d)⁺ softmax(q̃ kᵀ/√d) v``, ``(B, H, N, d)``, from the right.

    A sample with no more tokens than landmarks gets softmax attention. ``reference`` counts padding in the
    landmarks, as zeros, and begins the inverse from a norm over the whole batch.
    """
    if q.shape[-2] <= landmarks:
        return softmax_attention(q, k, v, mask=mask)
    pooled = mask
    if convention == "reference":
        q, k, pooled = without_padding(q, mask), without_padding(k, mask), None
    q_landmarks, k_landmarks = segment_means(q, pooled, landmarks), segment_means(k, pooled, landmarks)
    with without_autocast(q.device):
        # An iterated inverse in half precision would amplify its rounding errors.
        inverse = pseudo_inverse(softmax_matrix(q_landmarks, k_landmarks), iterations, convention == "reference")
        gathered = softmax_attention(q_landmarks.to(q.dtype), k, v, mask=mask)
        values = inverse @ gathered.to(inverse.dtype)
    filled = None
    if pooled is not None:
        # Landmarks that are the tokens themselves need no inverse: their values are the tokens' values.
        values = torch.where(each_token_a_landmark(pooled, landmarks), segment_means(v, pooled, landmarks), values)
        filled = segment_sizes(q, pooled, landmarks) > 0
    return softmax_attention(q, k_landmarks.to(q.dtype), values.to(v.dtype), mask=filled)


def nystrom_attention_naive(q: Tensor, k: Tensor, v: Tensor, *, landmarks: int, mask: Tensor | None = None) -> Tensor:
    """Return the equation with the inverse itself, sample by sample; zeros at the padding. Forms the N × N matrix."""
    out = torch.zeros_like(v)
    for b in range(len(q)):
        there = slice(None) if mask is None else mask[b]
        queries, keys, values = q[b : b + 1, :, there], k[b : b + 1, :, there], v[b : b + 1, :, there]
        matrix = softmax_matrix(queries, keys)
        if queries.shape[-2] > landmarks:
            q_m, k_m = segment_means_naive(queries, None, landmarks), segment_means_naive(keys, None, landmarks)
            inverse = torch.linalg.pinv(softmax_matrix(q_m, k_m))
            matrix = softmax_matrix(queries, k_m) @ inverse @ softmax_matrix(q_m, keys)  # eq. 13
        out[b][:, there] = (matrix @ values)[0]
    return out
