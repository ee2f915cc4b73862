"""Causal TSSA and its gradient by the C kernels: threads share samples, or heads, and run along the tokens.

The forward pass reads ``w`` twice, the backward pass ``w`` and the gradient twice; between them are only the states
of the running sums before every 64th token, and ``(B, N, H)``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.kernels.causal_tssa.equations import CHUNK
from kattn_cli.kernels.precision import exact
from kattn_cli.kernels.threads import Part, call, shares
from kattn_cli.kernels.tssa.equations import SUM_EPSILON


def forward(
    w: Tensor, eta: Tensor, bias: Tensor, mask: Tensor | None, normalize: bool, repeats: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the output ``(B, N, H, d)`` and, for the backward pass, energies, Π, Σ Π and the states of two sums.

    Energies, Π and Σ Π: ``(B, N, H)``; states of Σ w² and Σ Π w²: ``(B, ⌈N/64⌉, H, d)``.

    ``w``: ``(B, N, H, d)``, contiguous, 0 at the padding; ``bias``: ``(B or 1, H, N)``, added ``repeats`` times.
    """
    x = exact(w)
    samples, tokens, heads, width = x.shape
    parts = _parts(x)
    energy = x.new_empty(samples, tokens, heads)
    shape = (samples, -(-tokens // CHUNK), heads, width)
    energy_states, moment_states = x.new_empty(shape), x.new_empty(shape)
    call("causal_energy", x.dtype, parts, int(normalize), x, energy, energy_states)
    energy += repeats * bias.to(x.dtype).mT
    membership = (eta.to(x.dtype) * energy).softmax(-1)
    counted = membership if mask is None else membership * mask[..., None]
    mass = counted.cumsum(1).add_(SUM_EPSILON)
    out = torch.empty_like(x)
    call("causal_output", x.dtype, parts, x, membership, mass, out, moment_states)
    return out.to(w.dtype), energy, membership, mass, energy_states, moment_states


def backward(
    grad: Tensor,
    w: Tensor,
    eta: Tensor,
    bias: Tensor,
    mask: Tensor | None,
    normalize: bool,
    repeats: int,
    energy: Tensor,
    membership: Tensor,
    mass: Tensor,
    energy_states: Tensor,
    moment_states: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of ``w``, ``eta`` and ``bias`` from the output's and from what :func:`forward` returned."""
    x, g = exact(w), exact(grad).contiguous()
    parts = _parts(x)
    by_membership, by_mass = torch.empty_like(membership), torch.empty_like(membership)
    call(
        "causal_backward_membership",
        x.dtype,
        parts,
        *(x, g, membership, mass, moment_states, by_membership, by_mass),
    )
    later = by_mass.flip(1).cumsum(1).flip(1)
    by_membership += later if mask is None else later * mask[..., None]
    by_logit = membership * (by_membership - (membership * by_membership).sum(-1, keepdim=True))
    by_energy = by_logit * eta.to(x.dtype)
    by_w = torch.empty_like(x)
    call(
        "causal_backward_input",
        x.dtype,
        parts,
        *(int(normalize), x, g, membership, mass, by_energy, energy_states, moment_states, by_w),
    )
    by_bias = (repeats * by_energy.mT).sum_to_size(bias.shape).to(bias.dtype)
    return by_w.to(w.dtype), (by_logit * energy).sum((0, 1)).to(eta.dtype), by_bias


def _parts(x: Tensor) -> list[Part]:
    """Return how many samples each thread takes or, where samples are too few, how many heads."""
    samples, _, heads, _ = sizes = tuple(x.shape)
    if samples >= torch.get_num_threads():
        return [(*sizes, first, end, 0, heads) for first, end in shares(samples)]
    return [(*sizes, 0, samples, first, end) for first, end in shares(heads)]
