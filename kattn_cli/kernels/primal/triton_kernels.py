"""The kernels of :mod:`kattn_cli.kernels.primal.triton`: one side's scores, and their gradient, of one sample and head.

z is q or k, ``(B, H, N, d)`` with any strides but the last; scores are ``(B, N, H, 2s)``, those of a side beside those
of the other; norms ``(B, H, N)``. A program holds powers of two of features and directions, and masks those too many.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _weights(
    weight,
    sample,
    head,
    heads,
    WIDTH: tl.constexpr,
    S: tl.constexpr,
    SIDE: tl.constexpr,
    SHARED: tl.constexpr,
    FEATURES: tl.constexpr,
    DIRECTIONS: tl.constexpr,
):
    """Where a side's weights of a head are, (d, s) of a (B or 1, H, d, 2s), and which exist."""
    features, directions = tl.arange(0, FEATURES), tl.arange(0, DIRECTIONS)
    which = head
    if not SHARED:
        which = sample * heads + head
    entries = (which * WIDTH + features)[:, None] * (2 * S) + SIDE * S + directions[None, :]
    return weight + entries, (features < WIDTH)[:, None] & (directions < S)[None, :]


@triton.jit
def forward(
    z,
    weight,
    mask,
    scores,
    norms,
    sums,
    heads,
    tokens,
    z_sample,
    z_head,
    z_token,
    WIDTH: tl.constexpr,
    S: tl.constexpr,
    SIDE: tl.constexpr,
    SHARED: tl.constexpr,
    MASKED: tl.constexpr,
    HALF: tl.constexpr,
    EPSILON: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
    DIRECTIONS: tl.constexpr,
):
    blocks = tl.cdiv(tokens, ROWS)
    block = tl.program_id(0) % blocks
    head = (tl.program_id(0) // blocks) % heads
    sample = (tl.program_id(0) // blocks // heads).to(tl.int64)
    rows = block * ROWS + tl.arange(0, ROWS)
    features, directions = tl.arange(0, FEATURES), tl.arange(0, DIRECTIONS)
    here = rows < tokens
    row = sample * z_sample + head.to(tl.int64) * z_head + rows.to(tl.int64) * z_token
    vectors = tl.load(z + row[:, None] + features[None, :], mask=here[:, None] & (features < WIDTH)[None, :], other=0.0)
    places, exist = _weights(weight, sample, head, heads, WIDTH, S, SIDE, SHARED, FEATURES, DIRECTIONS)
    w = tl.load(places, mask=exist, other=0.0)
    exact = vectors.to(tl.float32)
    product = tl.dot(vectors, w) if HALF else tl.dot(exact, w.to(tl.float32), input_precision="ieee")
    norm = tl.maximum(tl.sqrt(tl.sum(exact * exact, axis=1)), EPSILON)
    found = product / norm[:, None]
    tl.store(norms + (sample * heads + head) * tokens + rows, norm, mask=here)
    target = scores + ((sample * tokens + rows) * heads + head)[:, None] * (2 * S) + SIDE * S + directions[None, :]
    tl.store(target, found.to(scores.dtype.element_ty), mask=here[:, None] & (directions < S)[None, :])
    counted = found * found
    if MASKED:
        there = tl.load(mask + sample * tokens + rows, mask=here, other=0)
        counted = tl.where((there != 0)[:, None], counted, 0.0)
    partial = sums + ((sample * heads + head) * blocks + block) * (2 * S) + SIDE * S + directions
    tl.store(partial, tl.sum(counted, axis=0), mask=directions < S)


@triton.jit
def backward(
    z,
    weight,
    mask,
    scores,
    norms,
    grad,
    grad_energy,
    by_z,
    by_weight,
    heads,
    tokens,
    span,
    z_sample,
    z_head,
    z_token,
    WITH_ENERGY: tl.constexpr,
    WIDTH: tl.constexpr,
    S: tl.constexpr,
    SIDE: tl.constexpr,
    SHARED: tl.constexpr,
    MASKED: tl.constexpr,
    HALF: tl.constexpr,
    EPSILON: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
    DIRECTIONS: tl.constexpr,
):
    parts = tl.cdiv(tokens, span)
    part = tl.program_id(0) % parts
    head = (tl.program_id(0) // parts) % heads
    sample = (tl.program_id(0) // parts // heads).to(tl.int64)
    features, directions = tl.arange(0, FEATURES), tl.arange(0, DIRECTIONS)
    places, exist = _weights(weight, sample, head, heads, WIDTH, S, SIDE, SHARED, FEATURES, DIRECTIONS)
    w = tl.load(places, mask=exist, other=0.0)
    by_square = tl.zeros((DIRECTIONS,), tl.float32)
    if WITH_ENERGY:
        of_side = grad_energy + (sample * heads + head) * (2 * S) + SIDE * S + directions
        by_square = 2 * tl.load(of_side, mask=directions < S, other=0.0)
    by_w = tl.zeros((FEATURES, DIRECTIONS), tl.float32)
    for offset in range(0, span, ROWS):
        rows = part * span + offset + tl.arange(0, ROWS)
        here = rows < tokens
        row = sample * z_sample + head.to(tl.int64) * z_head + rows.to(tl.int64) * z_token
        of_vectors = here[:, None] & (features < WIDTH)[None, :]
        of_scores = here[:, None] & (directions < S)[None, :]
        vectors = tl.load(z + row[:, None] + features[None, :], mask=of_vectors, other=0.0)
        token = (sample * tokens + rows) * heads + head
        entries = token[:, None] * (2 * S) + SIDE * S + directions[None, :]
        found = tl.load(scores + entries, mask=of_scores, other=0.0).to(tl.float32)
        by_score = tl.load(grad + entries, mask=of_scores, other=0.0).to(tl.float32)
        norm = tl.load(norms + (sample * heads + head) * tokens + rows, mask=here, other=1.0)
        if WITH_ENERGY:
            along = found * by_square[None, :]
            if MASKED:
                there = tl.load(mask + sample * tokens + rows, mask=here, other=0)
                along = tl.where((there != 0)[:, None], along, 0.0)
            by_score += along
        radial = tl.where(norm > EPSILON, tl.sum(by_score * found, axis=1) / (norm * norm), 0.0)
        by_product = by_score / norm[:, None]
        if HALF:
            rounded = by_product.to(tl.bfloat16)
            by_vectors = tl.dot(rounded, tl.trans(w))
            by_w += tl.dot(tl.trans(vectors), rounded)
        else:
            by_vectors = tl.dot(by_product, tl.trans(w.to(tl.float32)), input_precision="ieee")
            by_w += tl.dot(tl.trans(vectors.to(tl.float32)), by_product, input_precision="ieee")
        by_vectors -= vectors.to(tl.float32) * radial[:, None]
        target = by_z + token[:, None] * WIDTH + features[None, :]
        tl.store(target, by_vectors.to(by_z.dtype.element_ty), mask=of_vectors)
    entries = (((sample * heads + head) * parts + part) * WIDTH + features)[:, None] * (2 * S) + directions[None, :]
    tl.store(by_weight + SIDE * S + entries, by_w, mask=exist)
