"""Longformer: sliding-window attention, with a few tokens that see all and are seen by all. Linear in N.

Source: Beltagy et al. 2020, "Longformer: The Long-Document Transformer", §3.1, without dilation. As in the paper,
a window of w is w/2 tokens on each side of the token itself; the causal form keeps the past side only.
"""

from __future__ import annotations

import copy
from typing import Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_projections, unit_values
from kattn_cli.attention.key_value_cache import KeyValueCache, extend
from kattn_cli.attention.mechanism import QKVAttention
from kattn_cli.kernels.longformer import sliding_window_attention, window_layout, within_window
from kattn_cli.kernels.softmax import softmax_attention, softmax_matrix


class LongformerAttention(QKVAttention):
    """Softmax attention within ``window``. ``(B, N, C)`` to the same.

    The first ``global_tokens`` tokens attend to all with projections of their own, ``qkv_global``, which start as
    copies of ``qkv``; the others attend to them, as to their window, with ``qkv``.

    Raises:
        ValueError: if ``global_tokens`` are asked of the causal form, where no token may see all.
    """

    supports_causal = True

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        window: Annotated[int, Field(ge=2, multiple_of=2)] = 512,
        global_tokens: Annotated[int, Field(ge=0)] = 0,
        qkv_bias: bool = True,
    ) -> None:
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias)
        if causal and global_tokens:
            raise ValueError(f"global_tokens = {global_tokens} would see the future: none with causal")
        self.window, self.global_tokens = window, global_tokens
        if global_tokens:
            self.qkv_global = copy.deepcopy(self.qkv)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for every token, ``(B, N, C)``.

        ``x``: ``(B, N, C)``; ``mask``: ``(B, N)``, True where there is a token, or None for no padding."""
        q, k, v = split_projections(self.qkv(x), self.heads, 3)
        out = self.operate(q, k, v, mask)
        if self.global_tokens:
            q, k, v = split_projections(self.qkv_global(x), self.heads, 3)
            seeing_all = softmax_attention(q[:, :, : self.global_tokens], k, v, mask=mask)
            out = torch.cat((seeing_all, out[:, :, self.global_tokens :]), 2)
        return self.proj(join_heads(out))

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Return what each token sees in its window and of the global tokens."""
        return sliding_window_attention(
            q, k, v, self.window, global_keys=self.global_tokens, causal=self.causal, mask=mask
        )

    def decode(self, x: Tensor, state: KeyValueCache | None = None) -> tuple[Tensor, KeyValueCache]:
        """Return the outputs for the next tokens ``(B, n, C)``, and the last w/2 keys and values, for the next."""
        self.require_causal()
        q, k, v = split_projections(self.qkv(x), self.heads, 3)
        half = self.window // 2
        if state is None:
            return self.proj(join_heads(self.operate(q, k, v, None))), _last(half, k, v)
        k, v = extend(state, k, v)
        position = torch.arange(k.shape[-2], device=x.device)
        allowed = within_window(position[-q.shape[-2] :, None], position, self.window, causal=True)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return self.proj(join_heads(out)), _last(half, k, v)

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the weights, ``(B, H, N, N)``; those of the global tokens are on values of their own."""
        q, k, _ = split_projections(self.qkv(x), self.heads, 3)
        matrix = self.operate(q, k, unit_values(q), mask)
        if self.global_tokens:
            q, k, _ = split_projections(self.qkv_global(x), self.heads, 3)
            seeing_all = softmax_matrix(q[:, :, : self.global_tokens], k, mask=mask)
            matrix = torch.cat((seeing_all, matrix[:, :, self.global_tokens :]), 2)
        return matrix

    def operator_flops(self, n: int) -> int:
        """Count two products, the scaling and the softmax over the pairs in the blocks that are formed.

        With global tokens also their projections and what they see.
        """
        g = min(self.global_tokens, n)
        size, blocks = window_layout(n, self.window, self.global_tokens, self.causal)
        pairs = blocks.numel() * size**2 + g * n
        count = pairs * (4 * self.dim + self.heads) + flops.softmax(self.heads, pairs)
        if g:
            count += flops.linear(n, self.dim, 3 * self.dim, self.qkv_global.bias is not None)
        return count


def _last(count: int, k: Tensor, v: Tensor) -> KeyValueCache:
    """Return copies, so that a short state does not keep a long prompt in memory."""
    return k[:, :, -count:].clone(), v[:, :, -count:].clone()
