"""What Principal Attention Pursuit does between two attentions, as one operator: ``kattn::pursuit_step``.

Source: RPC-Attention, Algorithm 1, in ``U = Y/μ``. With ``U − S`` carried from one step to the next,

    U ← (U − S) + k − L,    a = k − L + U,    S = shrink_τ(a),    z = k − S ± U.

S is 0, a − τ or a + τ, and its derivatives are [S ≠ 0] by a and −sgn(S) by τ. So all that the backward pass needs is
that sign, a byte an entry. B: batch, H: heads, N: tokens, d: head width.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from kattn_cli.kernels.entry import check_alike, check_axes, check_shape
from kattn_cli.kernels.precision import exact, exact_dtype

BLOCK = 2**18
"""Entries that a CPU takes through all operations at once, while they are in its cache."""


@torch.library.custom_op("kattn::pursuit_step", mutates_args=())
def pursuit_step(
    k: Tensor, low_rank: Tensor | None, carried: Tensor | None, tau: Tensor, sign: int, carry: bool, signs: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the next keys ``z``, ``U − S`` for the next step, and ``sgn(S)`` in int8, ``(B, H, N, d)`` each.

    ``low_rank``: L of the attention before; ``carried``: ``U − S`` of the step before; both None in the first step,
    where L and U are 0. ``tau``: ``(B, H, 1, 1)``, or ``(B, H, N, 1)`` in the causal form; ``sign``: that of U in z.
    Without ``carry``, in the last step, and without ``signs``, where there is no backward pass, those are empty.
    All are kept as ``(B, N, H, d)`` in memory, as torch's attention keeps its own.
    """
    check_axes("kattn::pursuit_step", "k", k, "B, H, N, d")
    check_alike("kattn::pursuit_step", "low_rank", low_rank, k)
    check_alike("kattn::pursuit_step", "carried", carried, k)
    of_tokens = k.shape[2] if tau.ndim == 4 and tau.shape[2] != 1 else 1
    check_shape("kattn::pursuit_step", "tau", tau, (*k.shape[:2], of_tokens, 1), k)
    if k.device.type == "cuda":
        from kattn_cli.kernels.pursuit import triton as pursuit

        return pursuit.forward(k, low_rank, carried, tau, sign, carry, signs)
    z, following, found = _outputs(k, carry, signs)
    for at in _blocks(k):
        keys, limits = exact(k[at]), _limits(tau, k, at)
        if low_rank is None or carried is None:
            # shrink_τ(a) = a − clamp(a, −τ, τ): step 1 with L = U = 0.
            sparse = keys - keys.clamp(-limits, limits)
            torch.sub(keys, sparse, out=z[at])
            if carry:
                following[at] = -sparse
        else:
            residual = keys - low_rank[at]
            dual = residual + carried[at]  # U of step 3, over μ
            sparse = residual.add_(dual)  # a = k − L + U
            sparse -= sparse.clamp(-limits, limits)  # step 1
            if carry:
                torch.sub(dual, sparse, out=following[at])
            torch.sub(keys, dual.mul_(-sign).add_(sparse), out=z[at])  # z = k − S ± U
        if signs:
            found[at] = sparse.sign_()
    return z, following, found


