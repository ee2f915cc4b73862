"""Primal-Attention: self-attention as asymmetric kernel SVD, in its primal form. Linear in N.

Source: "Primal-Attention: Self-attention through Asymmetric Kernel SVD in Primal Representation",
eq. 6–11, Algorithm 1, Remark 4.1 and, for the causal form, Figure 3.

Where the authors' program differs from the paper, ``convention: reference`` computes what it computes: Λ
squared, means instead of sums over tokens (padding included), terms averaged over layers instead of summed,
and an initialisation that makes flattened heads orthonormal, not columns. Its programs differ among themselves:
images and Long-Range Arena square J after averaging over the batch (``square: batch``), series, reinforcement
learning and text sample by sample (``square: sample``, as the paper means); Long-Range Arena can take the trace
of W_{e|X} and W_{r|X} (``trace: projected``). The batch of ``square: batch`` is what a process sees at once: with
``train.accumulate`` or several processes a part of the step's batch, so the term depends on them; that of
``square: sample`` does not.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import split_heads, split_projections
from kattn_cli.attention.mechanism import AttentionMechanism
from kattn_cli.kernels.entry import token_mask
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact
from kattn_cli.kernels.primal.equations import (
    Convention,
    cosine_features,
    cosine_scores,
    exp_features,
    joint_scores,
    ksvd_objective,
    ksvd_objective_of,
    running_direction,
    running_mean,
    sampled_rows,
    sampled_tokens,
)


class RunningSums(NamedTuple):
    """All that causal Primal-Attention remembers of the tokens so far: its size does not depend on their number."""

    tokens: int
    q: Tensor
    """Σ q, ``(B, H, 1, d)``."""
    k: Tensor
    """Σ k, ``(B, H, 1, d)``."""
    log_phi_k: Tensor | None
    """log Σ g(k), ``(B, H, 1, d)``, for the exp feature map."""


class Scores(NamedTuple):
    """What the objective is made of: both sides' scores, both weights, and where the tokens are.

    ``energy``: the sums of squares of e and r over the tokens of the module's own convention, if they came along.
    """

    e: Tensor
    r: Tensor
    w_e: Tensor
    w_r: Tensor
    mask: Tensor | None
    energy: Tensor | None


class PrimalAttention(AttentionMechanism):
    """``[e; r] W_c + b_c`` for the scores of both sets of singular vectors. ``(B, N, C)`` to the same.

    ``eta`` weighs the KSVD term that :meth:`auxiliary_loss` adds to the loss of the task. f(X) has ``s · rank_multi``
    rows, but no more than ``seq_len``; with ``repeat_rows`` all of them, some rows of X then several times. With
    ``frozen``, W_e and W_r stay as they were drawn.

    Raises:
        ValueError: if the causal form is asked to depend on data, since f(X) samples the future; or if rows are to be
            repeated where none are sampled.
    """

    supports_causal = True

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        s: Annotated[int, Field(ge=1, le=4096)] = 20,
        rank_multi: Annotated[int, Field(ge=1, le=1000)] = 10,
        repeat_rows: bool = False,
        eta: Annotated[float, Field(ge=0)] = 0.1,
        projection: Literal["data-dependent", "data-independent"] = "data-dependent",
        feature_map: Literal["cosine", "exp"] = "cosine",
        scores: Literal["both", "e"] = "both",
        trace: Literal["weights", "projected"] = "weights",
        square: Literal["batch", "sample"] = "batch",
        frozen: bool = False,
        convention: Convention = "paper",
        qkv_bias: bool = True,
    ) -> None:
        super().__init__(dim, heads, causal)
        self.s, self.eta = s, eta
        self.scores: str = scores
        self.trace: str = trace
        self.square: str = square
        self.convention: Convention = convention
        self.data_dependent = projection == "data-dependent"
        if causal and self.data_dependent:
            raise ValueError("the causal form needs projection: data-independent, since f(X) samples the future")
        d = self.head_dim
        if repeat_rows and not self.data_dependent:
            raise ValueError("repeat_rows needs projection: data-dependent; the other samples no rows")
        wanted = s * rank_multi
        rows = (wanted if repeat_rows else min(wanted, seq_len)) if self.data_dependent else d
        self.qk = nn.Linear(dim, 2 * dim, bias=qkv_bias)
        self.w_e = nn.Parameter(torch.empty(heads, rows, s))
        self.w_r = nn.Parameter(torch.empty(heads, rows, s))
        self.regulariser = nn.Parameter(torch.rand(heads, s))
        self.directions: Tensor | None
        # A buffer: the directions of Remark 4.1 are drawn once, not learned, and belong into the checkpoint.
        self.register_buffer("directions", torch.randn(d, d) if feature_map == "exp" else None)
        self.concat = nn.Linear(2 * s if scores == "both" else s, d)
        self.proj = nn.Linear(dim, dim)
        self._last: Scores | None = None
        for weight in (self.w_e, self.w_r):
            _orthogonal(weight, convention)
            weight.requires_grad_(not frozen)

    @property
    def layer_reduction(self) -> str:
        """Return how the terms of several layers join: eq. 10 sums them, the authors' program averages."""
        return "mean" if self.convention == "reference" else "sum"

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for every token, ``(B, N, C)``.

        ``x``: ``(B, N, C)``; ``mask``: ``(B, N)``, True where there is a token, or None for no padding."""
        mask = token_mask("Primal-Attention", mask, x)
        q, k = self._inputs(x, mask)
        rows = self._sampled(x, mask)
        energy = None
        if self.directions is None:
            # The authors' program counts padded tokens in e, r and the loss.
            counted = None if self.convention == "reference" else mask
            scores, energy = cosine_scores(q, k, rows, self.w_e, self.w_r, counted)
        else:
            scores = joint_scores(*self._map(q, k, mask)[:2], rows, self.w_e, self.w_r)
        self._remember(scores, rows, mask, energy)
        return self._project(scores.to(q.dtype), mask)

    def decode(self, x: Tensor, state: RunningSums | None = None) -> tuple[Tensor, RunningSums]:
        """Return the outputs for the next tokens ``(B, n, C)``, and the state, of constant size, for those that follow.

        Raises:
            ValueError: if the module is not causal.
        """
        self.require_causal()
        q, k = split_projections(self.qk(x), self.heads, 2)
        before = 0 if state is None else state.tokens
        # In bfloat16 a running sum would soon no longer grow by a token.
        sum_q, sum_k = exact(q).cumsum(-2), exact(k).cumsum(-2)
        if state is not None:
            sum_q, sum_k = sum_q + state.q, sum_k + state.k
        counts = torch.arange(before + 1, before + x.shape[1] + 1, device=x.device)[:, None]
        mean_q, mean_k = ((total / counts).to(q.dtype) for total in (sum_q, sum_k))
        phi_q, phi_k, sums = self._map(mean_q, mean_k, before=None if state is None else state.log_phi_k)
        # Clones: a view would keep the sums of all tokens alive in the state.
        following = RunningSums(before + x.shape[1], sum_q[..., -1:, :].clone(), sum_k[..., -1:, :].clone(), sums)
        scores = joint_scores(phi_q, phi_k, None, self.w_e, self.w_r)
        return self._project(scores.to(q.dtype), None), following

    def _inputs(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return queries and keys, ``(B, H, N, d)``; causal: running means, or multiples with the same features."""
        q, k = split_projections(self.qk(x), self.heads, 2)
        if self.causal:
            so_far = running_direction if self.directions is None else running_mean
            q, k = so_far(q, mask), so_far(k, mask)
        return q, k

    def _features(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        return self._map(*self._inputs(x, mask), mask)[:2]

    def _map(
        self, q: Tensor, k: Tensor, mask: Tensor | None = None, before: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        if self.directions is None:
            return cosine_features(q), cosine_features(k), None
        return exp_features(q, k, self.directions, self.causal, mask, before)

    def _sampled(self, x: Tensor, mask: Tensor | None) -> Tensor | None:
        """Return f(X), ``(B, H, n, d)``: rows of x taken evenly among the tokens (reference: among all)."""
        if not self.data_dependent:
            return None
        count = self.w_e.shape[1]
        if not x.shape[1]:
            rows = x.new_zeros(len(x), count, self.dim)  # of no tokens
        elif mask is None or self.convention == "reference":
            rows = x[:, sampled_rows(x.shape[1], count, self.convention).to(x.device)]
        else:
            rows = x.gather(1, sampled_tokens(mask, count)[..., None].expand(-1, -1, self.dim))
        return split_heads(rows, self.heads)

    def _remember(self, scores: Tensor, rows: Tensor | None, mask: Tensor | None, energy: Tensor | None) -> None:
        weights: tuple[Tensor, Tensor] = (self.w_e, self.w_r)
        if self.trace == "projected" and rows is not None:
            weights = (rows.mT @ self.w_e, rows.mT @ self.w_r)
        self._last = Scores(scores[..., : self.s], scores[..., self.s :], *weights, mask, energy)

    def _project(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        used = scores if self.scores == "both" else scores[..., : self.s]
        out = self.concat(used.transpose(1, 2))  # (B, N, H, d)
        if mask is not None:
            # Here, since the bias of W_c has just filled the padding.
            out = out.masked_fill(~mask[..., None, None], 0)
        return self.proj(out.flatten(2))

    def objective(self, convention: Convention | None = None) -> Tensor:
        """Return J of the last forward pass, ``(B,)``, one a sample; by default in the module's own convention.

        Raises:
            RuntimeError: before the first forward pass.
        """
        if self._last is None:
            raise RuntimeError("primal: the objective is that of a forward pass, and there was none yet")
        convention = convention or self.convention
        e, r, w_e, w_r, mask, energy = self._last
        # The energies that came along are over the tokens of the module's own convention: with padding, of no other.
        if energy is None or (mask is not None and convention != self.convention):
            return ksvd_objective(e, r, w_e, w_r, self.regulariser, convention, mask)
        return ksvd_objective_of(energy, e.shape[-2], w_e, w_r, self.regulariser, convention)

    def auxiliary_loss(self) -> Tensor:
        """Return ``η J²`` of the last forward pass (eq. 10), mean over the batch; in reference also ``η (mean J)²``."""
        objective = self.objective()
        # The authors average over the batch before they square for images and LRA; for series, RL and text, after.
        if self.convention == "reference" and self.square == "batch":
            return self.eta * objective.mean().square()
        return self.eta * objective.square().mean()  # eq. 10

    def dual_view(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the induced kernel ``(B, H, N, N)``, and e and r by the primal weights, ``(B, H, N, s)``.

        :meth:`objective` is then that of ``x``.
        """
        self(x)
        assert self._last is not None
        return self.attention_matrix(x), self._last.e, self._last.r

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the induced kernel ``⟨f(X) φ_q(xᵢ), f(X) φ_k(xⱼ)⟩``, ``(B, H, N, N)``; never formed in training."""
        mask = token_mask("Primal-Attention", mask, x)
        phi_q, phi_k = self._features(x, mask)
        rows = self._sampled(x, mask)
        rows = None if rows is None else rows.to(phi_q.dtype)
        phi_q, phi_k = without_padding(phi_q, mask), without_padding(phi_k, mask)
        if rows is None:
            return phi_q @ phi_k.mT
        # In this order no product is larger than N × n but the kernel itself.
        return (phi_q @ rows.mT) @ (phi_k @ rows.mT).mT

    def flops(self, n: int) -> int:
        """Return the operations for one sample of ``n`` tokens, without the KSVD term, which only training adds."""
        d, rows, s = self.head_dim, self.w_e.shape[1], self.s
        weights = 2 * self.heads * 2 * rows * d * s if self.data_dependent else 0
        features = 2 * 3 * n * self.dim + (2 * 2 * n * self.dim if self.causal else 0)
        if self.directions is not None:
            features += 2 * n * self.dim * (2 * d + 5)
        return (
            flops.linear(n, self.dim, 2 * self.dim, self.qk.bias is not None)
            + features
            + weights
            + 2 * self.heads * 2 * n * d * s
            + flops.linear(n * self.heads, self.concat.in_features, d)
            + flops.linear(n, self.dim, self.dim)
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the tensors of the last forward pass, which belong to a graph and cannot be copied."""
        return {**self.__dict__, "_last": None}


@torch.no_grad()
def _orthogonal(weight: Tensor, convention: Convention) -> None:
    if convention == "reference":
        # PyTorch flattens a 3-D tensor: the heads come out orthonormal to each other, not the columns within a head.
        nn.init.orthogonal_(weight)
        return
    for head in weight:
        nn.init.orthogonal_(head)
