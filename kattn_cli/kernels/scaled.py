"""Scaled Attention, ``A(q, k) (I − S) v``: softmax attention on values freed of their mean.

Source: RPC-Attention paper, eq. 12 and Remark 3; Appendix E.1 for the two forms of S.
B: batch, H: heads, N: tokens, d: head width.
"""

from __future__ import annotations

from torch import Tensor

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import check_mask
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exactly
from kattn_cli.kernels.softmax import softmax_attention, softmax_matrix


def learned_scaling(s: Tensor, n: int, *, causal: bool = False, mask: Tensor | None = None) -> Tensor:
    """Return S for ``n`` tokens, ``(B or 1, H, n, n)``: the leading block of parameter ``s``, ``(H, N_max, N_max)``.

    With ``causal`` its lower triangle; without the columns at the padding.
    """
    s = s[None, :, :n, :n]
    s = s.tril() if causal else s
    return s if mask is None else s.masked_fill(~mask[:, None, None, :], 0)


def symmetric_scaling(k: Tensor, alpha: Tensor, *, causal: bool = False, mask: Tensor | None = None) -> Tensor:
    """Return ``S = α A(k, k)``, ``(B, H, N, N)``; ``alpha``: ``(1,)``."""
    return alpha * softmax_matrix(k, k, causal, mask)


@exactly
def scaled_attention_naive(
    q: Tensor, k: Tensor, v: Tensor, s: Tensor, causal: bool = False, mask: Tensor | None = None
) -> Tensor:
    """Return the equation as printed, with S in full, ``(B or 1, H, N, N)``."""
    return softmax_matrix(q, k, causal, mask) @ (v - s @ v)


def learned_scaled_values(
    v: Tensor, s: Tensor, *, causal: bool = False, mask: Tensor | None = None, last: int | None = None
) -> Tensor:
    """Return ``(I − S) v`` for the parameter ``s``, ``(H, N_max, N_max)``; only the ``last`` rows where given."""
    check_mask("scaled attention", mask, v)
    n = v.shape[-2]
    first = 0 if last is None else n - last
    if version() == "slow":
        return _scaled_values(v, learned_scaling(s, n, causal=causal, mask=mask), first)
    rows = s[:, first:n, :n]
    # Row i of these is token first + i, which sees the columns up to its own.
    rows = rows.tril(first) if causal else rows
    return v[..., first:, :] - rows @ without_padding(v, mask)


def symmetric_scaled_values(
    k: Tensor, v: Tensor, alpha: Tensor, *, causal: bool = False, mask: Tensor | None = None, last: int | None = None
) -> Tensor:
    """Return ``(I − α A(k, k)) v`` without the N × N matrix; only the ``last`` rows where that is given."""
    check_mask("scaled attention", mask, v)
    first = 0 if last is None else v.shape[-2] - last
    if version() == "slow":
        return _scaled_values(v, symmetric_scaling(k, alpha, causal=causal, mask=mask), first)
    mean = softmax_attention(k[..., first:, :], k, v, causal=causal, mask=mask)
    return v[..., first:, :] - alpha.to(mean.dtype) * mean


@exactly
def _scaled_values(v: Tensor, scaling: Tensor, first: int) -> Tensor:
    """Return the rows of ``(I − S) v`` from ``first`` on, with S in full."""
    return v[..., first:, :] - (scaling @ v)[..., first:, :]