@torch.library.custom_op("kattn::pursuit_step_backward", mutates_args=())
def pursuit_step_backward(
    grad_z: Tensor, grad_following: Tensor | None, signs: Tensor, tau: Tensor, sign: int, first: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of the keys, ``low_rank``, ``carried`` (both empty in the ``first`` step) and τ."""
    if grad_z.device.type == "cuda":
        from kattn_cli.kernels.pursuit import triton as pursuit

        return pursuit.backward(grad_z, grad_following, signs, tau, sign, first)
    grad_k, grad_low_rank, grad_carried = _empty(grad_z), _empty(grad_z, not first), _empty(grad_z, not first)
    grad_tau = torch.zeros_like(tau, dtype=exact_dtype(grad_z))
    for at in _blocks(grad_z):
        by_z, kept = exact(grad_z[at]), signs[at].to(exact_dtype(grad_z))
        by_following = None if grad_following is None else exact(grad_following[at])
        by_sparse = by_z if by_following is None else by_z + by_following  # −∂S
        along = by_sparse * kept
        if tau.shape[2] == 1:
            grad_tau[at[0]] += along.sum(2, keepdim=True).sum(3, keepdim=True)
        else:
            grad_tau[at] = along.sum(3, keepdim=True)
        # ∂S/∂a = sgn(S)²: 1 where S is not 0.
        by_a = along.mul_(kept)  # −∂a
        if first:
            torch.sub(by_z, by_a, out=grad_k[at])
            continue
        by_dual = by_z * sign if by_following is None else by_following.add(by_z, alpha=sign)
        by_dual -= by_a
        by_low_rank = by_a.sub_(by_dual)
        grad_carried[at], grad_low_rank[at] = by_dual, by_low_rank
        torch.sub(by_z, by_low_rank, out=grad_k[at])
    return grad_k, grad_low_rank, grad_carried, grad_tau.to(tau.dtype)


def _blocks(k: Tensor) -> Iterator[tuple[slice, slice, slice]]:
    """Yield slices of samples, heads (all) and tokens, of about :data:`BLOCK` entries each."""
    b, h, n, d = k.shape
    samples, tokens = max(1, BLOCK // max(1, n * h * d)), max(1, BLOCK // max(1, h * d))
    for i in range(0, b, samples):
        for j in range(0, n, tokens):
            yield slice(i, i + samples), slice(None), slice(j, j + tokens)


def _limits(tau: Tensor, k: Tensor, at: tuple[slice, slice, slice]) -> Tensor:
    """Return τ of a block, repeated over d, so that the loops over entries are long."""
    limits = exact(tau)[at if tau.shape[2] > 1 else at[:1]]
    return limits.transpose(1, 2).expand(-1, -1, -1, k.shape[3]).contiguous().transpose(1, 2)


def _outputs(k: Tensor, carry: bool, signs: bool) -> tuple[Tensor, Tensor, Tensor]:
    return _empty(k), _empty(k, carry), _empty(k, signs, torch.int8)


def _empty(k: Tensor, wanted: bool = True, dtype: torch.dtype | None = None) -> Tensor:
    b, h, n, d = k.shape
    return k.new_empty((b, n, h, d) if wanted else (0, 0, 0, 0), dtype=dtype).transpose(1, 2)


@pursuit_step.register_fake
def _(
    k: Tensor, low_rank: Tensor | None, carried: Tensor | None, tau: Tensor, sign: int, carry: bool, signs: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return _outputs(k, carry, signs)


@pursuit_step_backward.register_fake
def _(
    grad_z: Tensor, grad_following: Tensor | None, signs: Tensor, tau: Tensor, sign: int, first: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _empty(grad_z), _empty(grad_z, not first), _empty(grad_z, not first), torch.empty_like(tau)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    _, low_rank, carried, tau, ctx.sign, _, _ = inputs
    ctx.first = low_rank is None or carried is None
    ctx.save_for_backward(output[2], tau)
    # An output that nobody differentiates then comes as None, not as zeros of its size.
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad_z: Tensor | None, grad_following: Tensor | None, _: None) -> tuple[Any, ...]:
    signs, tau = ctx.saved_tensors
    if grad_z is None:
        if grad_following is None:
            return (None,) * 7
        grad_z = torch.zeros_like(grad_following)
    if grad_following is not None and not grad_following.numel():
        grad_following = None
    grads = torch.ops.kattn.pursuit_step_backward(grad_z, grad_following, signs, tau, ctx.sign, ctx.first)
    grad_k, grad_low_rank, grad_carried, grad_tau = grads
    if ctx.first:
        grad_low_rank = grad_carried = None
    return grad_k, grad_low_rank, grad_carried, grad_tau, None, None, None


pursuit_step.register_autograd(_differentiate, setup_context=_keep)
