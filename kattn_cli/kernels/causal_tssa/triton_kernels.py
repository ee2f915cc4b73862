"""The passes of causal TSSA and of its gradient over ``w``; what they are for is in ``triton.py``.

Arguments are pointers to contiguous tensors, of their sizes in ``triton.py``, then numbers of all tokens and of
chunks a sample. H heads of D features, in powers of two HEADS and WIDTH. A program takes a chunk: of all heads, TOKENS
at a time, where Π couples them, otherwise of one.
"""

from __future__ import annotations

import triton
import triton.language as tl

from kattn_cli.kernels.triton_sums import are_tokens, entries_of_heads, softmax_over_heads, square_of


@triton.jit
def place(tokens, chunks, H: tl.constexpr, CHUNK: tl.constexpr):
    """A program's head, its chunk among those of all samples, the rows of its tokens and which of them exist."""
    head = tl.program_id(0) % H
    of_chunk = (tl.program_id(0) // H).to(tl.int64)
    token = (of_chunk % chunks) * CHUNK + tl.arange(0, CHUNK)
    return head, of_chunk, (of_chunk // chunks) * tokens + token, token < tokens


@triton.jit(do_not_specialize=["tokens", "chunks", "repeats", "bias_sample", "bias_head", "bias_token"])
def membership_pass(
    w,
    eta,
    bias,
    mask,
    energy_states,
    energy,
    membership,
    parts,
    tokens,
    chunks,
    repeats,
    bias_sample,
    bias_head,
    bias_token,
    NORMALIZE: tl.constexpr,
    MASKED: tl.constexpr,
    EPSILON: tl.constexpr,
    H: tl.constexpr,
    D: tl.constexpr,
    CHUNK: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
):
    """Energies and Π; the sums over the chunk of Π w² and of Π where there is a token."""
    real = energy.dtype.element_ty
    of_chunk = tl.program_id(0).to(tl.int64)
    sample = of_chunk // chunks
    start = (of_chunk % chunks) * CHUNK
    heads, columns, there = entries_of_heads(H, D, HEADS, WIDTH)
    before = tl.load(energy_states + of_chunk * H * D + columns, mask=there, other=0.0)
    weights = tl.load(eta + heads, mask=heads < H, other=0.0).to(real)
    moment = tl.zeros((HEADS, WIDTH), real)
    mass = tl.zeros((HEADS,), real)
    for offset in range(0, CHUNK, TOKENS):
        token = start + offset + tl.arange(0, TOKENS)
        row = sample * tokens + token
        here = token < tokens
        square = square_of(w, row, here, columns, there, H * D, real)
        if NORMALIZE:
            running = before[None, :, :] + tl.cumsum(square, axis=0)
            e = tl.sum(square / tl.where(running < EPSILON, EPSILON, running), axis=2)
            before += tl.sum(square, axis=0)
        else:
            e = tl.sum(square, axis=2)
        stored = here[:, None] & (heads < H)[None, :]
        shift = bias + sample * bias_sample + token[:, None] * bias_token + heads[None, :] * bias_head
        e += repeats * tl.load(shift, mask=stored, other=0.0).to(real)
        pi = softmax_over_heads(weights[None, :] * e, heads, H)
        target = row[:, None] * H + heads[None, :]
        tl.store(energy + target, e, mask=stored)
        tl.store(membership + target, pi, mask=stored)
        counted = are_tokens(mask, row, here, MASKED)
        mass += tl.sum(tl.where(counted[:, None], pi, 0.0), axis=0)
        moment += tl.sum(pi[:, :, None] * square, axis=0)
    part = parts + of_chunk * (H * D + H)
    tl.store(part + columns, moment, mask=there)
    tl.store(part + H * D + heads, mass, mask=heads < H)


@triton.jit(do_not_specialize=["tokens", "chunks"])
def output_pass(
    w,
    mask,
    membership,
    moment_states,
    mass_states,
    mass,
    out,
    tokens,
    chunks,
    MASKED: tl.constexpr,
    EPSILON: tl.constexpr,
    H: tl.constexpr,
    D: tl.constexpr,
    CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """``−w Π D`` and Σ Π of a head's chunk."""
    real = membership.dtype.element_ty
    head, of_chunk, row, here = place(tokens, chunks, H, CHUNK)
    features = tl.arange(0, WIDTH)
    wanted = here[:, None] & (features < D)[None, :]
    entries = (row * H + head)[:, None] * D + features[None, :]
    x = tl.load(w + entries, mask=wanted, other=0.0).to(real)
    pi = tl.load(membership + row * H + head, mask=here, other=0.0)
    counted = tl.where(are_tokens(mask, row, here, MASKED), pi, 0.0)
    total = tl.load(mass_states + of_chunk * H + head) + tl.cumsum(counted, axis=0) + EPSILON
    before = tl.load(moment_states + (of_chunk * H + head) * D + features, mask=features < D, other=0.0)
    moment = before[None, :] + tl.cumsum(pi[:, None] * x * x, axis=0)
    shrink = 1.0 / (1.0 + moment / total[:, None])
    tl.store(mass + row * H + head, total, mask=here)
    tl.store(out + entries, (-x * pi[:, None] * shrink).to(out.dtype.element_ty), mask=wanted)


@triton.jit
def gradient_of_moments(
    w,
    grad,
    membership,
    mass,
    moment_states,
    tokens,
    chunks,
    H: tl.constexpr,
    D: tl.constexpr,
    CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Of a head's chunk: w, the gradient, Π, D, the gradient of Σ Π w² (all features) and of Σ Π."""
    real = membership.dtype.element_ty
    head, of_chunk, row, here = place(tokens, chunks, H, CHUNK)
    features = tl.arange(0, WIDTH)
    wanted = here[:, None] & (features < D)[None, :]
    entries = (row * H + head)[:, None] * D + features[None, :]
    x = tl.load(w + entries, mask=wanted, other=0.0).to(real)
    g = tl.load(grad + entries, mask=wanted, other=0.0).to(real)
    pi = tl.load(membership + row * H + head, mask=here, other=0.0)
    total = tl.load(mass + row * H + head, mask=here, other=1.0)
    before = tl.load(moment_states + (of_chunk * H + head) * D + features, mask=features < D, other=0.0)
    mean = (before[None, :] + tl.cumsum(pi[:, None] * x * x, axis=0)) / total[:, None]
    shrink = 1.0 / (1.0 + mean)
    by_moment = g * x * pi[:, None] * shrink * shrink / total[:, None]
    return x, g, pi, shrink, by_moment, -tl.sum(by_moment * mean, axis=1)


@triton.jit(do_not_specialize=["tokens", "chunks"])
def moments_pass(
    w,
    grad,
    membership,
    mass,
    moment_states,
    parts,
    tokens,
    chunks,
    H: tl.constexpr,
    D: tl.constexpr,
    CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """The sums over a chunk of the gradients of Σ Π w² and Σ Π."""
    _, _, _, _, by_moment, by_mass = gradient_of_moments(
        w, grad, membership, mass, moment_states, tokens, chunks, H, D, CHUNK, WIDTH
    )
    head = tl.program_id(0) % H
    features = tl.arange(0, WIDTH)
    part = parts + (tl.program_id(0) // H).to(tl.int64) * (H * D + H)
    tl.store(part + head * D + features, tl.sum(by_moment, axis=0), mask=features < D)
    tl.store(part + H * D + head, tl.sum(by_mass, axis=0))


@triton.jit(do_not_specialize=["tokens", "chunks"])
def memberships_pass(
    w,
    grad,
    membership,
    mass,
    moment_states,
    mask,
    moments_after,
    masses_after,
    by_membership,
    tokens,
    chunks,
    MASKED: tl.constexpr,
    H: tl.constexpr,
    D: tl.constexpr,
    CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """The gradient of Π: from the output itself, and from the moments and masses of all tokens from here on."""
    x, g, _, shrink, by_moment, by_mass = gradient_of_moments(
        w, grad, membership, mass, moment_states, tokens, chunks, H, D, CHUNK, WIDTH
    )
    head, of_chunk, row, here = place(tokens, chunks, H, CHUNK)
    features = tl.arange(0, WIDTH)
    after = tl.load(moments_after + (of_chunk * H + head) * D + features, mask=features < D, other=0.0)
    from_here = after[None, :] + tl.cumsum(by_moment, axis=0, reverse=True)
    by_pi = tl.sum(x * (from_here * x - g * shrink), axis=1)
    masses = tl.load(masses_after + of_chunk * H + head) + tl.cumsum(by_mass, axis=0, reverse=True)
    by_pi += tl.where(are_tokens(mask, row, here, MASKED), masses, 0.0)
    tl.store(by_membership + row * H + head, by_pi, mask=here)


@triton.jit(do_not_specialize=["tokens", "chunks"])
def energies_pass(
    w,
    eta,
    energy,
    membership,
    by_membership,
    energy_states,
    by_energy,
    parts,
    tokens,
    chunks,
    NORMALIZE: tl.constexpr,
    EPSILON: tl.constexpr,
    H: tl.constexpr,
    D: tl.constexpr,
    CHUNK: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
):
    """The gradient of the energies; the sums over a chunk of dE w² / (Σ w²)² and of the gradient of η."""
    real = energy.dtype.element_ty
    of_chunk = tl.program_id(0).to(tl.int64)
    sample = of_chunk // chunks
    start = (of_chunk % chunks) * CHUNK
    heads, columns, there = entries_of_heads(H, D, HEADS, WIDTH)
    before = tl.load(energy_states + of_chunk * H * D + columns, mask=there, other=0.0)
    weights = tl.load(eta + heads, mask=heads < H, other=0.0).to(real)
    shares = tl.zeros((HEADS, WIDTH), real)
    by_eta = tl.zeros((HEADS,), real)
    for offset in range(0, CHUNK, TOKENS):
        token = start + offset + tl.arange(0, TOKENS)
        row = sample * tokens + token
        here = token < tokens
        target = row[:, None] * H + heads[None, :]
        stored = here[:, None] & (heads < H)[None, :]
        pi = tl.load(membership + target, mask=stored, other=0.0)
        by_pi = tl.load(by_membership + target, mask=stored, other=0.0)
        by_logit = pi * (by_pi - tl.sum(pi * by_pi, axis=1)[:, None])
        by_eta += tl.sum(by_logit * tl.load(energy + target, mask=stored, other=0.0), axis=0)
        by_e = weights[None, :] * by_logit
        tl.store(by_energy + target, by_e, mask=stored)
        if NORMALIZE:
            square = square_of(w, row, here, columns, there, H * D, real)
            running = before[None, :, :] + tl.cumsum(square, axis=0)
            before += tl.sum(square, axis=0)
            inverse = tl.where(running < EPSILON, 0.0, 1.0 / running)
            shares += tl.sum(by_e[:, :, None] * (square * inverse * inverse), axis=0)
    part = parts + of_chunk * (H * D + H)
    tl.store(part + columns, shares, mask=there)
    tl.store(part + H * D + heads, by_eta, mask=heads < H)


@triton.jit(do_not_specialize=["tokens", "chunks"])
def input_pass(
    w,
    grad,
    membership,
    mass,
    moment_states,
    by_energy,
    energy_states,
    moments_after,
    shares_after,
    by_w,
    tokens,
    chunks,
    NORMALIZE: tl.constexpr,
    EPSILON: tl.constexpr,
    H: tl.constexpr,
    D: tl.constexpr,
    CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """``−G Π D + 2 w ∂(w²)``, where a token's own share of Σ w² and those of later tokens are kept apart.

    ``∂(1 − s)/c − Σ_{t>i}`` does not cancel where ``∂/c − Σ_{t≥i}`` would: at the first tokens, whose c is small.
    To be launched unfused: ``running − x·x`` rounded once is no longer 0 at the first token, but what rounding x·x left
    out, and 1/c makes much of it.
    """
    x, g, pi, shrink, by_moment, _ = gradient_of_moments(
        w, grad, membership, mass, moment_states, tokens, chunks, H, D, CHUNK, WIDTH
    )
    head, of_chunk, row, here = place(tokens, chunks, H, CHUNK)
    within = tl.arange(0, CHUNK)
    features = tl.arange(0, WIDTH)
    some = features < D
    entries = (row * H + head)[:, None] * D + features[None, :]
    state = (of_chunk * H + head) * D + features
    by_e = tl.load(by_energy + row * H + head, mask=here, other=0.0)
    after = tl.load(moments_after + state, mask=some, other=0.0)
    by_square = pi[:, None] * (after[None, :] + tl.cumsum(by_moment, axis=0, reverse=True))
    if NORMALIZE:
        square = x * x
        before = tl.load(energy_states + state, mask=some, other=0.0)
        running = before[None, :] + tl.cumsum(square, axis=0)
        following = (within < CHUNK - 1) & (within + 1 < tokens - (of_chunk % chunks) * CHUNK)
        y = tl.load(w + entries + H * D, mask=following[:, None] & some[None, :], other=0.0).to(running.dtype)
        by_next = tl.load(by_energy + (row + 1) * H + head, mask=following, other=0.0)
        y = y * y
        inverse_next = tl.where(running + y < EPSILON, 0.0, 1.0 / (running + y))
        later = tl.load(shares_after + state, mask=some, other=0.0)
        shares = by_next[:, None] * (y * inverse_next * inverse_next)
        later_shares = later[None, :] + tl.cumsum(shares, axis=0, reverse=True)
        inverse = 1.0 / tl.where(running < EPSILON, EPSILON, running)
        own = tl.where(running < EPSILON, 1.0, (running - square) * inverse)
        by_square += by_e[:, None] * own * inverse - later_shares
    else:
        by_square += by_e[:, None]
    gradient = 2.0 * x * by_square - g * pi[:, None] * shrink
    tl.store(by_w + entries, gradient.to(by_w.dtype.element_ty), mask=here[:, None] & some[None, :])
