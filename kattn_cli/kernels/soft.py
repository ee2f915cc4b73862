"""SOFT: attention with a Gaussian kernel, no softmax, and its Nyström form.

Source: Lu et al. 2021, "SOFT: Softmax-free Transformer with Linear Complexity", Algorithms 1 and 2.
Our deviations: landmarks are segment means, a sequence having no grid for the paper to pool over; and Newton's
iteration starts from ``A / ‖A‖₁²``, where the authors start from up to twice that: at twice, the inverse of equal
landmarks (of a single one, say) would be 0.
B: batch, H: heads, N: tokens, m: landmarks, d: head width. The queries are the keys.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kattn_cli.kernels.landmarks import each_token_a_landmark, segment_means, segment_means_naive
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact, without_autocast


def gaussian_kernel(q: Tensor, k: Tensor) -> Tensor:
    """Return ``exp(−‖q_i − k_j‖² / 2√d)``, ``(B, H, N, M)``, for ``(B, H, N, d)`` and ``(B, H, M, d)``.

    A shift of both changes nothing but rounding, of which there is least about their middle.
    """
    middle = k.detach().mean(-2, keepdim=True)
    q, k = q - middle, k - middle
    norms = q.square().sum(-1)[..., :, None] + k.square().sum(-1)[..., None, :]
    # Rounding can leave a squared distance below 0, and the kernel above 1.
    return (-(norms - 2 * q @ k.mT).clamp(min=0) / (2 * math.sqrt(q.shape[-1]))).exp()


def newton_inverse(a: Tensor, iterations: int) -> Tensor:
    """Return the Moore–Penrose inverse of positive semi-definite ``(…, m, m)`` by Newton's method (Algorithm 2).

    The last step alone is differentiated. Its gradient, ``−Yᵀ G Yᵀ``, is the inverse's own, which the
    authors' program takes in place of the whole iteration's.
    """
    with torch.no_grad():
        # σ₁ ≤ ‖A‖₁ for symmetric A, so that this start is one from which Newton's method converges.
        y = a / a.sum(-2).amax(-1).square()[..., None, None]
        for _ in range(iterations - 1):
            y = 2 * y - y @ a @ y
    return 2 * y - y @ a @ y


def soft_attention(q: Tensor, v: Tensor, *, landmarks: int, iterations: int, mask: Tensor | None = None) -> Tensor:
    """Return ``Pᵀ A⁺ P v``, from the right, with ``A`` the kernel of the landmarks and ``P`` of landmarks and tokens.

    ``(B, H, N, d)`` throughout, in float32 or better. A sample with no more tokens than landmarks gets the kernel
    of its tokens, of which this is the approximation.
    """
    with without_autocast(q.device):
        # Each of Newton's steps doubles rounding errors: half precision would not survive them.
        tokens, values = exact(without_padding(q, mask)), exact(without_padding(v, mask))
        if q.shape[-2] <= landmarks:
            return (gaussian_kernel(tokens, tokens) @ values).to(v.dtype)
        pooled = segment_means(tokens, mask, landmarks)
        p = gaussian_kernel(pooled, tokens)
        pooled_values = newton_inverse(gaussian_kernel(pooled, pooled), iterations) @ (p @ values)
        if mask is not None:
            own = segment_means(values, mask, landmarks)
            pooled_values = torch.where(each_token_a_landmark(mask, landmarks), own, pooled_values)
        return (p.mT @ pooled_values).to(v.dtype)


def soft_attention_naive(q: Tensor, v: Tensor, *, landmarks: int, mask: Tensor | None = None) -> Tensor:
    """Return the equations with distances written out and the inverse itself; zeros at the padding. Forms N × N."""
    out = torch.zeros_like(v)
    for b in range(len(q)):
        there = slice(None) if mask is None else mask[b]
        tokens, values = q[b : b + 1, :, there], v[b : b + 1, :, there]
        matrix = _gaussian_kernel_naive(tokens, tokens)
        if tokens.shape[-2] > landmarks:
            pooled = segment_means_naive(tokens, None, landmarks)
            inverse = torch.linalg.pinv(_gaussian_kernel_naive(pooled, pooled), hermitian=True)
            matrix = _gaussian_kernel_naive(tokens, pooled) @ inverse @ _gaussian_kernel_naive(pooled, tokens)
        out[b][:, there] = (matrix @ values)[0]
    return out


def _gaussian_kernel_naive(q: Tensor, k: Tensor) -> Tensor:
    differences = q[..., :, None, :] - k[..., None, :, :]
    return (-differences.square().sum(-1) / (2 * math.sqrt(q.shape[-1]))).exp()
