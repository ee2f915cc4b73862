"""Reformer: attention among tokens that a locality-sensitive hash puts together. N log N, for the sorting.

Source: Kitaev et al. 2020, "Reformer: The Efficient Transformer", §2 and Appendix A; queries and keys share one
projection, and keys have unit length. The chunks' length m is given and there are 2N/m buckets (eq. 5).

Our deviations: the hash is drawn once for a module, not for each batch. In the causal form chunks are counted
within a bucket: counted over the sorted list, as printed, they let later tokens decide what earlier ones see.

``convention: reference`` is Hugging Face's module as the Primal authors ran it: keys are ``k / √(‖k‖² + d·1e-6)``
without another 1/√d; a token sees its chunk and the one before whatever the bucket, through all rounds and around;
a key met in several rounds counts as often.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_projections, unit_values
from kattn_cli.attention.mechanism import AttentionMechanism
from kattn_cli.kernels.precision import exact
from kattn_cli.kernels.reformer import lsh_attention, shared_attention


class ReformerAttention(AttentionMechanism):
    """Attention within hash buckets over ``hashes`` rounds, then the output projection. ``(B, N, C)`` to the same.

    Built for at most ``chunk`` tokens it hashes nothing: every token sees all others.

    Raises:
        ValueError: if ``convention: reference`` is asked of the causal form, which the authors did not run.
    """

    supports_causal = True
    rotations: Tensor

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        hashes: Annotated[int, Field(ge=1)] = 2,
        chunk: Annotated[int, Field(ge=1)] = 64,
        convention: Literal["paper", "reference"] = "paper",
        qkv_bias: bool = True,
    ) -> None:
        super().__init__(dim, heads, causal)
        if causal and convention == "reference":
            raise ValueError("convention = reference has no causal form")
        self.hashes, self.chunk, self.convention = hashes, chunk, convention
        self.kv = nn.Linear(dim, 2 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)
        half_the_buckets = seq_len // chunk if seq_len > chunk else 0
        self.register_buffer("rotations", torch.randn(heads, hashes, self.head_dim, half_the_buckets))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for every token, ``(B, N, C)``.

        ``x``: ``(B, N, C)``; ``mask``: ``(B, N)``, True where there is a token, or None for no padding."""
        q, v = split_projections(self.kv(x), self.heads, 2)
        return self.proj(join_heads(self.operate(q, v, mask)))

    def operate(self, q: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Return the output, ``(B, H, N, d)``, from shared queries and keys and from values of that shape."""
        if self.convention == "reference":
            k = exact(q) * (exact(q).square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        else:
            k = F.normalize(exact(q), dim=-1)
        k = (k / math.sqrt(self.head_dim)).to(q.dtype)
        if not self.rotations.shape[-1]:
            return shared_attention(q, k, v, causal=self.causal, mask=mask)
        across_buckets = self.convention == "reference"
        return lsh_attention(
            q, k, v, self.rotations, self.chunk, causal=self.causal, across_buckets=across_buckets, mask=mask
        )

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the weights, all rounds together, ``(B, H, N, N)``."""
        q, _ = split_projections(self.kv(x), self.heads, 2)
        return self.operate(q, unit_values(q), mask)

    def flops(self, n: int) -> int:
        """Return the operations for one sample of ``n`` tokens.

        Each round: the rotation, the comparison of buckets, the sort; and for each query two chunks of keys: two
        products, the softmax and, for each round, four to count in how many rounds a pair meets.
        """
        projections = flops.linear(n, self.dim, 2 * self.dim, self.kv.bias is not None)
        projections += flops.linear(n, self.dim, self.dim) + 5 * n * self.dim
        half_the_buckets = self.rotations.shape[-1]
        if not half_the_buckets:
            return projections + 4 * n * n * self.dim + flops.softmax(self.heads * n, n)
        hashing = flops.linear(n, self.dim, half_the_buckets, bias=False) + 2 * n * self.heads * half_the_buckets
        sorting = self.heads * n * math.ceil(math.log2(n + 1))
        ends = 2 * half_the_buckets + 1 if self.causal else 1  # chunks that need not be full
        chunks = (n + ends * (self.chunk - 1)) // self.chunk
        pairs = chunks * 2 * self.chunk**2
        counting = 0 if self.convention == "reference" else 4 * self.hashes * self.heads * pairs
        attention = 4 * pairs * self.dim + flops.softmax(self.heads, pairs) + counting
        return projections + self.hashes * (hashing + sorting + attention)
