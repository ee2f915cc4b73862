"""BigBird: each block of tokens attends to its neighbours, to a few global blocks and to a few random ones.

Source: Zaheer et al. 2020, "Big Bird: Transformers for Longer Sequences", §2 and Appendix D, internal transformer
construction (ITC). Here the global blocks are the first ones, where the authors' program takes the first and the
last: a sequence that is padded at the end keeps its global blocks. A window ends at the ends of the sequence.
"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from kattn_cli.attention import flops
from kattn_cli.attention.heads import split_projections, unit_values
from kattn_cli.attention.mechanism import QKVAttention, refuse_longer
from kattn_cli.kernels.block_sparse import block_sparse_attention, window_blocks


class BigBirdAttention(QKVAttention):
    """Softmax attention within a pattern of blocks, drawn once for each head. ``(B, N, C)`` to the same.

    ``window_blocks`` counts a block itself and its neighbours on both sides. The pattern is ``blocks``,
    ``(H, R, M)``: which blocks of keys each block of queries sees, −1 for none.

    Raises:
        ValueError: if ``window_blocks`` is even; by ``forward``, if there are more than ``seq_len`` tokens.
    """

    blocks: Tensor

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        block_size: Annotated[int, Field(ge=1)] = 64,
        window_blocks: Annotated[int, Field(ge=1)] = 3,
        global_blocks: Annotated[int, Field(ge=0)] = 2,
        random_blocks: Annotated[int, Field(ge=0)] = 3,
        qkv_bias: bool = True,
    ) -> None:
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias)
        if window_blocks % 2 == 0:
            raise ValueError(f"window_blocks = {window_blocks} is even, and as many are seen on either side")
        self.seq_len, self.block_size, self.global_blocks = seq_len, block_size, global_blocks
        rows = -(-seq_len // block_size)
        self.register_buffer("blocks", draw_blocks(heads, rows, window_blocks // 2, global_blocks, random_blocks))

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        refuse_longer(q.shape[-2], self.seq_len)
        rows = -(-q.shape[-2] // self.block_size)
        blocks = self.blocks[:, :rows]
        return block_sparse_attention(
            q,
            k,
            v,
            blocks.masked_fill(blocks >= rows, -1),
            self.block_size,
            seeing_all=self.global_blocks * self.block_size,
            mask=mask,
        )

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the weights, ``(B, H, N, N)``: what comes out for values that are the unit vectors."""
        q, k, _ = split_projections(self.qkv(x), self.heads, 3)
        return self.operate(q, k, unit_values(q), mask)

    def operator_flops(self, n: int) -> int:
        """Count two products, the scaling and the softmax over the pairs of tokens in listed blocks and global rows."""
        rows = -(-n // self.block_size)
        pairs = rows * self.blocks.shape[-1] * self.block_size**2 + min(self.global_blocks * self.block_size, n) * n
        return pairs * (4 * self.dim + self.heads) + flops.softmax(self.heads, pairs)


def draw_blocks(heads: int, rows: int, half_window: int, global_blocks: int, random_blocks: int) -> Tensor:
    """Return global, neighbouring, then random blocks that are neither, as many as there are, ``(H, rows, M)``."""
    seen = window_blocks(rows, half_window, half_window, min(global_blocks, rows))
    unseen = (seen[..., None] != torch.arange(rows)).all(-2)  # (rows, rows)
    lots = torch.rand(heads, rows, rows).masked_fill(~unseen, -1)
    best = lots.topk(min(random_blocks, rows))
    blocks = torch.cat((seen.expand(heads, -1, -1), best.indices.masked_fill(best.values < 0, -1)), -1)
    return blocks.sort(-1, descending=True).values[..., :rows]
