"""TSSA, token statistics self-attention. Linear in N: tokens meet only in two statistics per head.

Source: "Token Statistics Transformer: Linear-Time Attention via Variational Rate Reduction", eq. 10–11,
Appendices B and C.1, Algorithms 1 and 2; ``normalize: false`` is the ablation of Table 8.

``convention`` matters to the causal form alone: where the bias of a position is added (eq. 34, or Algorithm 2
and the authors' program).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_heads
from kattn_cli.attention.mechanism import AttentionMechanism, refuse_longer
from kattn_cli.kernels.causal_tssa.equations import Convention, TokenStatistics, causal_gains, causal_tssa_plain
from kattn_cli.kernels.causal_tssa.operator import causal_tssa
from kattn_cli.kernels.entry import token_mask
from kattn_cli.kernels.tssa.equations import membership_and_shrinkage
from kattn_cli.kernels.tssa.operator import tssa


class TokenStatisticsAttention(AttentionMechanism):
    """``−(w · Π · D)`` for ``w = U x``, then the output projection. ``(B, N, C)`` to the same.

    The causal form knows ``seq_len`` positions.
    """

    supports_causal = True

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        normalize: bool = True,
        convention: Convention = "paper",
        qkv_bias: bool = True,
    ) -> None:
        super().__init__(dim, heads, causal)
        self.normalize = normalize
        self.convention: Convention = convention
        self.u = nn.Linear(dim, dim, bias=qkv_bias)
        self.eta = nn.Parameter(torch.ones(heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, seq_len)) if causal else None
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for every token, ``(B, N, C)``.

        ``x``: ``(B, N, C)``; ``mask``: ``(B, N)``, True where there is a token, or None for no padding."""
        mask = token_mask("TSSA", mask, x)
        w = self.subspace_tokens(x)
        if self.position_bias is None:
            out = tssa(w, self.eta, self.normalize, mask)
        else:
            out = causal_tssa(w, self.eta, self._bias_of(x, mask), self.normalize, self.convention, mask)
        return self.proj(join_heads(out))

    def subspace_tokens(self, x: Tensor) -> Tensor:
        """Return ``w = U x``: the tokens in each head's subspace, ``(B, H, N, d)``."""
        return split_heads(self.u(x), self.heads)

    def membership(self, x: Tensor) -> Tensor:
        """Return Π, ``(B, H, N)``: how much of each token belongs to each head; sums to 1 over heads.

        Raises:
            ValueError: if the module is causal, where a token's membership is that among those before it.
        """
        if self.causal:
            raise ValueError("only the form that sees all tokens has one membership a token")
        return membership_and_shrinkage(self.subspace_tokens(x), self.eta, self.normalize)[0][..., 0]

    def singular_values(self, x: Tensor) -> Tensor:
        """Return the singular values of each head's ``w ↦ −w · Π · D``, ``(B, H, N·d)``, largest first.

        It is diagonal, with Π at most 1 and D at most 1. Softmax attention acts on the same space as ``A ⊗ I_d``.
        """
        w = self.subspace_tokens(x)
        if self.position_bias is None:
            membership, shrinkage = membership_and_shrinkage(w, self.eta, self.normalize)
            gains = membership * shrinkage
        else:
            gains, _ = causal_gains(w, self.eta, self._bias_of(x, None), self.normalize, self.convention)
        return gains.flatten(-2).sort(descending=True).values

    def decode(
        self, x: Tensor, state: tuple[int, TokenStatistics] | None = None
    ) -> tuple[Tensor, tuple[int, TokenStatistics]]:
        """Return the outputs for the next tokens ``(B, n, C)``, and the state, of constant size, for those that follow.

        Raises:
            ValueError: if the module is not causal, or past the last position it knows.
        """
        self.require_causal()
        assert self.position_bias is not None
        before, past = (0, None) if state is None else state
        after = before + x.shape[1]
        refuse_longer(after, self.position_bias.shape[1])
        w, bias = self.subspace_tokens(x), self.position_bias[None, :, before:after, None]
        out, past = causal_tssa_plain(w, self.eta, bias, self.normalize, self.convention, past=past)
        return self.proj(join_heads(out)), (after, past)

    def _bias_of(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the bias of each token's position among the tokens, ``(B or 1, H, N, 1)``."""
        assert self.position_bias is not None
        refuse_longer(x.shape[1], self.position_bias.shape[1])
        if mask is None:
            return self.position_bias[None, :, : x.shape[1], None]
        # A token's position counts tokens only; padding before the first one takes position 0, and no part.
        positions = (mask.long().cumsum(-1) - 1).clamp(min=0)
        return self.position_bias[:, positions].transpose(0, 1)[..., None]

    def flops(self, n: int) -> int:
        """Return the operations for ``n`` tokens: 12 an entry of w (causal: 14), and the softmax over heads."""
        return (
            flops.linear(n, self.dim, self.dim, self.u.bias is not None)
            + (14 if self.causal else 12) * n * self.dim
            + flops.softmax(n, self.heads)
            + flops.linear(n, self.dim, self.dim)
        )
