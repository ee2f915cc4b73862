"""TSSA and its gradient in Triton: ``w`` is read three times each way, and the gradient of the output twice.

B: batch, N: tokens, H: heads, d: head width, C = H·d. A program takes a span of one sample's tokens, all heads of a
few tokens at a time, since Π is a softmax over heads. Sums over tokens are written in parts, one a program, which the
next kernel adds up before it begins: three launches each way, or five where there are more parts than that pays for,
and one more for the gradient of η.

Bytes moved, for e bytes an entry of ``w`` and s of a statistic (float32, or float64 for such ``w``):

========== ============================================================ ==================
forward    norms: reads w                                               B·N·C·e
..         membership: reads w, writes energies and Π                   B·N·(C·e + 2·H·s)
..         output: reads w and Π, writes the output                     B·N·(2·C·e + H·s)
backward   products: reads w, the gradient and Π, writes their products B·N·(2·C·e + 2·H·s)
..         energies: reads w and three of each head, writes one         B·N·(C·e + 4·H·s)
..         input: reads w, the gradient and two of each head, writes dw B·N·(3·C·e + 2·H·s)
========== ============================================================ ==================
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from kattn_cli.kernels.precision import exact_dtype
from kattn_cli.kernels.triton_sums import FUSED, Tile, as_bytes, multiprocessors, on_device_of, squares, tile
from kattn_cli.kernels.tssa import triton_kernels as kernels
from kattn_cli.kernels.tssa.equations import NORM_EPSILON, SUM_EPSILON

FEW_PARTS = 64
"""Partial sums that every program adds up by itself; more of them are added up once, before."""
WARPS = 16
"""Asked of each multiprocessor, so that enough loads are under way."""


def forward(
    w: Tensor, eta: Tensor, mask: Tensor | None, normalize: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the output ``(B, N, H, d)`` and, for the backward pass, energies, Π, 1 / ‖w‖², D and Σ Π.

    Energies and Π: ``(B, N, H)``; 1 / ‖w‖² and D: ``(B, H, d)``; Σ Π: ``(B, H)``.

    ``w``: ``(B, N, H, d)``, contiguous, 0 at the padding; ``eta``: ``(H,)``; ``mask``: ``(B, N)`` or None.
    """
    samples, tokens, heads, width = w.shape
    sizes = tile(heads, width)
    span = _span(w, sizes)
    programs = triton.cdiv(tokens, span)
    like = w.new_empty(0, dtype=exact_dtype(w))
    energy, membership = like.new_empty(samples, tokens, heads), like.new_empty(samples, tokens, heads)
    inverse_norms, shrinkage = like.new_empty(samples, heads, width), like.new_empty(samples, heads, width)
    mass, out = like.new_empty(samples, heads), torch.empty_like(w)
    sums = like.new_empty(samples, programs, heads * width + heads)
    common = _constants(w, sizes)
    with on_device_of(w):
        norms = _few(squares(w, span)) if normalize else like
        kernels.membership_pass[(samples * programs,)](
            *(w, eta, as_bytes(mask, w)),
            *(norms, energy, membership, inverse_norms, sums),
            *(tokens, span, programs, norms.shape[1] if normalize else 0),
            NORMALIZE=normalize,
            MASKED=mask is not None,
            FLOOR=NORM_EPSILON**2,
            **common,
        )
        sums = _few(sums)
        kernels.output_pass[(samples * programs,)](
            *(w, membership, sums, shrinkage, mass, out),
            *(tokens, span, programs, sums.shape[1]),
            EPSILON=SUM_EPSILON,
            **common,
        )
    return out, energy, membership, inverse_norms, shrinkage, mass


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
    samples, tokens, heads, width = w.shape
    sizes = tile(heads, width, entries=32)
    span = _span(w, sizes)
    programs = triton.cdiv(tokens, span)
    grad, columns = grad.contiguous(), heads * width
    product, by_energy = torch.empty_like(energy), torch.empty_like(energy)
    by_moment, by_w = torch.empty_like(shrinkage), torch.empty_like(w)
    sums = energy.new_empty(samples, programs, columns)
    spread = energy.new_empty(samples, programs, columns + heads)
    common, grid = _constants(w, sizes), (samples * programs,)
    with on_device_of(w):
        kernels.products_pass[grid](w, grad, membership, shrinkage, product, sums, tokens, span, programs, **common)
        sums = _few(sums)
        kernels.energies_pass[grid](
            *(w, eta, as_bytes(mask, w)),
            *(energy, membership, shrinkage, mass, product, sums, by_energy, by_moment, spread),
            *(tokens, span, programs, sums.shape[1]),
            NORMALIZE=normalize,
            MASKED=mask is not None,
            **common,
        )
        spread = _few(spread)
        kernels.input_pass[grid](
            *(w, grad, membership, shrinkage, inverse_norms, by_energy, by_moment, spread, by_w),
            *(tokens, span, programs, spread.shape[1]),
            NORMALIZE=normalize,
            # A norm was clamped where its inverse is the largest there can be, but for rounding.
            CLAMPED=0.999999 * NORM_EPSILON**-2,
            **common,
        )
    return by_w, spread[:, :, columns:].sum((0, 1)).to(eta.dtype)


def _span(w: Tensor, sizes: Tile) -> int:
    """Return the tokens a program takes, a multiple of those it holds at once."""
    samples, tokens = w.shape[:2]
    blocks = triton.cdiv(tokens, sizes.tokens)
    programs = min(blocks, triton.cdiv(multiprocessors(w.device) * WARPS, sizes.warps * samples))
    if blocks <= 8 * FEW_PARTS:
        programs = min(programs, FEW_PARTS)
    return triton.cdiv(blocks, programs) * sizes.tokens


def _few(sums: Tensor) -> Tensor:
    """Return the same sums in parts few enough for every program to add up."""
    return sums if sums.shape[1] <= FEW_PARTS else sums.sum(1, keepdim=True)


def _constants(w: Tensor, sizes: Tile) -> dict[str, int]:
    return {
        "H": w.shape[2],
        "D": w.shape[3],
        "HEADS": sizes.heads,
        "WIDTH": sizes.width,
        "TOKENS": sizes.tokens,
        "num_warps": sizes.warps,
        **FUSED,
    }
