"""Scores of Primal-Attention with the cosine feature map, both sides at once, as the operator ``kattn::primal_scores``.

Source: Primal-Attention, eq. 6 and 11. ``e = Wᵀz / ‖z‖``: a product with the vectors as they are, then a division, so
that no normalised copy of them is made. With the scores come Σ e² of each direction, which the objective is made of.
Backward, for a = ∂e / ‖z‖: ∂z = W a − z ⟨∂e, e⟩ / ‖z‖² and ∂W = Σ z aᵀ.
B: batch, H: heads, N: tokens, d: head width, s: directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from kattn_cli.kernels.choice import SMALL, kernel_for, version
from kattn_cli.kernels.precision import exact, exact_dtype, without_autocast

NORM_EPSILON = 1e-12
BLOCK = 2**18
"""Entries of q that a CPU takes through all operations at once, while they are in its cache."""


WIDEST = 256
"""Bytes of a head's features, or directions, of a token: what fits beside others into a GPU's shared memory."""


def pays(q: Tensor, directions: int) -> bool:
    """Whether this operator, rather than torch's one after the other, should compute on queries ``q``."""
    if q.device.type == "cpu":
        return version() == "fast" and q.numel() >= SMALL
    return kernel_for(q) and _by_triton(q, directions)


@torch.library.custom_op("kattn::primal_scores", mutates_args=())
def primal_operator(q: Tensor, k: Tensor, weight: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """``[e; r]`` ``(B, H, N, 2s)``, kept as ``(B, N, H, 2s)``; their energies ``(B, H, 2s)``; norms ``(2, B, H, N)``.

    ``q``, ``k``: ``(B, H, N, d)``; ``weight``: ``[W_e, W_r]``, ``(B or 1, H, d, 2s)``; ``mask``: ``(B, N)``: which
    tokens the energies, Σ of squares, are over, or None for all. Norms below 1e-12 are taken as that.
    """
    if _by_triton(q, weight.shape[-1] // 2):
        from kattn_cli.kernels.gpu import primal

        return primal.forward(q, k, weight, mask)
    scores, energy, norms = _outputs(q, weight)
    s = weight.shape[-1] // 2
    energy.zero_()
    with without_autocast(q.device):
        for b, tokens in _blocks(q):
            for side, z in enumerate((q, k)):
                its, vectors = slice(side * s, (side + 1) * s), exact(z[b, :, tokens])
                norm = torch.linalg.vector_norm(vectors, dim=-1).clamp_(min=NORM_EPSILON)
                found = torch.bmm(vectors, exact(_of_sample(weight, b))[..., its]).div_(norm[..., None])
                norms[side, b, :, tokens], scores[b, :, tokens, its] = norm, found
                found.square_()
                energy[b, :, its] += (found if mask is None else found.mul_(mask[b, tokens, None])).sum(1)
    return scores, energy, norms


@torch.library.custom_op("kattn::primal_scores_backward", mutates_args=())
def primal_operator_backward(
    grad: Tensor,
    grad_energy: Tensor | None,
    q: Tensor,
    k: Tensor,
    weight: Tensor,
    mask: Tensor | None,
    scores: Tensor,
    norms: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of queries, keys and weights."""
    if _by_triton(q, weight.shape[-1] // 2):
        from kattn_cli.kernels.gpu import primal

        return primal.backward(grad, grad_energy, q, k, weight, mask, scores, norms)
    grad_q, grad_k = _like(q), _like(k)
    grad_weight = torch.zeros((2, *weight.shape[:-1], weight.shape[-1] // 2), dtype=norms.dtype, device=q.device)
    s = weight.shape[-1] // 2
    with without_autocast(q.device):
        for b, tokens in _blocks(q):
            for side, (z, grad_z) in enumerate(((q, grad_q), (k, grad_k))):
                its, vectors = slice(side * s, (side + 1) * s), exact(z[b, :, tokens])
                found, by_score = exact(scores[b, :, tokens, its]), exact(grad[b, :, tokens, its])
                norm = norms[side, b, :, tokens, None]
                if grad_energy is not None:
                    by_square = grad_energy[b, :, None, its]
                    by_square = by_square if mask is None else by_square * mask[b, tokens, None]
                    by_score = torch.addcmul(by_score, found, by_square, value=2)
                radial = (by_score * found).sum(-1, keepdim=True).div_(norm.square())
                radial.masked_fill_(norm <= NORM_EPSILON, 0)
                by_product = by_score / norm
                by_vectors = torch.bmm(by_product, exact(_of_sample(weight, b))[..., its].mT)
                torch.addcmul(by_vectors, vectors, radial, value=-1, out=grad_z[b, :, tokens])
                _of_sample(grad_weight[side], b).baddbmm_(vectors.mT, by_product)
    return grad_q, grad_k, torch.cat((grad_weight[0], grad_weight[1]), -1).to(weight.dtype)


def _blocks(q: Tensor) -> Iterator[tuple[int, slice]]:
    """Samples, and slices of about :data:`BLOCK` entries of their tokens."""
    samples, heads, n, d = q.shape
    tokens = max(1, BLOCK // (heads * d))
    for b in range(samples):
        for first in range(0, n, tokens):
            yield b, slice(first, first + tokens)


def _of_sample(weight: Tensor, b: int) -> Tensor:
    return weight[b if len(weight) > 1 else 0]


def _by_triton(q: Tensor, directions: int) -> bool:
    fits = q.element_size() * max(q.shape[-1], directions) <= WIDEST and q.dtype != torch.float64
    return q.device.type == "cuda" and fits


def _like(z: Tensor, width: int | None = None) -> Tensor:
    samples, heads, n, d = z.shape
    return z.new_empty(samples, n, heads, d if width is None else width).transpose(1, 2)


def _outputs(q: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    samples, heads, n, _ = q.shape
    energy = q.new_empty(samples, heads, weight.shape[-1], dtype=exact_dtype(q))
    return _like(q, weight.shape[-1]), energy, energy.new_empty(2, samples, heads, n)


@primal_operator.register_fake
def _(q: Tensor, k: Tensor, weight: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    return _outputs(q, weight)


@primal_operator_backward.register_fake
def _(
    grad: Tensor,
    grad_energy: Tensor | None,
    q: Tensor,
    k: Tensor,
    weight: Tensor,
    mask: Tensor | None,
    scores: Tensor,
    norms: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    return _like(q), _like(k), weight.new_empty(weight.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, _, norms = output
    ctx.save_for_backward(*inputs, scores, norms)
    ctx.mark_non_differentiable(norms)
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad: Tensor | None, grad_energy: Tensor | None, _: None) -> tuple[Any, ...]:
    if grad is None and grad_energy is None:
        return None, None, None, None
    q, k, weight, mask, scores, norms = ctx.saved_tensors
    grad = torch.zeros_like(scores) if grad is None else grad
    return *primal_operator_backward(grad, grad_energy, q, k, weight, mask, scores, norms), None


primal_operator.register_autograd(_differentiate, setup_context=_keep)
