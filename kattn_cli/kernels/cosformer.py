"""cosFormer: positive features, re-weighted by the cosine of the distance between tokens.

Source: Qin et al. 2022, "cosFormer: Rethinking Softmax in Attention", its re-weighting mechanism.
B: batch, H: heads, N: tokens, d: head width; M, at least N, is the distance at which the weight falls to zero.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.kernels.entry import check_mask
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact_dtype


def cosformer_angles(z: Tensor, longest: int, mask: Tensor | None = None, start: int = 0) -> Tensor:
    """Return ``π/2 · i/M``, ``(B or 1, 1, N, 1)``, for each token's rank i among the tokens, counted from ``start``."""
    check_mask("cosFormer", mask, z)
    there = torch.ones(1, z.shape[-2], dtype=torch.bool, device=z.device) if mask is None else mask
    return (start + there.cumsum(-1) - 1)[:, None, :, None].to(exact_dtype(z)) * (math.pi / 2 / longest)


def cosformer_features(z: Tensor, angles: Tensor) -> Tensor:
    """Return ``[relu(z) cos, relu(z) sin]``, whose products weigh those of relu(z) by the cosine of the difference."""
    positive = F.relu(z.to(angles.dtype))
    return torch.cat((positive * angles.cos(), positive * angles.sin()), -1)


def cosformer_naive(
    q: Tensor, k: Tensor, v: Tensor, longest: int, mask: Tensor | None = None, causal: bool = False
) -> Tensor:
    """Return the equations as printed; forms the N × N matrix."""
    n = q.shape[-2]
    rank = torch.arange(n, device=q.device)[None] if mask is None else mask.cumsum(-1)
    distance = (rank[:, None, :, None] - rank[:, None, None, :]).to(q.dtype)
    scores = F.relu(q) @ without_padding(F.relu(k), mask).mT * (math.pi / 2 * distance / longest).cos()
    if causal:
        scores = scores.tril()
    total = scores.sum(-1, keepdim=True)
    # relu may leave a query no score above 0: its row stays 0.
    return scores / torch.where(total > 0, total, 1) @ v
