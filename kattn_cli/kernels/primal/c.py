"""Primal scores and their gradient on a CPU: torch's matrix products, and between them a pass in C.

Tokens go through all of it a block at a time, while they are in a cache; nothing of the size of the queries is made
but the gradients. B: batch, H: heads, N: tokens, d: head width, s: directions.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from kattn_cli.kernels.precision import exact, exact_dtype, without_autocast
from kattn_cli.kernels.threads import Part, Strided, call, shares

BLOCK = 2**19
"""Entries of q in a block."""


def forward(q: Tensor, k: Tensor, weight: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return what :func:`kattn_cli.kernels.primal.operator.primal_operator` does, computed in C."""
    samples, heads, tokens, _ = q.shape
    s, real = weight.shape[-1] // 2, exact_dtype(q)
    scores = torch.empty(samples, tokens, heads, 2 * s, dtype=real).transpose(1, 2)
    norms = torch.empty(2, samples, heads, tokens, dtype=real)
    # In float64, since one number sums the squares of all tokens, block by block.
    energy = torch.zeros(samples, heads, 2 * s, dtype=torch.float64)
    weights = weight.to(real)
    with without_autocast(q.device):
        for b, block in _blocks(q):
            for side, z in enumerate((q, k)):
                its, vectors = slice(side * s, (side + 1) * s), _vectors(z, b, block)
                product = torch.bmm(vectors, weights[b % len(weights)][..., its])
                found = scores[b, :, block, its]
                there = None if mask is None else Strided(mask[b, block])
                written = Strided(found), Strided(norms[side, b, :, block]), Strided(energy[b, :, its])
                call("primal_finish", real, _parts(vectors, found, tokens), Strided(vectors), product, there, *written)
    return scores.to(q.dtype), energy.to(real), norms


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
    """Return what :func:`kattn_cli.kernels.primal.operator.primal_operator_backward` does, computed in C."""
    samples, heads, tokens, width = q.shape
    s, real = weight.shape[-1] // 2, exact_dtype(q)
    grad, scores, norms, weights = _tokens_first(grad), _tokens_first(scores), norms.contiguous(), weight.to(real)
    by_energy = None if grad_energy is None else exact(grad_energy).contiguous()
    by_inputs = [torch.empty(samples, tokens, heads, width, dtype=real).transpose(1, 2) for _ in range(2)]
    by_weight = torch.zeros(2, *weight.shape[:-1], s, dtype=real)
    with without_autocast(q.device):
        for b, block in _blocks(q):
            for side, z in enumerate((q, k)):
                its, vectors = slice(side * s, (side + 1) * s), _vectors(z, b, block)
                found, by_score = scores[b, :, block, its], grad[b, :, block, its]
                parts = _parts(vectors, found, tokens)
                slope = None if by_energy is None else Strided(by_energy[b, :, its])
                there = None if mask is None else Strided(mask[b, block])
                by_product = torch.empty(heads, vectors.shape[1], s, dtype=real)
                radial = torch.empty(heads, vectors.shape[1], dtype=real)
                known = Strided(by_score), slope, there, Strided(found), Strided(norms[side, b, :, block])
                call("primal_start", real, parts, *known, by_product, radial)
                by_vectors = torch.bmm(by_product, weights[b % len(weights)][..., its].mT)
                by_z = by_inputs[side][b, :, block]
                strides = by_z.stride(0), by_z.stride(1)
                call("primal_combine", real, parts, Strided(vectors), by_vectors, radial, Strided(by_z), *strides)
                # Weights that all samples share (B = 1 there) gather the gradients of every sample.
                by_weight[side, b % len(weights)].baddbmm_(vectors.mT, by_product)
    by_q, by_k = (z.to(q.dtype) for z in by_inputs)
    return by_q, by_k, torch.cat((by_weight[0], by_weight[1]), -1).to(weight.dtype)


def _blocks(q: Tensor) -> Iterator[tuple[int, slice]]:
    samples, heads, n, d = q.shape
    tokens = max(1, BLOCK // max(1, heads * d))
    for b in range(samples):
        for first in range(0, n, tokens):
            yield b, slice(first, first + tokens)


def _vectors(z: Tensor, b: int, block: slice) -> Tensor:
    """Return ``(H, T, d)`` in float32 or better, each vector contiguous."""
    vectors = exact(z[b, :, block])
    return vectors if vectors.stride(-1) == 1 else vectors.contiguous()


def _tokens_first(z: Tensor) -> Tensor:
    """Return ``z`` as ``(B, N, H, ...)`` in memory, in float32 or better."""
    return exact(z).transpose(1, 2).contiguous().transpose(1, 2)


def _parts(vectors: Tensor, scores: Tensor, tokens: int) -> list[Part]:
    """Return the heads for each thread; ``tokens``: of the whole, by which norms of heads are apart."""
    heads, count, width = vectors.shape
    strides = (*vectors.stride()[:2], *scores.stride()[:2], tokens)
    return [(first, end, count, width, scores.shape[-1], *strides) for first, end in shares(heads)]
