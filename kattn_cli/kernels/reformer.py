"""Attention within buckets of a locality-sensitive hash, where the queries hash and the keys share their direction.

Source: Kitaev et al. 2020, "Reformer: The Efficient Transformer", §2 and Appendix A.
B: batch, H: heads, N: tokens, d: head width, R: rounds of hashing, m: tokens in a chunk, G: chunks in a round.
A ``query`` and a ``key`` in index tensors are numbers of tokens; N, one past the last, stands for none.
"""

from __future__ import annotations

import math
from itertools import chain

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import check_mask, token_mask
from kattn_cli.kernels.masks import visible
from kattn_cli.kernels.precision import exact, exact_dtype, exactly, full_precision

HASHED_AT_ONCE = 1024
"""Tokens whose rotations are kept at a time: all of them would be N² / m numbers."""
ITSELF = -1e5
"""The score of a token with itself (Appendix A): it counts only where there is no other."""


@full_precision
def lsh_buckets(q: Tensor, rotations: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return ``argmax([q R; −q R])`` (§2, "Locality sensitive hashing"); padding gets a last bucket of its own.

    ``rotations``: ``(H, R, d, buckets / 2)``. Returns ``(B, H, R, N)``. In float32 or better: what half precision
    rounds would put a token into another bucket.
    """
    check_mask("LSH attention", mask, q)
    parts = []
    rotations = exact(rotations)
    # Detached: argmax has no gradient.
    for some in q.detach().split(HASHED_AT_ONCE, -2):
        rotated = exact(some)[:, :, None] @ rotations
        parts.append(torch.cat((rotated, -rotated), -1).argmax(-1))
    buckets = torch.cat(parts, -1)
    return buckets if mask is None else buckets.masked_fill(~mask[:, None, None, :], 2 * rotations.shape[-1])


def among_others(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, times: Tensor | None = None) -> Tensor:
    """Return ``softmax(q kᵀ) v`` over the other tokens that are ``seen``, or the token's own value if there are none.

    ``seen`` is to be broadcast to ``(B, H, N, N)``; ``times``, how often each counts, once where it is None.
    """
    itself = torch.eye(q.shape[-2], dtype=torch.bool, device=q.device)
    scores = exact(q @ k.mT).masked_fill(~seen, -math.inf)
    if times is not None:
        scores = scores + times.clamp(min=1).log()
    return scores.masked_fill(itself, ITSELF).softmax(-1).to(v.dtype) @ v


def shared_attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, mask: Tensor | None = None) -> Tensor:
    """Return attention without hashing, each token past itself (§2, "Causal masking for shared-QK attention")."""
    check_mask("shared attention", mask, k)
    seen = visible(mask, causal, q.shape[-2], k.shape[-2], q.device)
    return among_others(q, k, v, torch.ones(1, 1, dtype=torch.bool, device=q.device) if seen is None else seen)


@exactly
def lsh_attention_naive(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rotations: Tensor,
    chunk: int,
    *,
    causal: bool = False,
    across_buckets: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """Return LSH attention: each round sorts and cuts one list after the other; then one softmax, masked N × N."""
    b, h, n, _ = q.shape
    times = torch.zeros(b, h, n, n, dtype=q.dtype, device=q.device)
    for sample, head in ((i, j) for i in range(b) for j in range(h)):
        rounds = []
        for buckets in lsh_buckets(q, rotations, mask)[sample, head].tolist():
            order = sorted(range(n), key=lambda token, buckets=buckets: (buckets[token], token))  # type: ignore[misc]
            lists = [[i for i in order if buckets[i] == bucket] for bucket in sorted(set(buckets))]
            if not causal:
                lists = [order]
            chunks = [some[i : i + chunk] for some in lists for i in range(0, len(some), chunk)]
            rounds.append(chunks)
            if not across_buckets:
                for previous, now in zip([[], *chunks], chunks, strict=False):
                    for i in now:
                        for j in (*previous, *now):
                            times[sample, head, i, j] += buckets[i] == buckets[j]
        if across_buckets:
            joined = list(chain(*rounds))
            for previous, now in zip([joined[-1], *joined], joined, strict=False):
                for i in now:
                    for j in (*previous, *now):
                        times[sample, head, i, j] += 1
    seen = times > 0
    if causal:
        seen = seen.tril()
    if mask is not None:
        seen = seen & mask[:, None, None, :]
    return among_others(q, k, v, seen, times if across_buckets else None)


def lsh_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rotations: Tensor,
    chunk: int,
    *,
    causal: bool = False,
    across_buckets: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """Return LSH attention from sorted chunks, ``(B, H, N, d)`` throughout: time and memory grow with N · R · m.

    But for the time of hashing, which grows with N² / m, since there are as many buckets as 2N / m.

    In each round the tokens stand sorted by bucket, then by position, in chunks of m = ``chunk``; a token sees those
    of its bucket in its own chunk and the one before (eq. 4, 5), and in all rounds together the union (eq. 6).

    Args:
        q: queries, scaled as they are to meet the keys; they alone are hashed.
        causal: chunks are then counted from the start of each bucket. Counted from the start of the sorted list, as
            printed, the place of a chunk's end tells how many later tokens fell into earlier buckets.
        across_buckets: as in the authors' program, a token sees both chunks whole; before the first chunk of a round
            comes the last of the round before; a key met in several rounds counts as often.
        mask: ``(B, N)``, True where there is a token.
    """
    mask = token_mask("LSH attention", mask, k)
    if not v.shape[-2]:
        return v
    if version() == "slow":
        return lsh_attention_naive(q, k, v, rotations, chunk, causal=causal, across_buckets=across_buckets, mask=mask)
    n = q.shape[-2]
    with torch.no_grad():
        buckets = lsh_buckets(q, rotations, mask)
        slots, chunks = sorted_slots(buckets, 2 * rotations.shape[-1] + 1, chunk, causal)
        query = torch.full((*slots.shape[:-1], chunks * chunk), n, device=q.device)
        query = query.scatter(-1, slots, torch.arange(n, device=q.device).expand_as(slots)).unflatten(-1, (-1, chunk))
        key = torch.cat((chunk_before(query, n, across_buckets), query), -1)  # (B, H, R, G, 2m)
        if across_buckets:
            there = torch.ones(1, n, dtype=torch.bool, device=q.device) if mask is None else mask
            there = F.pad(there, (0, 1))[:, None, None].expand(*slots.shape[:-1], -1)
            seen, times = look_up(there, key)[..., None, :], torch.ones((), dtype=exact_dtype(q), device=q.device)
        else:
            places = buckets * (chunks + 1) + slots // chunk
            seen = behind(places, query, key)
            times = torch.zeros_like(seen, dtype=exact_dtype(q))
            for one in places.unbind(2):
                times += behind(one[:, :, None].expand_as(places), query, key)
        if causal:
            seen = seen & (key[..., None, :] <= query[..., None])
        itself = key[..., None, :] == query[..., None]

    scores = exact(rows(q, query) @ rows(k, key).mT) - times.clamp(min=1).log()  # log N_ij, Appendix A
    scores = scores.masked_fill(~seen, -math.inf).masked_fill(itself, ITSELF)
    out = scores.softmax(-1).to(v.dtype) @ rows(v, key)  # (B, H, R, G, m, d)
    out = out.flatten(3, 4).gather(-2, slots[..., None].expand(*slots.shape, v.shape[-1]))
    share = scores.logsumexp(-1).flatten(3).gather(-1, slots).softmax(2)  # exp(z^(r) − z), Appendix A
    return (share[..., None] * out).sum(2).to(v.dtype)


def sorted_slots(buckets: Tensor, count: int, chunk: int, aligned: bool) -> tuple[Tensor, int]:
    """Return each token's place, sorted by bucket, then by position, ``(B, H, R, N)``, and how many chunks they fill.

    With ``aligned`` each bucket starts a new chunk. ``count`` is the number of buckets.
    """
    n = buckets.shape[-1]
    # Stable, so that tokens of a bucket stay in the order of their positions.
    slots = buckets.argsort(dim=-1, stable=True).argsort(-1)
    if not aligned:
        return slots, -(-n // chunk)
    sizes = torch.zeros(*buckets.shape[:-1], count, dtype=slots.dtype, device=slots.device)
    sizes = sizes.scatter_add(-1, buckets, torch.ones_like(buckets))
    room = (sizes + chunk - 1) // chunk * chunk
    shift = (room - sizes).cumsum(-1) - (room - sizes)
    return slots + shift.gather(-1, buckets), (n + count * (chunk - 1)) // chunk


def chunk_before(tokens: Tensor, nobody: int, cyclic: bool) -> Tensor:
    """Return who is in the chunk before each of ``(B, H, R, G, m)``; with ``cyclic`` through all rounds and around."""
    if cyclic:
        return tokens.flatten(2, 3).roll(1, 2).unflatten(2, tokens.shape[2:4])
    return F.pad(tokens, (0, 0, 1, 0), value=nobody)[..., :-1, :]


def behind(places: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Return whether a key is in the query's bucket, in its chunk or the one before, ``(B, H, R, G, m, 2m)``.

    ``places``: ``(B, H, R, N)``, numbers that grow by one from chunk to chunk and by more from bucket to bucket.
    """
    # Nobody stands at −2: from −1, the first place of all would be but one away, and see it.
    places = F.pad(places, (0, 1), value=-2)
    gap = look_up(places, query)[..., None] - look_up(places, key)[..., None, :]
    return (gap == 0) | (gap == 1)


def look_up(table: Tensor, tokens: Tensor) -> Tensor:
    """Return the entry of ``(B, H, R, N + 1)`` for each token of ``(B, H, R, G, …)``."""
    return table.expand(*tokens.shape[:3], -1).gather(-1, tokens.flatten(3)).view_as(tokens)


def rows(z: Tensor, tokens: Tensor) -> Tensor:
    """Return the row of ``(B, H, N, d)`` for each token of ``(B, H, R, G, …)``; zeros for none."""
    index = tokens.flatten(2)[..., None].expand(-1, -1, -1, z.shape[-1])
    return F.pad(z, (0, 0, 0, 1)).gather(-2, index).unflatten(2, tokens.shape[2:])
