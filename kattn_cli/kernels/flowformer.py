"""Flow-Attention: information flows from sources (keys, values) to sinks (queries), and none is made or lost.

Source: Wu et al. 2022, "Flowformer: Linearizing Transformers with Conservation Flows". Causal: every sum
over tokens runs up to the token itself, the one under the competition's softmax too, and sums are compared as means,
so that the first tokens' flows are as large as the last ones'.
B: batch, H: heads, N: tokens, d: head width.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import token_mask
from kattn_cli.kernels.linear import LinearState, linear_attention, linear_attention_decode
from kattn_cli.kernels.masks import token_counts, total, visible, without_padding
from kattn_cli.kernels.precision import exact, exactly

EPSILON = 1e-12


class FlowState(NamedTuple):
    """What the tokens so far leave behind, of a size that does not depend on how many they are."""

    sums: tuple[Tensor, ...]
    """φ(k), φ(q), φ(k)/O, φ(q)/I, ``(B, H, 1, d)`` each, and log Σ exp Ô, ``(B, H, 1, 1)``."""
    aggregate: LinearState
    """Σ φ(k)ᵀ v̂, and how many tokens there were."""


def flow_factors(
    q: Tensor, k: Tensor, causal: bool = False, mask: Tensor | None = None, state: FlowState | None = None
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Return sinks a and sources b, ``(B, H, N, d)`` in float32 or better: the output is ``Σ_j (a_i · b_j) v_j``.

    Third, the sums that :class:`FlowState` keeps, up to each token. ``state`` is for the tokens after it, ``causal``.
    """
    phi_q, phi_k = (without_padding(exact(z).sigmoid(), mask) for z in (q, k))
    counts = token_counts(phi_q, mask, causal)
    if state is not None:
        counts = counts + state.aggregate.tokens

    def flow(z: Tensor, other: Tensor, past: int) -> tuple[Tensor, Tensor]:
        """Return the mean capacity between each token of ``z`` and those of ``other``, and the sum behind it."""
        through = total(other, causal) if state is None else state.sums[past] + total(other, causal)
        return (z * through).sum(-1, keepdim=True) / counts, through

    incoming, keys = flow(phi_q, phi_k, 0)  # I / n, incoming flow
    outgoing, queries = flow(phi_k, phi_q, 1)  # O / n
    # Padding has no flow, and divides by this instead of 0.
    incoming, outgoing = incoming.clamp(min=EPSILON), outgoing.clamp(min=EPSILON)
    conserved_incoming, sent = flow(phi_q, phi_k / outgoing, 2)  # Î, conservation
    conserved_outgoing, received = flow(phi_k, phi_q / incoming, 3)  # Ô
    if mask is not None:
        padding = ~mask[:, None, :, None]
        # Padding does not compete. Not −inf: a sample of padding alone would give −inf − (−inf).
        conserved_outgoing = conserved_outgoing.masked_fill(padding, torch.finfo(phi_q.dtype).min)
    if state is None:
        normaliser = _log_total(conserved_outgoing, causal)
    else:
        # The state comes first, as one more term, and its own place is dropped.
        normaliser = _log_total(torch.cat((state.sums[4], conserved_outgoing), -2), causal)[..., 1:, :]
    competition = counts * (conserved_outgoing - normaliser).exp()  # n softmax(Ô), competition
    allocation = conserved_incoming.sigmoid()
    sinks, sources = phi_q * (allocation / (incoming * counts)), phi_k * competition
    return sinks, sources, (keys, queries, sent, received, normaliser)


def _log_total(z: Tensor, causal: bool) -> Tensor:
    """Return log Σ exp z over tokens, with ``causal`` up to each, such that no exponential overflows."""
    return z.logcumsumexp(-2) if causal else z.logsumexp(-2, keepdim=True)


def flow_attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, mask: Tensor | None = None) -> Tensor:
    """Return Flow-Attention of tokens to themselves, ``(B, H, N, d)`` throughout, linear in N."""
    mask = token_mask("Flow-Attention", mask, k)
    if version() == "slow":
        return flow_attention_naive(q, k, v, causal, mask)
    sinks, sources, _ = flow_factors(q, k, causal, mask)
    return linear_attention(sinks, sources, v, causal=causal, normalise=False)


def flow_decode(q: Tensor, k: Tensor, v: Tensor, state: FlowState | None = None) -> tuple[Tensor, FlowState]:
    """Return causal Flow-Attention of the next tokens, ``(B, H, n, d)``, and the state after them."""
    sinks, sources, sums = flow_factors(q, k, causal=True, state=state)
    past = None if state is None else state.aggregate
    out, aggregate = linear_attention_decode(sinks, sources, v, past, normalise=False)
    return out, FlowState(tuple(each[..., -1:, :].clone() for each in sums), aggregate)


@exactly
def flow_attention_naive(q: Tensor, k: Tensor, v: Tensor, causal: bool = False, mask: Tensor | None = None) -> Tensor:
    """Return the equations one after the other, with every capacity in an N × N matrix."""
    n = q.shape[-2]
    seen = visible(mask, causal, n, n, q.device)
    reach = q.new_ones(1, 1, n, n) if seen is None else seen.to(q.dtype).expand(-1, -1, n, n)
    counts = reach.sum(-1, keepdim=True)
    capacity = q.sigmoid() @ k.sigmoid().mT * reach  # of sink i from source j
    back = k.sigmoid() @ q.sigmoid().mT * reach  # of source j to sink i
    incoming, outgoing = capacity.sum(-1, keepdim=True), back.sum(-1, keepdim=True)  # I, O
    conserved_incoming = capacity @ (counts / outgoing) / counts  # Î
    conserved_outgoing = back @ (counts / incoming) / counts
    competition = counts * conserved_outgoing.exp() / (reach @ conserved_outgoing.exp())  # n softmax(Ô)
    return conserved_incoming.sigmoid() * (capacity / incoming @ (competition * v))  # allocation, aggregation
