"""Scores of Primal-Attention with the cosine feature map, both sides at once, as the operator ``kattn::primal_scores``.

Source: Primal-Attention, eq. 6 and 11. ``e = Wᵀz / ‖z‖``: a product with the vectors as they are, then a division, so
that no normalised copy of them is made. With the scores come Σ e² of each direction, which the objective is made of.
Backward, for a = ∂e / ‖z‖: ∂z = W a − z ⟨∂e, e⟩ / ‖z‖² and ∂W = Σ z aᵀ.
B: batch, H: heads, N: tokens, d: head width, s: directions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kattn_cli.kernels.choice import kernel_for
from kattn_cli.kernels.entry import check_alike, check_axes, check_shape, token_mask
from kattn_cli.kernels.precision import exact_dtype

WIDEST = 256
"""Bytes of a head's features, or directions, of a token: what fits beside others into a GPU's shared memory."""


def pays(q: Tensor, directions: int) -> bool:
    """Return whether this operator, not torch's one after the other, should compute on queries ``q``."""
    fits = q.element_size() * max(q.shape[-1], directions) <= WIDEST and q.dtype != torch.float64
    return kernel_for(q, 2 * directions) and (fits or q.device.type == "cpu")


@torch.library.custom_op("kattn::primal_scores", mutates_args=())
def primal_operator(q: Tensor, k: Tensor, weight: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``[e; r]`` ``(B, H, N, 2s)``, their energies ``(B, H, 2s)``, and the norms ``(2, B, H, N)``.

    The scores are kept as ``(B, N, H, 2s)`` in memory.

    ``q``, ``k``: ``(B, H, N, d)``; ``weight``: ``[W_e, W_r]``, ``(B or 1, H, d, 2s)``; ``mask``: ``(B, N)``: which
    tokens the energies, Σ of squares, are over, or None for all. Norms below 1e-12 are taken as that.
    """
    mask = _checked(q, k, weight, mask)
    if q.is_cuda:
        from kattn_cli.kernels.primal import triton as gpu

        return gpu.forward(q, k, weight, mask)
    from kattn_cli.kernels.primal import c as cpu

    return cpu.forward(q, k, weight, mask)


def _checked(q: Tensor, k: Tensor, weight: Tensor, mask: Tensor | None) -> Tensor | None:
    """Return the mask as kernels read it, after a look at the rest: kernels take strides of queries and keys."""
    name = "kattn::primal_scores"
    check_axes(name, "q", q, "B, H, N, d")
    check_axes(name, "weight", weight, "B or 1, H, d, 2s")
    check_alike(name, "k", k, q)
    samples, heads, _, width = q.shape
    shape = (1 if weight.shape[0] == 1 else samples, heads, width, weight.shape[3] // 2 * 2)
    check_shape(name, "weight", weight, shape, q)
    return token_mask(name, mask, q)


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
    """Return the gradients of queries, keys and weights."""
    mask = _checked(q, k, weight, mask)
    if q.is_cuda:
        from kattn_cli.kernels.primal import triton as gpu

        return gpu.backward(grad, grad_energy, q, k, weight, mask, scores, norms)
    from kattn_cli.kernels.primal import c as cpu

    return cpu.backward(grad, grad_energy, q, k, weight, mask, scores, norms)


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
    # An output that nobody differentiates then comes as None, not as zeros of its size.
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad: Tensor | None, grad_energy: Tensor | None, _: None) -> tuple[Any, ...]:
    if grad is None and grad_energy is None:
        return None, None, None, None
    q, k, weight, mask, scores, norms = ctx.saved_tensors
    grad = torch.zeros_like(scores) if grad is None else grad
    return *primal_operator_backward(grad, grad_energy, q, k, weight, mask, scores, norms), None


primal_operator.register_autograd(_differentiate, setup_context=_keep)
