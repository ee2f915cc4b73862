"""Primal-Attention: feature maps, projection scores of kernel SVD, and the objective that training drives to zero.

Source: Primal-Attention, "Self-attention through Asymmetric Kernel SVD in Primal Representation",
eq. 6–11, Remark 4.1. B: batch, H: heads, N: tokens, d: head width, s: directions, n: sampled rows.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import check_alike, check_axes, check_mask, check_shape, parameter, token_mask
from kattn_cli.kernels.masks import token_counts, total, without_padding
from kattn_cli.kernels.precision import exact, exact_dtype, exactly, full_precision, without_autocast
from kattn_cli.kernels.primal.operator import pays, primal_operator

Convention = Literal["paper", "reference"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
CHUNK = 32
"""Tokens that a running sum takes at once, as a product with a triangle of ones."""


def sampled_rows(length: int, count: int, convention: Convention) -> Tensor:
    """Return the indices of the ``count`` rows of X that make f(X): ``linspace(0, N − 1, n)`` rounded down.

    The authors' integer ``torch.linspace`` can be one below the exact floor that the paper means.
    """
    if convention == "reference":
        return torch.linspace(0, length - 1, count, dtype=torch.long)
    return torch.arange(count) * (length - 1) // max(count - 1, 1)


def sampled_tokens(mask: Tensor, count: int) -> Tensor:
    """Return those indices for each sample, among its tokens alone: ``(B, count)`` for a mask ``(B, N)``."""
    # A sample without any token samples its first row.
    last = (mask.sum(-1, keepdim=True) - 1).clamp(min=0)
    ranks = torch.arange(count, device=mask.device) * last // max(count - 1, 1)
    # A stable sort leaves the tokens in their order, before all padding.
    tokens_first = mask.long().argsort(dim=-1, descending=True, stable=True)
    return tokens_first.gather(-1, ranks)


@exactly
def primal_scores_naive(phi: Tensor, rows: Tensor | None, weight: Tensor) -> Tensor:
    """Return the scores of one side, ``(B, H, N, s)``, one sample, head and token at a time (eq. 6).

    ``phi``: the feature map of queries or keys ``(B, H, N, d)``; ``rows``: f(X) ``(B, H, n, d)`` with
    ``weight`` ``(H, n, s)``, or None for data-independent ``weight`` ``(H, d, s)``.
    """
    samples, heads, tokens, _ = phi.shape
    scores = []
    for b in range(samples):
        for h in range(heads):
            projection = weight[h] if rows is None else rows[b, h].T @ weight[h]  # W_{e|X} (d, s)
            scores += [projection.T @ phi[b, h, i] for i in range(tokens)]
    return torch.stack(scores).reshape(samples, heads, tokens, -1)


@full_precision
def primal_scores(phi: Tensor, rows: Tensor | None, weight: Tensor) -> Tensor:
    """Return the scores of one side, ``(B, H, N, s)``, for all samples, heads and tokens at once (eq. 6).

    In the type of ``phi``: exponential features leave the range of half precision, and come in better.
    """
    weight = weight.to(phi.dtype)
    rows = None if rows is None else rows.to(phi.dtype)
    return phi @ (weight if rows is None else rows.mT @ weight)  # eq. 6: W_{e|X} = f(X)ᵀ W_e


def joint_scores(phi_q: Tensor, phi_k: Tensor, rows: Tensor | None, w_e: Tensor, w_r: Tensor) -> Tensor:
    """Return ``[e; r]``, ``(B, H, N, 2s)``, of both feature maps."""
    of_side = primal_scores_naive if version() == "slow" and phi_q.numel() else primal_scores
    return torch.cat((of_side(phi_q, rows, w_e), of_side(phi_k, rows, w_r)), -1)


def cosine_scores(
    q: Tensor, k: Tensor, rows: Tensor | None, w_e: Tensor, w_r: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return ``[e; r]`` for the cosine feature map of ``q`` and ``k``, ``(B, H, N, d)``.

    And, from the operator that makes no copy of these, the energies Σ e² and Σ r² over the tokens of ``mask``, or over
    all, ``(B, H, 2s)``: what :func:`ksvd_objective_of` needs.

    Raises:
        ValueError: if an input has another shape than :func:`primal_scores` says, or ``mask`` is not ``(B, N)``.
    """
    check_axes("primal scores", "q", q, "B, H, N, d")
    check_alike("primal scores", "k", k, q)
    samples, heads, _, width = q.shape
    count, directions = width if rows is None else rows.shape[-2], w_e.shape[-1]
    w_e = parameter("primal scores", "w_e", w_e, (heads, count, directions), q)
    w_r = parameter("primal scores", "w_r", w_r, (heads, count, directions), q)
    if rows is not None:
        check_shape("primal scores", "rows", rows, (samples, heads, count, width), q)
    mask = token_mask("primal scores", mask, q)
    if not pays(q, directions):
        return joint_scores(cosine_features(q), cosine_features(k), rows, w_e, w_r), None
    weights = torch.cat((w_e, w_r), -1)
    projections = weights[None] if rows is None else torch.einsum("bhnd,hns->bhds", rows, weights)
    scores, energy, _ = primal_operator(q, k, projections.to(q.dtype), mask)
    return scores, energy


