"""The step of Principal Attention Pursuit between two attentions, and its gradient, in Triton: one launch each.

B: batch, H: heads, N: tokens, d: head width. A program takes some tokens of one sample and head. With e bytes an
entry, forward moves 3 e + 2 e + 1 of them for each entry (reads k, L and U − S; writes z, U − S and the signs), and
backward 2 e + 1 + 3 e. τ's gradient is summed by program, then over programs: the same input gives the same bits.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kattn_cli.kernels.precision import exact
from kattn_cli.kernels.triton_sums import FUSED, on_device_of

ENTRIES = 2048
"""That a program holds of one tensor."""


def forward(
    k: Tensor, low_rank: Tensor | None, carried: Tensor | None, tau: Tensor, sign: int, carry: bool, signs: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what :func:`kattn_cli.kernels.pursuit.operator.pursuit_step` does, ``(B, H, N, d)`` throughout."""
    samples, heads, tokens, width = k.shape
    k = k if k.stride(3) == 1 else k.contiguous()
    first = low_rank is None or carried is None
    z = k.new_empty(samples, tokens, heads, width)
    following = torch.empty_like(z) if carry else k.new_empty(0, 0, 0, 0)
    found = torch.empty_like(z if signs else k.new_empty(0, 0, 0, 0), dtype=torch.int8)
    rows, features, grid = _programs(k)
    with on_device_of(k):
        _forward[grid](
            *(k, k if low_rank is None else _tokens_first(low_rank), k if carried is None else _tokens_first(carried)),
            *(exact(tau).contiguous(), z, following, found),
            *(heads, tokens, width, k.stride(0), k.stride(1), k.stride(2)),
            SIGN=sign,
            FIRST=first,
            CAUSAL=tau.shape[2] > 1,
            CARRY=carry,
            SIGNS=signs,
            ROWS=rows,
            FEATURES=features,
            num_warps=4,
            **FUSED,
        )
    return z.transpose(1, 2), following.transpose(1, 2), found.transpose(1, 2)


