"""RPC-Attention: symmetric attention made robust by Principal Attention Pursuit on its keys.

Source: "Unveiling the Hidden Structure of Self-Attention via Kernel Principal Component Analysis",
Algorithm 1, Definition 1; Appendix E.10 for ``asymmetric: iterate``.

Where the authors' program differs from the paper, ``convention: reference`` computes what it computes:
τ = λ·μ instead of λ/μ, and μ with the full width C instead of the head's d. ``convention: textbook`` turns
the sign of Y/μ in step 2, as minimising the paper's own augmented Lagrangian over L asks.

The authors' default λ = 0 shrinks nothing (S = k, and one iteration attends uniformly); λ has no
sensible default but the paper's 4 (4 to 6 iterations in the first layer) and 3 (2 in all layers).
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.mechanism import AttentionMechanism
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact
from kattn_cli.kernels.pursuit.equations import NORM_EPSILON, Convention, Pursuit, pap, pap_steps
from kattn_cli.kernels.softmax import softmax_matrix


class RPCAttention(AttentionMechanism):
    """The low-rank part of the keys after ``iterations`` of the pursuit, projected. ``(B, N, C)`` to the same."""

    supports_causal = True

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        iterations: Annotated[int, Field(ge=1, le=100)] = 4,
        lambda_: Annotated[float, Field(ge=0)] = 4.0,
        convention: Convention = "paper",
        asymmetric: Literal["none", "iterate"] = "none",
        qkv_bias: bool = True,
        attn_drop: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__(dim, heads, causal)
        self.attn_drop = attn_drop
        self.pursuit = Pursuit(iterations, lambda_, convention, causal)
        self.q = nn.Linear(dim, dim, bias=qkv_bias) if asymmetric == "iterate" else None
        self.kv = nn.Linear(dim, 2 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def pursued(self, x: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        """Return queries (None if they are the keys), the keys that are pursued, and values, ``(B, H, N, d)`` each."""
        k, v = split_projections(self.kv(x), self.heads, 2)
        q = split_projections(self.q(x), self.heads, 1)[0] if self.q is not None else None
        return q, k, v

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for every token, ``(B, N, C)``.

        ``x``: ``(B, N, C)``; ``mask``: ``(B, N)``, True where there is a token, or None for no padding."""
        q, k, v = self.pursued(x)
        dropout = self.attn_drop if self.training else 0.0
        return self.proj(join_heads(pap(k, v, self.pursuit, q=q, mask=mask, dropout=dropout)))

    def kernel_inputs(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, cleaned keys and values of step 2 in the last iteration, ``(B, H, N, d)`` each."""
        q, k, v = self.pursued(x)
        *_, (z, _, _) = pap_steps(k, v, self.pursuit, q=q)
        return z if q is None else q, z, v

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``A`` of step 2 in the last iteration, ``(B, H, N, N)``."""
        q, k, v = self.pursued(x)
        *_, (z, _, _) = pap_steps(k, v, self.pursuit, q=q, mask=mask)
        return softmax_matrix(z if q is None else q, z, self.causal, mask)

    def residuals(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``‖k − L − S‖ / ‖k‖`` after each iteration, ``(iterations, B, H)``: does the pursuit converge?"""
        q, k, v = self.pursued(x)
        steps = pap_steps(k, v, self.pursuit, q=q, mask=mask)
        keys = exact(k)
        # Norms are over a head's tokens and features; the clamp is for a sample of padding alone.
        norms = [without_padding(keys - low - sparse, mask).norm(dim=(-2, -1)) for _, sparse, low in steps]
        return torch.stack(norms) / without_padding(keys, mask).norm(dim=(-2, -1)).clamp(min=NORM_EPSILON)

    def flops(self, n: int) -> int:
        """Return the operations for a sample of ``n`` tokens: an iteration is an attention and 11 an entry."""
        width = 2 * self.dim if self.q is None else 3 * self.dim
        iteration = flops.softmax_attention(n, self.dim, self.heads) + 11 * n * self.dim
        return (
            flops.linear(n, self.dim, width, self.kv.bias is not None)
            + 2 * n * self.dim
            + self.pursuit.iterations * iteration
            + flops.linear(n, self.dim, self.dim)
        )
