"""Linear attention: a product of feature maps stands for the exponential, so that keys and values are summed first.

Source: Katharopoulos et al. 2020, "Transformers are RNNs", eq. 4–12 and 16–20.
B: batch, H: heads, N: tokens, m: features, d: head width; phi_q and phi_k are ``(B, H, N, m)``, v ``(B, H, N, d)``.

Features may span more than floating point does. ``log_weight``, ``(B, H, N, 1)`` without gradient, then says that
``exp(log_weight) phi_k`` is meant; it is used only relative to the largest that the query sees.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import token_mask
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact, full_precision

CHUNK = 128
NORMALISER_EPSILON = 1e-12


class LinearState(NamedTuple):
    """All that the past is to the tokens to come, of constant size."""

    sums: Tensor
    """``Σ φ(kⱼ) vⱼᵀ`` and, as its last column where there is a normaliser, ``Σ φ(kⱼ)``: ``(B, H, m, d or d + 1)``."""
    log_scale: Tensor
    """The largest log weight so far, which ``sums`` are relative to: ``(B or 1, H or 1, 1, 1)``."""
    tokens: int
    """How many there were."""


def elu_features(z: Tensor) -> Tensor:
    """Return ``elu(z) + 1`` (eq. 7), positive."""
    return F.elu(exact(z)) + 1


@full_precision
def linear_attention_matrix(
    phi_q: Tensor,
    phi_k: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    normalise: bool = True,
    log_weight: Tensor | None = None,
) -> Tensor:
    """Return ``φ(qᵢ)ᵀ φ(kⱼ)``, ``(B, H, N, N)``, with ``normalise`` divided by its sum over j; rows of zeros stay."""
    scores = phi_q @ without_padding(phi_k, mask).mT
    if log_weight is not None:
        log_weight = _least_at_padding(log_weight, mask)
        largest = log_weight.cummax(-2).values if causal else log_weight.amax(-2, keepdim=True)
        # Keys after the query may weigh more than all it sees: clamped, they stay finite until the triangle drops them.
        scores = scores * (log_weight.mT - largest).clamp(max=0).exp()
    if causal:
        scores = scores.tril()
    return scores / scores.sum(-1, keepdim=True).clamp(min=NORMALISER_EPSILON) if normalise else scores  # eq. 4


@full_precision
def linear_attention_naive(
    phi_q: Tensor,
    phi_k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    normalise: bool = True,
    log_weight: Tensor | None = None,
) -> Tensor:
    """Return eq. 4, with ``causal`` eq. 9, as printed, in the type of ``v``; forms the N × N matrix."""
    matrix = linear_attention_matrix(phi_q, phi_k, mask=mask, causal=causal, normalise=normalise, log_weight=log_weight)
    return (matrix @ v.to(matrix.dtype)).to(v.dtype)


@full_precision
def linear_attention(
    phi_q: Tensor,
    phi_k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    normalise: bool = True,
    log_weight: Tensor | None = None,
) -> Tensor:
    """Return linear attention, ``(B, H, N, d)`` in the type of ``v``, in time and memory linear in N."""
    mask = token_mask("linear attention", mask, v)
    if not v.shape[-2]:
        return v
    if version() == "slow":
        return linear_attention_naive(phi_q, phi_k, v, mask, causal, normalise, log_weight)
    phi_k = without_padding(phi_k, mask)
    if log_weight is not None:
        log_weight = _least_at_padding(log_weight, mask)
    if causal:
        return linear_attention_decode(phi_q, phi_k, v, normalise=normalise, log_weight=log_weight)[0]
    if log_weight is not None:
        phi_k = phi_k * (log_weight - log_weight.amax(-2, keepdim=True)).exp()
    sums = phi_k.mT @ _summands(v, phi_k.dtype, normalise)  # eq. 6
    return _output(phi_q @ sums, normalise).to(v.dtype)


@full_precision
def linear_attention_decode(
    phi_q: Tensor,
    phi_k: Tensor,
    v: Tensor,
    state: LinearState | None = None,
    *,
    normalise: bool = True,
    log_weight: Tensor | None = None,
) -> tuple[Tensor, LinearState]:
    """Return causal outputs for the tokens after ``state``, and the state after them (eq. 9–12, 16–20).

    Within a chunk of ``CHUNK`` tokens the masked matrix is formed; the chunks before it are the running sums.
    """
    values = _summands(v, phi_k.dtype, normalise)
    if log_weight is None:
        log_weight = phi_k.new_zeros(1, 1, phi_k.shape[-2], 1)
    if state is None:
        nothing = values.new_zeros(*phi_k.shape[:2], phi_k.shape[-1], values.shape[-1])
        # The least finite number, not −inf: the difference of two of them must be a number.
        state = LinearState(nothing, torch.full_like(log_weight[..., :1, :], _least(log_weight)), 0)
    sums, log_scale, tokens = state
    outs = []
    for q, k, u, w in zip(*(z.split(CHUNK, -2) for z in (phi_q, phi_k, values, log_weight)), strict=True):
        largest = torch.maximum(w.cummax(-2).values, log_scale)  # that each query sees
        # Keys after the query may weigh more than all it sees: clamped, they stay finite until the triangle drops them.
        within = (q @ k.mT * (w.mT - largest).clamp(max=0).exp()).tril()
        outs.append(within @ u + (log_scale - largest).exp() * (q @ sums))
        last = largest[..., -1:, :]
        # The sums are relative to the largest weight so far; as it grows, they shrink, and no exponential overflows.
        sums = (log_scale - last).exp() * sums + k.mT @ ((w - last).exp() * u)
        log_scale = last
    out = _output(torch.cat(outs, -2), normalise).to(v.dtype)
    return out, LinearState(sums, log_scale, tokens + v.shape[-2])


def _summands(v: Tensor, dtype: torch.dtype, normalise: bool) -> Tensor:
    """Return the values, each with a one appended that sums to the normaliser."""
    return F.pad(v.to(dtype), (0, 1), value=1.0) if normalise else v.to(dtype)


def _output(sums: Tensor, normalise: bool) -> Tensor:
    # The clamp leaves zeros where a query met no key, or features of 0 alone.
    return sums[..., :-1] / sums[..., -1:].clamp(min=NORMALISER_EPSILON) if normalise else sums


def _least(log_weight: Tensor) -> float:
    return torch.finfo(log_weight.dtype).min


def _least_at_padding(log_weight: Tensor, mask: Tensor | None) -> Tensor:
    return log_weight if mask is None else log_weight.masked_fill(~mask[:, None, :, None], _least(log_weight))
