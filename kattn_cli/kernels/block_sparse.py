"""Block-sparse attention: each block of queries attends to a list of blocks of keys.

B: batch, H: heads, N: tokens, d: head width; the tokens stand in R = ⌈N / size⌉ blocks of ``size``, and each
block has a list of M others, so that time and memory grow with N · M · size.
A list of blocks is ``(H or 1, R, M)``: block numbers, −1 for none, every block once and each block in its own list.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import check_mask
from kattn_cli.kernels.precision import exactly
from kattn_cli.kernels.softmax import softmax_attention

Sees = Callable[[Tensor, Tensor], Tensor]
"""From the positions of queries and of keys to whether the one may see the other; each may see itself."""


def window_blocks(rows: int, before: int, after: int, first: int, device: torch.device | None = None) -> Tensor:
    """Return the lists of a sliding window, ``(rows, first + M)``: the ``first`` blocks of all, then those around."""
    near = torch.arange(rows, device=device)[:, None] + torch.arange(-before, after + 1, device=device)
    near = near.masked_fill((near < first) | (near >= rows), -1)
    return torch.cat((torch.arange(first, device=device).expand(rows, -1), near), -1)


@exactly
def block_sparse_attention_naive(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    blocks: Tensor,
    size: int,
    *,
    sees: Sees | None = None,
    seeing_all: int = 0,
    mask: Tensor | None = None,
) -> Tensor:
    """Return softmax attention, ``(B, H, N, d)``, under an N × N mask that is drawn one block at a time."""
    n = q.shape[-2]
    listed = torch.zeros(blocks.shape[0], n, n, dtype=torch.bool, device=q.device)
    for head, row_blocks in enumerate(blocks.tolist()):
        for row, columns in enumerate(row_blocks):
            for column in columns:
                if column >= 0:
                    listed[head, row * size : (row + 1) * size, column * size : (column + 1) * size] = True
    position = torch.arange(n, device=q.device)
    if sees is not None:
        listed &= sees(position[:, None], position)
    listed[:, :seeing_all] = True
    itself = torch.eye(n, dtype=torch.bool, device=q.device)
    allowed = listed if mask is None else listed & mask[:, None, None, :] | itself
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~allowed, -math.inf).softmax(-1) @ v


def block_sparse_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    blocks: Tensor,
    size: int,
    *,
    sees: Sees | None = None,
    seeing_all: int = 0,
    mask: Tensor | None = None,
) -> Tensor:
    """Return softmax attention, ``(B, H, N, d)``, of each block of queries to the blocks of keys listed for it.

    Args:
        blocks: ``(H or 1, R, M)``, which blocks of keys each block of queries may see.
        size: tokens in a block; the last block may be shorter.
        sees: of the tokens in those blocks, which; all where it is None.
        seeing_all: so many tokens at the start attend to every token.
        mask: ``(B, N)``, True where there is a token.
    """
    check_mask("block-sparse attention", mask, k)
    if not q.shape[-2]:
        return v
    if version() == "slow":
        return block_sparse_attention_naive(q, k, v, blocks, size, sees=sees, seeing_all=seeing_all, mask=mask)
    heads, n, rows = q.shape[1], q.shape[-2], blocks.shape[-2]
    behind = rows * size - n
    # A list's empty places, −1, gather block 0, which is masked below.
    number = blocks.clamp(min=0)
    flat = (number + rows * torch.arange(heads, device=q.device)[:, None, None]).flatten()

    def cut(z: Tensor) -> Tensor:
        return F.pad(z, (0, 0, 0, behind)).unflatten(2, (rows, size)).flatten(1, 2)  # (B, H·R, size, d)

    def listed(z: Tensor) -> Tensor:
        return cut(z).index_select(1, flat).unflatten(1, (heads * rows, -1)).flatten(2, 3)  # (B, H·R, M·size, d)

    there = torch.ones(1, n, dtype=torch.bool, device=q.device) if mask is None else mask
    within = torch.arange(size, device=q.device)
    query = torch.arange(rows * size, device=q.device).view(rows, size, 1)
    key = (number[..., None] * size + within).flatten(-2)[..., None, :]  # (H or 1, R, 1, M·size)
    # Each sees itself, padding too: a softmax over nothing is not a number.
    allowed = F.pad(there, (0, behind))[:, key] | (key == query)
    allowed = allowed & (blocks >= 0).repeat_interleave(size, -1)[..., None, :]
    if sees is not None:
        allowed = allowed & sees(query, key)
    allowed = allowed.expand(-1, heads, -1, -1, -1).flatten(1, 2)

    out = F.scaled_dot_product_attention(cut(q), listed(k), listed(v), attn_mask=allowed)
    out = out.unflatten(1, (heads, rows)).flatten(2, 3)[:, :, :n]
    if not seeing_all:
        return out
    return torch.cat((softmax_attention(q[:, :, :seeing_all], k, v, mask=mask), out[:, :, seeing_all:]), 2)