def cosine_features(z: Tensor) -> Tensor:
    """Return ``z / ‖z‖₂`` over the last axis."""
    # In half precision a sum of squares loses digits, and in float16 its range.
    return F.normalize(exact(z), dim=-1).to(z.dtype)


def exp_features_naive(
    q: Tensor, k: Tensor, directions: Tensor, causal: bool = False, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return ``D̂^{−1/2} g(q)`` and ``D̂^{−1/2} g(k)`` for ``directions`` w₁ … w_p, ``(p, d)``, token by token.

    Remark 4.1: ``g(z) = exp(−‖z‖²/2) (exp(w₁ᵀz), …, exp(w_pᵀz))``; ``D̂ᵢ = g(qᵢ)ᵀ Σⱼ g(kⱼ)``, over j ≤ i where causal.
    """

    def g(z: Tensor) -> Tensor:
        return torch.exp(-z.square().sum() / 2) * torch.stack([torch.exp(w @ z) for w in directions])

    phi_q, phi_k = torch.zeros_like(q @ directions.T), torch.zeros_like(k @ directions.T)
    samples, heads, tokens, _ = q.shape
    for b in range(samples):
        there = [j for j in range(tokens) if mask is None or mask[b, j]]
        for h in range(heads):
            for i in there:
                keys = [g(k[b, h, j]) for j in there if j <= i or not causal]
                scale = (g(q[b, h, i]) @ torch.stack(keys).sum(0)).rsqrt()  # D̂^{−1/2}
                phi_q[b, h, i], phi_k[b, h, i] = scale * g(q[b, h, i]), scale * g(k[b, h, i])
    return phi_q, phi_k


@full_precision
def exp_features(
    q: Tensor,
    k: Tensor,
    directions: Tensor,
    causal: bool = False,
    mask: Tensor | None = None,
    before: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the features of Remark 4.1, ``(B, H, N, p)`` each, and ``log Σⱼ g(kⱼ)``, ``(B, H, 1, p)``.

    That sum goes on from ``before``. In logarithms, and all in float32 or better: g leaves its range where q and k are
    of ordinary size, and the features leave that of half precision. ``D̂^{−1/2} g(k)`` leaves float32's only where ‖q‖²
    and ‖k‖² of a token are hundreds apart.
    """
    check_mask("exponential features", mask, k)
    directions = directions.to(exact_dtype(q))
    # Each is widened once, so that the gradients of both its uses meet before they are rounded.
    log_q, log_k = (z @ directions.T - z.square().sum(-1, keepdim=True) / 2 for z in (exact(q), exact(k)))
    # Not −inf: a sum over nothing but padding would be −inf too, and its gradient not a number.
    least = torch.finfo(log_k.dtype).min
    there = log_k if mask is None else log_k.masked_fill(~mask[:, None, :, None], least)
    sums = there.logcumsumexp(-2) if causal else there.logsumexp(-2, keepdim=True)
    if before is not None:
        sums = torch.logaddexp(sums, before)
    log_scale = -(log_q + sums).logsumexp(-1, keepdim=True) / 2  # log D̂^{−1/2} (B, H, N, 1)
    if mask is not None:
        # At padding before the first token the sum is that of nothing, and its scale out of range.
        log_scale = log_scale.masked_fill(~mask[:, None, :, None], 0)
    phi_q, phi_k = ((log + log_scale).exp() for log in (log_q, log_k))
    # A clone: a view would keep the sums of all tokens alive in the state.
    return phi_q, phi_k, sums[..., -1:, :].clone()


def running_mean(z: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the mean over the tokens up to each, ``(B, H, N, d)`` (Figure 3): the causal form's q and k."""
    sums = total(without_padding(exact(z), mask), causal=True)
    return (sums / token_counts(sums, mask, causal=True)).to(z.dtype)


def running_direction(z: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return a positive multiple of :func:`running_mean`, for maps that ignore lengths: the sum, if in range."""
    # float16 ends at 65504, which a sum over tokens can pass where their mean cannot.
    if version() == "slow" or z.dtype == torch.float16:
        return running_mean(z, mask)
    return running_sum(without_padding(exact(z), mask)).to(z.dtype)


def running_sum(z: Tensor) -> Tensor:
    """Return the sum over the tokens up to each, ``(B, H, N, d)``: in chunks, products with a triangle of ones."""
    samples, heads, tokens, _ = z.shape
    chunks = -(-tokens // CHUNK)
    if chunks == 1 or not z.numel():
        return z.cumsum(-2)
    rows = F.pad(z.transpose(1, 2).flatten(2), (0, 0, 0, chunks * CHUNK - tokens)).unflatten(1, (chunks, CHUNK))
    before = F.pad(rows.sum(2).cumsum(1)[:, :-1], (0, 0, 1, 0))
    triangle = z.new_ones(CHUNK, CHUNK).tril().expand(samples * chunks, -1, -1)
    with without_autocast(z.device):
        sums = torch.baddbmm(before.flatten(0, 1)[:, None], triangle, rows.flatten(0, 1))
    return sums.view(samples, chunks * CHUNK, heads, -1)[:, :tokens].transpose(1, 2)


def ksvd_objective(
    e: Tensor,
    r: Tensor,
    w_e: Tensor,
    w_r: Tensor,
    regulariser: Tensor,
    convention: Convention,
    mask: Tensor | None = None,
) -> Tensor:
    """Return J of one layer, one value a sample, ``(B,)``.

    ``e``, ``r``: ``(B, H, N, s)``; ``w_e``, ``w_r``: ``(H, n, s)``, or ``(B, H, d, s)`` where they depend on the
    data; ``regulariser``: the diagonal of Λ, ``(H, s)``.

    - ``paper`` (eq. 11): ``½ Σᵢ eᵢᵀ Λ eᵢ + ½ Σⱼ rⱼᵀ Λ rⱼ − Tr(W_eᵀ W_r)`` over the tokens, mean over heads.
    - ``reference``: ``½ mean‖Λ e‖² + ½ mean‖Λ r‖² − Tr``, means over heads and tokens, padding included.

    In float32 or better, for it sums squares over all tokens.
    """
    e, r, w_e, w_r, regulariser = (exact(z) for z in (e, r, w_e, w_r, regulariser))
    trace = (w_e * w_r).sum((-2, -1)).mean(-1)
    if convention == "reference":
        energy = (e.square() + r.square()) * regulariser.square()[:, None]
        return energy.sum(-1).mean((-2, -1)) / 2 - trace
    energy = without_padding(e.square() + r.square(), mask) * regulariser[:, None]
    return energy.sum((-2, -1)).mean(1) / 2 - trace  # eq. 11


def ksvd_objective_of(
    energy: Tensor, tokens: int, w_e: Tensor, w_r: Tensor, regulariser: Tensor, convention: Convention
) -> Tensor:
    """Return J, ``(B,)``, from the energies of ``tokens`` tokens, Σ e² and Σ r², ``(B, H, 2s)``."""
    w_e, w_r, regulariser = exact(w_e), exact(w_r), exact(regulariser)
    trace = (w_e * w_r).sum((-2, -1)).mean(-1)
    # The authors' program squares Λ and takes the mean over tokens, where eq. 11 sums.
    weight = regulariser.square() / tokens if convention == "reference" else regulariser
    both_sides = energy.unflatten(-1, (2, -1)).sum(-2)
    return (both_sides * weight).sum(-1).mean(1) / 2 - trace
