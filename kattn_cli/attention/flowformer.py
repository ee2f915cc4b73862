"""Flow-Attention. Linear in N: sources compete for the sinks' attention, sinks are allocated what arrives.

Source: Wu et al. 2022, "Flowformer: Linearizing Transformers with Conservation Flows". The causal form has a
state of constant size.

The competition's softmax is multiplied by the number of tokens, and causal sums are compared as means, as in the
authors' program. That program also clamps Ô at 1 before the softmax. Where all see all, the mean of Ô over sources
is 1, so that this silences the competition among all above the mean; here other care keeps the softmax from
overflowing.
"""

from __future__ import annotations

from torch import Tensor

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.mechanism import QKVAttention
from kattn_cli.kernels.flowformer import FlowState, flow_attention, flow_decode, flow_factors
from kattn_cli.kernels.linear import CHUNK, linear_attention_matrix


class FlowAttention(QKVAttention):
    """``sigmoid(Î) · φ(q)/I (φ(k)ᵀ (N softmax(Ô) · v))``, φ the sigmoid; then the output projection."""

    supports_causal = True

    def __init__(self, dim: int, heads: int, *, seq_len: int, causal: bool = False, qkv_bias: bool = True) -> None:
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias)

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return flow_attention(q, k, v, causal=self.causal, mask=mask)

    def decode(self, x: Tensor, state: FlowState | None = None) -> tuple[Tensor, FlowState]:
        """Return the outputs for the next tokens ``(B, n, C)``, and the state to give back with those that follow."""
        self.require_causal()
        q, k, v = split_projections(self.qkv(x), self.heads, 3)
        out, state = flow_decode(q, k, v, state)
        return self.proj(join_heads(out)), state

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what the values are multiplied by, ``(B, H, N, N)``. Positive; rows do not sum to 1."""
        q, k, _ = split_projections(self.qkv(x), self.heads, 3)
        sinks, sources, _ = flow_factors(q, k, self.causal, mask)
        return linear_attention_matrix(sinks, sources, causal=self.causal, normalise=False).to(x.dtype)

    def operator_flops(self, n: int) -> int:
        """Count a sigmoid (3) of q and k, four sums, products and scalings each; softmax; 13 a token and head.

        Then two products of width d; in the causal form also two within a chunk of tokens.
        """
        width = self.head_dim + min(CHUNK, n) if self.causal else self.head_dim
        flows = 22 * n * self.dim + flops.softmax(self.heads, n) + 13 * self.heads * n
        return flows + 4 * n * self.dim * width
