"""The passes of TSSA and of its gradient over ``w``; what they are for and what they move is in ``triton.py``.

Arguments are pointers to contiguous tensors, of their sizes in ``triton.py``, then numbers of tokens: all, of a
program; of programs a sample; of parts a sample that a sum comes in. H heads of D features, in powers of two HEADS and
WIDTH.
"""

from __future__ import annotations

import triton
import triton.language as tl

from kattn_cli.kernels.triton_sums import are_tokens, entries_of_heads, softmax_over_heads, square_of


@triton.jit
def _summed(
    sums,
    first,
    parts,
    columns,
    there,
    STRIDE: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
):
    """The sum of rows ``first`` to ``first + parts`` at ``columns`` ``(HEADS, WIDTH)``."""
    total = tl.zeros((HEADS, WIDTH), sums.dtype.element_ty)
    for start in range(0, parts, TOKENS):
        part = start + tl.arange(0, TOKENS)
        rows = (first + part)[:, None, None] * STRIDE
        wanted = (part < parts)[:, None, None] & there[None, :, :]
        total += tl.sum(tl.load(sums + rows + columns[None, :, :], mask=wanted, other=0.0), axis=0)
    return total


@triton.jit(do_not_specialize=["tokens", "span", "programs", "parts"])
def membership_pass(
    w,
    eta,
    mask,
    norms,
    energy,
    membership,
    inverse_norms,
    sums,
    tokens,
    span,
    programs,
    parts,
    NORMALIZE: tl.constexpr,
    MASKED: tl.constexpr,
    FLOOR: tl.constexpr,
    H: tl.constexpr,
    D: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
):
    real = energy.dtype.element_ty
    sample = (tl.program_id(0) // programs).to(tl.int64)
    program = tl.program_id(0) % programs
    heads, columns, there = entries_of_heads(H, D, HEADS, WIDTH)
    inverse = tl.full((HEADS, WIDTH), 1.0, real)
    if NORMALIZE:
        squared = _summed(norms, sample * parts, parts, columns, there, H * D, HEADS, WIDTH, TOKENS)
        inverse = 1.0 / tl.where(squared < FLOOR, FLOOR, squared)
    if program == 0:
        tl.store(inverse_norms + sample * H * D + columns, inverse, mask=there)
    weights = tl.load(eta + heads, mask=heads < H, other=0.0).to(real)
    moment = tl.zeros((HEADS, WIDTH), real)
    mass = tl.zeros((HEADS,), real)
    for offset in range(0, span, TOKENS):
        token = program * span + offset + tl.arange(0, TOKENS)
        row = sample * tokens + token
        here = token < tokens
        square = square_of(w, row, here, columns, there, H * D, real)
        e = tl.sum(square * inverse[None, :, :], axis=2)
        pi = softmax_over_heads(weights[None, :] * e, heads, H)
        target = row[:, None] * H + heads[None, :]
        stored = here[:, None] & (heads < H)[None, :]
        tl.store(energy + target, e, mask=stored)
        tl.store(membership + target, pi, mask=stored)
        counted = are_tokens(mask, row, here, MASKED)
        mass += tl.sum(tl.where(counted[:, None], pi, 0.0), axis=0)
        moment += tl.sum(pi[:, :, None] * square, axis=0)
    part = sums + (sample * programs + program) * (H * D + H)
    tl.store(part + columns, moment, mask=there)
    tl.store(part + H * D + heads, mass, mask=heads < H)


@triton.jit(do_not_specialize=["tokens", "span", "programs", "parts"])
def output_pass(
    w,
    membership,
    sums,
    shrinkage,
    mass,
    out,
    tokens,
    span,
    programs,
    parts,
    EPSILON: tl.constexpr,
    H: tl.constexpr,
    D: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
):
    real = membership.dtype.element_ty
    sample = (tl.program_id(0) // programs).to(tl.int64)
    program = tl.program_id(0) % programs
    heads, columns, there = entries_of_heads(H, D, HEADS, WIDTH)
    first = sample * parts
    moment = _summed(sums, first, parts, columns, there, H * D + H, HEADS, WIDTH, TOKENS)
    of_heads, some = H * D + heads[:, None], (heads < H)[:, None]
    total = _summed(sums, first, parts, of_heads, some, H * D + H, HEADS, 1, TOKENS) + EPSILON
    shrink = 1.0 / (1.0 + moment / total)
    if program == 0:
        tl.store(shrinkage + sample * H * D + columns, shrink, mask=there)
    if program == 0:
        tl.store(mass + sample * H + heads[:, None], total, mask=some)
    for offset in range(0, span, TOKENS):
        token = program * span + offset + tl.arange(0, TOKENS)
        row = sample * tokens + token
        here = token < tokens
        entries = row[:, None, None] * (H * D) + columns[None, :, :]
        wanted = here[:, None, None] & there[None, :, :]
        x = tl.load(w + entries, mask=wanted, other=0.0).to(real)
        pi = tl.load(
            membership + row[:, None] * H + heads[None, :], mask=here[:, None] & (heads < H)[None, :], other=0.0
        )
        tl.store(out + entries, (-x * pi[:, :, None] * shrink[None, :, :]).to(out.dtype.element_ty), mask=wanted)


@triton.jit(do_not_specialize=["tokens", "span", "programs"])
def products_pass(
    w,
    grad,
    membership,
    shrinkage,
    product,
    sums,
    tokens,
    span,
    programs,
    H: tl.constexpr,
    D: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
):
    """``Σ_j G w D`` of each token and head, and ``Σ_i Π G w``."""
    real = membership.dtype.element_ty
    sample = (tl.program_id(0) // programs).to(tl.int64)
    program = tl.program_id(0) % programs
    heads, columns, there = entries_of_heads(H, D, HEADS, WIDTH)
    shrink = tl.load(shrinkage + sample * H * D + columns, mask=there, other=0.0)
    weighted = tl.zeros((HEADS, WIDTH), real)
    for offset in range(0, span, TOKENS):
        token = program * span + offset + tl.arange(0, TOKENS)
        row = sample * tokens + token
        here = token < tokens
        entries = row[:, None, None] * (H * D) + columns[None, :, :]
        wanted = here[:, None, None] & there[None, :, :]
        x = tl.load(w + entries, mask=wanted, other=0.0).to(real)
        x = x * tl.load(grad + entries, mask=wanted, other=0.0).to(real)
        target = row[:, None] * H + heads[None, :]
        stored = here[:, None] & (heads < H)[None, :]
        pi = tl.load(membership + target, mask=stored, other=0.0)
        tl.store(product + target, tl.sum(x * shrink[None, :, :], axis=2), mask=stored)
        weighted += tl.sum(pi[:, :, None] * x, axis=0)
    tl.store(sums + (sample * programs + program) * (H * D) + columns, weighted, mask=there)


@triton.jit(do_not_specialize=["tokens", "span", "programs", "parts"])
def energies_pass(
    w,
    eta,
    mask,
    energy,
    membership,
    shrinkage,
    mass,
    product,
    sums,
    by_energy,
    by_moment,
    spread,
    tokens,
    span,
    programs,
    parts,
    NORMALIZE: tl.constexpr,
    MASKED: tl.constexpr,
    H: tl.constexpr,
    D: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
):
    """The gradient of the energies; in parts ``Σ_i dE w²`` and the gradient of η."""
    real = membership.dtype.element_ty
    sample = (tl.program_id(0) // programs).to(tl.int64)
    program = tl.program_id(0) % programs
    heads, columns, there = entries_of_heads(H, D, HEADS, WIDTH)
    shrink = tl.load(shrinkage + sample * H * D + columns, mask=there, other=1.0)
    total = tl.load(mass + sample * H + heads, mask=heads < H, other=1.0)
    weighted = _summed(sums, sample * parts, parts, columns, there, H * D, HEADS, WIDTH, TOKENS)
    from_moment = shrink * shrink * weighted / total[:, None]
    from_mass = -tl.sum(from_moment * (1.0 / shrink - 1.0), axis=1)
    if program == 0:
        tl.store(by_moment + sample * H * D + columns, from_moment, mask=there)
    weights = tl.load(eta + heads, mask=heads < H, other=0.0).to(real)
    squared = tl.zeros((HEADS, WIDTH), real)
    by_eta = tl.zeros((HEADS,), real)
    for offset in range(0, span, TOKENS):
        token = program * span + offset + tl.arange(0, TOKENS)
        row = sample * tokens + token
        here = token < tokens
        square = square_of(w, row, here, columns, there, H * D, real)
        target = row[:, None] * H + heads[None, :]
        stored = here[:, None] & (heads < H)[None, :]
        pi = tl.load(membership + target, mask=stored, other=0.0)
        counted = are_tokens(mask, row, here, MASKED)
        by_pi = tl.sum(square * from_moment[None, :, :], axis=2) - tl.load(product + target, mask=stored, other=0.0)
        by_pi += tl.where(counted[:, None], from_mass[None, :], 0.0)
        by_logit = pi * (by_pi - tl.sum(pi * by_pi, axis=1)[:, None])
        by_eta += tl.sum(by_logit * tl.load(energy + target, mask=stored, other=0.0), axis=0)
        by_e = weights[None, :] * by_logit
        tl.store(by_energy + target, by_e, mask=stored)
        if NORMALIZE:
            squared += tl.sum(by_e[:, :, None] * square, axis=0)
    part = spread + (sample * programs + program) * (H * D + H)
    tl.store(part + columns, squared, mask=there)
    tl.store(part + H * D + heads, by_eta, mask=heads < H)


@triton.jit(do_not_specialize=["tokens", "span", "programs", "parts"])
def input_pass(
    w,
    grad,
    membership,
    shrinkage,
    inverse_norms,
    by_energy,
    by_moment,
    spread,
    by_w,
    tokens,
    span,
    programs,
    parts,
    NORMALIZE: tl.constexpr,
    CLAMPED: tl.constexpr,
    H: tl.constexpr,
    D: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
):
    """``−G Π D + 2 w (Π dm/M + dE / ‖w‖² + d‖w‖²)``, where clamping the norm took its gradient away."""
    real = membership.dtype.element_ty
    sample = (tl.program_id(0) // programs).to(tl.int64)
    program = tl.program_id(0) % programs
    heads, columns, there = entries_of_heads(H, D, HEADS, WIDTH)
    at = sample * H * D + columns
    shrink = tl.load(shrinkage + at, mask=there, other=0.0)
    from_moment = tl.load(by_moment + at, mask=there, other=0.0)
    inverse = tl.load(inverse_norms + at, mask=there, other=0.0)
    by_norm = tl.zeros((HEADS, WIDTH), real)
    if NORMALIZE:
        squared = _summed(spread, sample * parts, parts, columns, there, H * D + H, HEADS, WIDTH, TOKENS)
        by_norm = tl.where(inverse < CLAMPED, -squared * inverse * inverse, 0.0)
    for offset in range(0, span, TOKENS):
        token = program * span + offset + tl.arange(0, TOKENS)
        row = sample * tokens + token
        here = token < tokens
        entries = row[:, None, None] * (H * D) + columns[None, :, :]
        wanted = here[:, None, None] & there[None, :, :]
        x = tl.load(w + entries, mask=wanted, other=0.0).to(real)
        g = tl.load(grad + entries, mask=wanted, other=0.0).to(real)
        target = row[:, None] * H + heads[None, :]
        stored = here[:, None] & (heads < H)[None, :]
        pi = tl.load(membership + target, mask=stored, other=0.0)[:, :, None]
        by_e = tl.load(by_energy + target, mask=stored, other=0.0)[:, :, None]
        by_square = pi * from_moment[None, :, :] + by_e * inverse[None, :, :] + by_norm[None, :, :]
        tl.store(
            by_w + entries,
            (2.0 * x * by_square - g * pi * shrink[None, :, :]).to(by_w.dtype.element_ty),
            mask=wanted,
        )
