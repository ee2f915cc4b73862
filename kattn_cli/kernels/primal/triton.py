"""Scores of Primal-Attention with the cosine feature map, and their gradient, in Triton: a launch a side each way.

B: batch, H: heads, N: tokens, d: head width, s: directions. A program takes some tokens of one sample and head; with
e bytes an entry, forward reads d e and writes s e for each token of a head and a side, backward reads (d + 2 s) e and
writes d e. Sums over tokens are written by program, then added: the same input gives the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from kattn_cli.kernels.precision import exact_dtype
from kattn_cli.kernels.primal import NORM_EPSILON
from kattn_cli.kernels.primal import triton_kernels as kernels
from kattn_cli.kernels.triton_sums import FUSED, as_bytes, multiprocessors, on_device_of

PROGRAMS = 4
"""That go backward on each multiprocessor, so that loads of some hide the products of others."""


def forward(q: Tensor, k: Tensor, weight: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return what :func:`kattn_cli.kernels.primal.operator.primal_operator` does, if it fits (``pays`` there)."""
    samples, heads, tokens, _ = q.shape
    columns = weight.shape[-1]
    blocks = triton.cdiv(tokens, _rows(q, weight))
    scores = q.new_empty(samples, tokens, heads, columns)
    norms = q.new_empty(2, samples, heads, tokens, dtype=exact_dtype(q))
    sums = norms.new_empty(samples, heads, blocks, columns)
    weight, there = weight.contiguous(), as_bytes(mask, q)
    with on_device_of(q):
        for side, z in enumerate(_last_contiguous(q, k)):
            kernels.forward[(samples * heads * blocks,)](
                *(z, weight, there, scores, norms[side], sums, heads, tokens),
                *(z.stride(0), z.stride(1), z.stride(2)),
                **_constants(q, weight, mask, side),
            )
    return scores.transpose(1, 2), sums.sum(2), norms


def backward(
    grad: Tensor,
    grad_energy: Tensor | None,
    q: Tensor,
    k: Tensor,
    weight: Tensor,
    mask: Tensor | None,
    scores: Tensor,
    norms: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what :func:`kattn_cli.kernels.primal.operator.primal_operator_backward` does."""
    samples, heads, tokens, width = q.shape
    rows = _rows(q, weight)
    blocks = triton.cdiv(tokens, rows)
    parts = min(blocks, triton.cdiv(multiprocessors(q.device) * PROGRAMS, samples * heads))
    span = triton.cdiv(blocks, parts) * rows
    parts = triton.cdiv(tokens, span)
    by_weight = norms.new_empty(samples, heads, parts, width, weight.shape[-1])
    grad, scores = (z.transpose(1, 2).contiguous() for z in (grad, scores))
    by_energy = norms if grad_energy is None else grad_energy.contiguous()
    weight, there = weight.contiguous(), as_bytes(mask, q)
    by_sides = []
    with on_device_of(q):
        for side, z in enumerate(_last_contiguous(q, k)):
            by_z = z.new_empty(samples, tokens, heads, width)
            kernels.backward[(samples * heads * parts,)](
                *(z, weight, there, scores, norms[side], grad, by_energy, by_z, by_weight, heads, tokens, span),
                *(z.stride(0), z.stride(1), z.stride(2)),
                WITH_ENERGY=grad_energy is not None,
                **_constants(q, weight, mask, side),
            )
            by_sides.append(by_z.transpose(1, 2))
    summed = by_weight.sum(2) if weight.shape[0] > 1 or samples == 1 else by_weight.sum((0, 2))[None]
    return by_sides[0], by_sides[1], summed.to(weight.dtype)


def _last_contiguous(*sides: Tensor) -> list[Tensor]:
    return [z if z.stride(3) == 1 else z.contiguous() for z in sides]


def _constants(q: Tensor, weight: Tensor, mask: Tensor | None, side: int) -> dict[str, Any]:
    width, s = q.shape[3], weight.shape[3] // 2
    return {
        "WIDTH": width,
        "S": s,
        "SIDE": side,
        "SHARED": weight.shape[0] == 1,
        "MASKED": mask is not None,
        "HALF": q.is_cuda and q.dtype == weight.dtype == torch.bfloat16,  # Triton's interpreter has no such products
        "EPSILON": NORM_EPSILON,
        "ROWS": _rows(q, weight),
        "FEATURES": max(16, triton.next_power_of_2(width)),  # Triton's products need 16 or more
        "DIRECTIONS": max(16, triton.next_power_of_2(s)),
        "num_warps": 4 if width <= 64 and s <= 64 else 8,
        "num_stages": 2,
        **FUSED,
    }


def _rows(q: Tensor, weight: Tensor) -> int:
    """Return the tokens a program holds at once, as shared memory allows for their vectors, scores and gradients."""
    narrow = max(q.shape[3], weight.shape[3] // 2) <= 64
    return 64 if narrow and q.dtype == torch.bfloat16 else 32
