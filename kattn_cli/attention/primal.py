"""Primal-Attention: self-attention as asymmetric kernel SVD, in its primal form. Linear in N.

Source: "Primal-Attention: Self-attention through Asymmetric Kernel SVD in Primal Representation",
eq. 6–11 and Algorithm 1.

Where the authors' program differs from the paper, ``convention: reference`` computes what it computes: Λ
squared, means instead of sums over tokens, the objective averaged over the batch before it is squared and
over layers instead of summed, and an initialisation that makes flattened heads orthonormal, not columns.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import head_width, join_heads, split_heads, split_projections
from kattn_cli.kernels.primal import Convention, cosine_features, ksvd_objective, primal_scores, sampled_rows


class PrimalAttention(nn.Module):
    """``[e; r] W_c + b_c`` for the scores of both sets of singular vectors. ``(B, N, C)`` to the same.

    ``eta`` weighs the KSVD term that :meth:`auxiliary_loss` adds to the loss of the task.
    """

    supports_causal = False

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        s: Annotated[int, Field(ge=1, le=4096)] = 20,
        rank_multi: Annotated[int, Field(ge=1, le=1000)] = 10,
        eta: Annotated[float, Field(ge=0)] = 0.1,
        projection: Literal["data-dependent", "data-independent"] = "data-dependent",
        scores: Literal["both", "e"] = "both",
        convention: Convention = "paper",
        qkv_bias: bool = True,
    ) -> None:
        super().__init__()
        d = head_width(dim, heads)
        if causal:
            raise ValueError("the causal form of primal is not here yet")
        self.dim, self.heads, self.s, self.eta = dim, heads, s, eta
        self.scores: str = scores
        self.convention: Convention = convention
        self.data_dependent = projection == "data-dependent"
        rows = min(s * rank_multi, seq_len) if self.data_dependent else d
        self.qk = nn.Linear(dim, 2 * dim, bias=qkv_bias)
        self.w_e = nn.Parameter(torch.empty(heads, rows, s))
        self.w_r = nn.Parameter(torch.empty(heads, rows, s))
        self.regulariser = nn.Parameter(torch.rand(heads, s))
        self.concat = nn.Linear(2 * s if scores == "both" else s, d)
        self.proj = nn.Linear(dim, dim)
        self._last: tuple[Tensor, Tensor] | None = None
        for weight in (self.w_e, self.w_r):
            _orthogonal(weight, convention)

    @property
    def layer_reduction(self) -> str:
        """How the terms of several layers join: eq. 10 sums them, the authors' program averages."""
        return "mean" if self.convention == "reference" else "sum"

    def _features(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        q, k = split_projections(self.qk(x), self.heads, 2)
        rows = None
        if self.data_dependent:
            index = sampled_rows(x.shape[1], self.w_e.shape[1], self.convention).to(x.device)
            rows = split_heads(x[:, index], self.heads)  # f(X) (B, H, n, d)
        return cosine_features(q), cosine_features(k), rows

    def forward(self, x: Tensor) -> Tensor:
        phi_q, phi_k, rows = self._features(x)
        e = primal_scores(phi_q, rows, self.w_e)
        r = primal_scores(phi_k, rows, self.w_r)
        self._last = (e, r)
        scores = torch.cat((e, r), -1) if self.scores == "both" else e
        return self.proj(join_heads(self.concat(scores)))

    def objective(self) -> Tensor:
        """J of the last forward pass: ``(B,)`` for ``paper``, a scalar for ``reference``.

        Raises:
            RuntimeError: before the first forward pass.
        """
        if self._last is None:
            raise RuntimeError("primal: the objective is that of a forward pass, and there was none yet")
        return ksvd_objective(*self._last, self.w_e, self.w_r, self.regulariser, self.convention)

    def auxiliary_loss(self) -> Tensor:
        """``η J²`` of the last forward pass, mean over the batch (eq. 10)."""
        return self.eta * self.objective().square().mean()

    def attention_matrix(self, x: Tensor) -> Tensor:
        """The induced kernel ``⟨f(X) φ_q(xᵢ), f(X) φ_k(xⱼ)⟩``, ``(B, H, N, N)``; never formed in training."""
        phi_q, phi_k, rows = self._features(x)
        if rows is None:
            return phi_q @ phi_k.mT
        return (phi_q @ rows.mT) @ (phi_k @ rows.mT).mT

    def flops(self, n: int) -> int:
        """Operations for one sample of ``n`` tokens, without the KSVD term, which only training adds."""
        d, rows, s = self.dim // self.heads, self.w_e.shape[1], self.s
        weights = 2 * self.heads * 2 * rows * d * s if self.data_dependent else 0
        scores = 2 * self.heads * 2 * n * d * s
        return (
            flops.linear(n, self.dim, 2 * self.dim, self.qk.bias is not None)
            + 2 * 3 * n * self.dim
            + weights
            + scores
            + flops.linear(n * self.heads, self.concat.in_features, d)
            + flops.linear(n, self.dim, self.dim)
        )

    def __getstate__(self) -> dict[str, Any]:
        """Without the tensors of the last forward pass, which belong to a graph and cannot be copied."""
        return {**self.__dict__, "_last": None}


@torch.no_grad()
def _orthogonal(weight: Tensor, convention: Convention) -> None:
    if convention == "reference":
        nn.init.orthogonal_(weight)
        return
    for head in weight:
        nn.init.orthogonal_(head)