def backward(
    grad_z: Tensor, grad_following: Tensor | None, signs: Tensor, tau: Tensor, sign: int, first: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return what :func:`kattn_cli.kernels.pursuit.operator.pursuit_step_backward` does."""
    samples, heads, tokens, width = grad_z.shape
    by_z = _tokens_first(grad_z)
    by_k = torch.empty_like(by_z)
    by_low_rank, by_carried = (by_z.new_empty(by_z.shape if not first else (0, 0, 0, 0)) for _ in range(2))
    causal = tau.shape[2] > 1
    rows, features, grid = _programs(grad_z)
    parts = tokens if causal else triton.cdiv(tokens, rows)
    by_tau = exact(by_z.new_empty(0)).new_empty(samples, heads, parts, 1)
    with on_device_of(grad_z):
        _backward[grid](
            *(by_z, by_z if grad_following is None else _tokens_first(grad_following), _tokens_first(signs)),
            *(by_k, by_low_rank, by_carried, by_tau, heads, tokens, width),
            SIGN=sign,
            FIRST=first,
            FOLLOWED=grad_following is not None,
            CAUSAL=causal,
            ROWS=rows,
            FEATURES=features,
            num_warps=4,
            **FUSED,
        )
    by_tau = by_tau if causal else by_tau.sum(2, keepdim=True)
    return *(z.transpose(1, 2) for z in (by_k, by_low_rank, by_carried)), by_tau.to(tau.dtype)  # type: ignore[return-value]


def _tokens_first(z: Tensor) -> Tensor:
    return z.transpose(1, 2).contiguous()


def _programs(k: Tensor) -> tuple[int, int, tuple[int]]:
    samples, heads, tokens, width = k.shape
    features = triton.next_power_of_2(width)
    rows = max(1, ENTRIES // features)
    return rows, features, (samples * heads * triton.cdiv(tokens, rows),)


@triton.jit
def _place(heads, tokens, width, ROWS: tl.constexpr, FEATURES: tl.constexpr):
    """Which sample, head and part of the tokens; which tokens; which entries of a (B, N, H, d), and which exist."""
    parts = tl.cdiv(tokens, ROWS)
    part = tl.program_id(0) % parts
    head = (tl.program_id(0) // parts) % heads
    sample = (tl.program_id(0) // parts // heads).to(tl.int64)
    rows = part * ROWS + tl.arange(0, ROWS)
    features = tl.arange(0, FEATURES)
    entries = ((sample * tokens + rows) * heads + head)[:, None] * width + features[None, :]
    return sample, head, part, rows, features, entries, (rows < tokens)[:, None] & (features < width)[None, :]


@triton.jit
def _forward(
    k,
    low_rank,
    carried,
    tau,
    z,
    following,
    signs,
    heads,
    tokens,
    width,
    k_sample,
    k_head,
    k_token,
    SIGN: tl.constexpr,
    FIRST: tl.constexpr,
    CAUSAL: tl.constexpr,
    CARRY: tl.constexpr,
    SIGNS: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    sample, head, _, rows, features, entries, there = _place(heads, tokens, width, ROWS, FEATURES)
    kept = tau.dtype.element_ty
    row = sample * k_sample + head.to(tl.int64) * k_head + rows.to(tl.int64) * k_token
    keys = tl.load(k + row[:, None] + features[None, :], mask=there, other=0.0).to(kept)
    if CAUSAL:
        limit = tl.load(tau + (sample * heads + head) * tokens + rows, mask=rows < tokens, other=0.0)[:, None]
    else:
        limit = tl.load(tau + sample * heads + head)
    dual = tl.zeros((ROWS, FEATURES), kept)
    a = keys
    if not FIRST:
        residual = keys - tl.load(low_rank + entries, mask=there, other=0.0).to(kept)
        dual = tl.load(carried + entries, mask=there, other=0.0).to(kept) + residual
        a = residual + dual
    above, below = a > limit, a < -limit
    sparse = tl.where(above, a - limit, tl.where(below, a + limit, 0.0))
    tl.store(z + entries, (keys - sparse + SIGN * dual).to(z.dtype.element_ty), mask=there)
    if CARRY:
        tl.store(following + entries, (dual - sparse).to(following.dtype.element_ty), mask=there)
    if SIGNS:
        tl.store(signs + entries, above.to(tl.int8) - below.to(tl.int8), mask=there)


@triton.jit
def _backward(
    grad_z,
    grad_following,
    signs,
    by_k,
    by_low_rank,
    by_carried,
    by_tau,
    heads,
    tokens,
    width,
    SIGN: tl.constexpr,
    FIRST: tl.constexpr,
    FOLLOWED: tl.constexpr,
    CAUSAL: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    sample, head, part, rows, _, entries, there = _place(heads, tokens, width, ROWS, FEATURES)
    kept = by_tau.dtype.element_ty
    by_z = tl.load(grad_z + entries, mask=there, other=0.0).to(kept)
    by_following = tl.zeros((ROWS, FEATURES), kept)
    if FOLLOWED:
        by_following = tl.load(grad_following + entries, mask=there, other=0.0).to(kept)
    sign = tl.load(signs + entries, mask=there, other=0).to(kept)
    along = (by_z + by_following) * sign
    by_a = -along * sign
    if CAUSAL:
        by_limit = tl.sum(along, axis=1)
        tl.store(by_tau + (sample * heads + head) * tokens + rows, by_limit, mask=rows < tokens)
    else:
        parts = tl.cdiv(tokens, ROWS)
        tl.store(by_tau + (sample * heads + head) * parts + part, tl.sum(tl.sum(along, axis=1), axis=0))
    if FIRST:
        tl.store(by_k + entries, (by_z + by_a).to(by_k.dtype.element_ty), mask=there)
    else:
        by_dual = SIGN * by_z + by_following + by_a
        by_residual = by_a + by_dual
        tl.store(by_carried + entries, by_dual.to(by_carried.dtype.element_ty), mask=there)
        tl.store(by_low_rank + entries, (-by_residual).to(by_low_rank.dtype.element_ty), mask=there)
        tl.store(by_k + entries, (by_z + by_residual).to(by_k.dtype.element_ty), mask=there)
