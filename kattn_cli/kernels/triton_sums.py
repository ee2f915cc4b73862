"""What the kernels of TSSA share: sizes of tiles, sums of squares over stretches of tokens, sums over those before.

B: batch, N: tokens, H: heads, d: head width, C = H·d; tensors are ``(B, N, H, d)``, contiguous. A program holds
powers of two of heads and features, and masks those too many. Partial sums are written, never added atomically, so
that the same input gives the same bits.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

ENTRIES = 64
"""Of a tile, those each thread holds."""
SCANNED_ROWS, SCANNED_COLUMNS = 256, 16
FUSED, UNFUSED = {"enable_fp_fusion": True}, {"enable_fp_fusion": False}
"""Whether ``a·b + c`` is rounded once; passed at every launch, since Triton 3.10 changes the default."""


class Tile(NamedTuple):
    """Tokens, heads and features that a program holds at once, and its warps of 32 threads."""

    tokens: int
    heads: int
    width: int
    warps: int


def tile(heads: int, width: int, entries: int = ENTRIES) -> Tile:
    """Return all heads of as many tokens (a power of two, up to 64) as give a thread up to ``entries`` numbers."""
    heads, width = max(2, triton.next_power_of_2(heads)), max(16, triton.next_power_of_2(width))
    warps = min(8, max(1, heads * width // 128))
    return Tile(min(64, max(1, entries * 32 * warps // (heads * width))), heads, width, warps)


def on_device_of(z: Tensor) -> AbstractContextManager[object]:
    """Return a block that launches on the device of ``z``: Triton's default, the current one, may be another."""
    return torch.cuda.device(z.device) if z.is_cuda else nullcontext()


@cache
def multiprocessors(device: torch.device) -> int:
    """Return how many multiprocessors a GPU has; 1 for the interpreter."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def as_bytes(mask: Tensor | None, w: Tensor) -> Tensor:
    """Return the mask for a kernel; without one, any pointer."""
    return w if mask is None else mask.contiguous().view(torch.uint8)


def squares(w: Tensor, span: int) -> Tensor:
    """Return Σ w² of each ``span`` of tokens, ``(B, ⌈N / span⌉, C)``; reads ``w`` once."""
    samples, tokens, heads, width = w.shape
    columns = min(128, max(16, triton.next_power_of_2(heads * width)))
    parts = triton.cdiv(tokens, span)
    sums = w.new_empty(samples, parts, heads * width, dtype=torch.promote_types(w.dtype, torch.float32))
    rows = min(64, triton.next_power_of_2(span))
    grid = (samples * parts, triton.cdiv(heads * width, columns))
    _squares[grid](w, sums, tokens, span, parts, C=heads * width, ROWS=rows, COLUMNS=columns, num_warps=4, **FUSED)
    return sums


def sums_before(sums: Tensor, columns: int, reverse: bool = False) -> tuple[Tensor, Tensor]:
    """Return, of rows ``(B, n, R)``, the sum before each (``reverse``: after each); zeros where there is none.

    In two tensors: the first ``columns`` and the others. No sum contains what is then taken off again, which would
    cost a small one its digits. Moves twice the size of ``sums``.
    """
    samples, rows, width = sums.shape
    first, second = sums.new_empty(samples, rows, columns), sums.new_empty(samples, rows, width - columns)
    grid = (samples, triton.cdiv(width, SCANNED_COLUMNS))
    _sums_before[grid](
        sums,
        first,
        second,
        rows,
        R=width,
        FIRST=columns,
        REVERSE=reverse,
        ROWS=min(SCANNED_ROWS, max(16, triton.next_power_of_2(rows))),
        COLUMNS=SCANNED_COLUMNS,
        num_warps=4,
        **FUSED,
    )
    return first, second


@triton.jit
def entries_of_heads(H: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr):
    """The heads; of all heads of one token ``(HEADS, WIDTH)`` each entry's place, and whether it exists."""
    heads, features = tl.arange(0, HEADS), tl.arange(0, WIDTH)
    return heads, heads[:, None] * D + features[None, :], (heads < H)[:, None] & (features < D)[None, :]


@triton.jit
def square_of(w, row, here, columns, there, C: tl.constexpr, real: tl.constexpr):
    """w² of all heads of some tokens, ``(TOKENS, HEADS, WIDTH)``, 0 where there is nothing."""
    wanted = here[:, None, None] & there[None, :, :]
    x = tl.load(w + row[:, None, None] * C + columns[None, :, :], mask=wanted, other=0.0).to(real)
    return x * x


@triton.jit
def softmax_over_heads(logits, heads, H: tl.constexpr):
    """Of ``(TOKENS, HEADS)``, 0 at heads too many."""
    logits = tl.where((heads < H)[None, :], logits, float("-inf"))
    exponentials = tl.exp(logits - tl.max(logits, axis=1)[:, None])
    return exponentials / tl.sum(exponentials, axis=1)[:, None]


@triton.jit
def are_tokens(mask, row, here, MASKED: tl.constexpr):
    """Which of some rows are there and no padding."""
    if MASKED:
        here = here & (tl.load(mask + row, mask=here, other=0) != 0)
    return here


@triton.jit(do_not_specialize=["tokens", "span", "parts"])
def _squares(w, sums, tokens, span, parts, C: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    sample = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), sums.dtype.element_ty)
    for offset in range(0, span, ROWS):
        within = offset + tl.arange(0, ROWS)
        rows = part * span + within
        there = ((within < span) & (rows < tokens))[:, None] & (columns < C)[None, :]
        x = tl.load(w + (sample * tokens + rows)[:, None] * C + columns[None, :], mask=there, other=0.0)
        x = x.to(sums.dtype.element_ty)
        total += tl.sum(x * x, axis=0)
    tl.store(sums + (sample * parts + part) * C + columns, total, mask=columns < C)


@triton.jit(do_not_specialize=["rows"])
def _sums_before(
    sums,
    first,
    second,
    rows,
    R: tl.constexpr,
    FIRST: tl.constexpr,
    REVERSE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    sample = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    before = tl.zeros((COLUMNS,), sums.dtype.element_ty)
    for start in range(0, rows, ROWS):
        step = start + tl.arange(0, ROWS)
        row = step
        source = step - 1
        if REVERSE:
            row = rows - 1 - step
            source = row + 1
        there = (step < rows)[:, None] & (columns < R)[None, :]
        terms = tl.load(
            sums + (sample * rows + source)[:, None] * R + columns[None, :],
            mask=there & (step > 0)[:, None],
            other=0.0,
        )
        running = before[None, :] + tl.cumsum(terms, axis=0)
        before += tl.sum(terms, axis=0)
        target = (sample * rows + row)[:, None]
        tl.store(first + target * FIRST + columns[None, :], running, mask=there & (columns < FIRST)[None, :])
        in_second = there & (columns >= FIRST)[None, :]
        tl.store(second + target * (R - FIRST) + columns[None, :] - FIRST, running, mask=in_second)
