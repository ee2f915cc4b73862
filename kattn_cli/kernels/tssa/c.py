"""TSSA and its gradient by the C kernels: ``w`` is read three times each way, and the gradient of the output twice.

B: batch, N: tokens, H: heads, d: head width. What the gradient needs again is in float32, or float64 for such ``w``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.kernels.precision import exact, exact_dtype
from kattn_cli.kernels.threads import Part, call, shares
from kattn_cli.kernels.tssa.equations import NORM_EPSILON, SUM_EPSILON


def forward(
    w: Tensor, eta: Tensor, mask: Tensor | None, normalize: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the output ``(B, N, H, d)`` and, for the backward pass, energies, Π, 1 / ‖w‖², D and Σ Π.

    Energies and Π: ``(B, N, H)``; 1 / ‖w‖² and D: ``(B, H, d)``; Σ Π: ``(B, H)``.

    ``w``: ``(B, N, H, d)``, contiguous, 0 at the padding; ``eta``: ``(H,)``; ``mask``: ``(B, N)`` or None.
    """
    x, eta = exact(w), eta.to(exact_dtype(w))
    samples, _, heads, width = x.shape
    parts, sums = _parts(x)
    inverse_norms = x.new_ones(samples, heads, width)
    if normalize:
        norms = _zeros(x, sums, samples, heads, width)
        call("tssa_norms", x.dtype, parts, x, norms)
        inverse_norms = norms.sum(0).clamp(min=NORM_EPSILON**2).reciprocal().to(x.dtype)
    energy, membership = (x.new_empty(x.shape[:3]) for _ in range(2))
    moment, mass = _zeros(x, sums, samples, heads, width), _zeros(x, sums, samples, heads)
    call("tssa_membership", x.dtype, parts, x, eta, mask, inverse_norms, energy, membership, moment, mass)
    total = mass.sum(0) + SUM_EPSILON
    shrinkage = (1 + moment.sum(0) / total[..., None]).reciprocal().to(x.dtype)
    out = torch.empty_like(x)
    call("tssa_output", x.dtype, parts, x, membership, shrinkage, out)
    return out.to(w.dtype), energy, membership, inverse_norms, shrinkage, total.to(x.dtype)


def backward(
    grad: Tensor,
    w: Tensor,
    eta: Tensor,
    mask: Tensor | None,
    energy: Tensor,
    membership: Tensor,
    inverse_norms: Tensor,
    shrinkage: Tensor,
    mass: Tensor,
    normalize: bool,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``w`` and ``eta`` from the output's and from what :func:`forward` returned."""
    x, g = exact(w), exact(grad).contiguous()
    exact_eta = eta.to(x.dtype)
    samples, _, heads, width = x.shape
    parts, sums = _parts(x)
    product, by_energy = (x.new_empty(x.shape[:3]) for _ in range(2))
    weighted = _zeros(x, sums, samples, heads, width)
    call("tssa_backward_products", x.dtype, parts, x, g, membership, shrinkage, product, weighted)
    by_mean = shrinkage.double().square() * weighted.sum(0)
    by_moment = by_mean / mass[..., None]
    by_mass = -(by_moment * (shrinkage.double().reciprocal() - 1)).sum(-1)
    by_moment, by_mass = by_moment.to(x.dtype), by_mass.to(x.dtype)
    spread, by_eta = _zeros(x, sums, samples, heads, width), _zeros(x, sums, samples, heads)
    call(
        "tssa_backward_energy",
        x.dtype,
        parts,
        *(x, exact_eta, mask, energy, membership, product, by_moment, by_mass, by_energy, spread, by_eta),
    )
    inverse = inverse_norms.double()
    unclamped = inverse < NORM_EPSILON**-2 if normalize else torch.zeros_like(inverse, dtype=torch.bool)
    by_norms = torch.where(unclamped, -spread.sum(0) * inverse.square(), 0).to(x.dtype)
    by_w = torch.empty_like(x)
    call(
        "tssa_backward_input",
        x.dtype,
        parts,
        *(x, g, membership, shrinkage, by_moment, by_energy, inverse_norms, by_norms, by_w),
    )
    return by_w.to(w.dtype), by_eta.sum((0, 1)).to(eta.dtype)


def _parts(x: Tensor) -> tuple[list[Part], int]:
    """Return the samples, or where too few the tokens, for each thread, and how many partial sums that makes."""
    samples, tokens, heads, width = x.shape
    sizes = (samples, tokens, heads, width)
    if samples >= torch.get_num_threads():
        return [(*sizes, first, end, 0, tokens, 0) for first, end in shares(samples)], 1
    ranges = shares(tokens)
    return [(*sizes, 0, samples, first, end, k) for k, (first, end) in enumerate(ranges)], len(ranges)


def _zeros(x: Tensor, *shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64, device=x.device)
