"""Causal TSSA and its gradient in Triton, in chunks of 64 tokens that run at the same time.

B: batch, N: tokens, H: heads, d: head width, C = H·d. Each running sum is taken in three steps: the sum of every
chunk, the sums of the chunks before each (:func:`~kattn_cli.kernels.triton_sums.sums_before`), and the sums within a
chunk where they are used. Nothing of the size of ``w`` is kept. Five launches forward; six backward, and a few of
torch's for the gradients of η and the bias.

Bytes moved, for e bytes an entry of ``w`` and s of a statistic (float32, or float64 for such ``w``). Between passes
the sums of chunks are written and read, N / 64 rows of C:

========== ==================================================================== ==================
forward    squares: reads w                                                     B·N·C·e
..         membership: reads w, writes energies and Π                           B·N·(C·e + 2·H·s)
..         output: reads w and Π, writes the output and Σ Π                     B·N·(2·C·e + 2·H·s)
backward   moments: reads w, the gradient, Π and Σ Π                            B·N·(2·C·e + 2·H·s)
..         memberships: the same again, writes one of each head                 B·N·(2·C·e + 3·H·s)
..         energies: reads w and three of each head, writes one                 B·N·(C·e + 4·H·s)
..         input: reads w, the gradient and three of each head, writes dw       B·N·(3·C·e + 3·H·s)
========== ==================================================================== ==================
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from kattn_cli.kernels.causal_tssa import triton_kernels as kernels
from kattn_cli.kernels.causal_tssa.equations import CHUNK
from kattn_cli.kernels.precision import exact_dtype
from kattn_cli.kernels.triton_sums import FUSED, UNFUSED, as_bytes, on_device_of, squares, sums_before, tile
from kattn_cli.kernels.tssa.equations import NORM_EPSILON, SUM_EPSILON


def forward(
    w: Tensor, eta: Tensor, bias: Tensor, mask: Tensor | None, normalize: bool, repeats: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the output ``(B, N, H, d)`` and, for the backward pass, energies, Π, Σ Π and the states of two sums.

    Energies, Π and Σ Π: ``(B, N, H)``; states of Σ w² and Σ Π w²: ``(B, ⌈N/64⌉, H, d)``.

    ``w``: ``(B, N, H, d)``, contiguous, 0 at the padding; ``bias``: ``(B or 1, H, N)``, added ``repeats`` times.
    A state is the sum before a chunk; those of Σ w² are zeros without ``normalize``, where nothing needs them.
    """
    samples, tokens, heads, width = w.shape
    chunks, columns = triton.cdiv(tokens, CHUNK), heads * width
    like = w.new_empty(0, dtype=exact_dtype(w))
    energy, membership, mass = (like.new_empty(samples, tokens, heads) for _ in range(3))
    parts, out = like.new_empty(samples, chunks, columns + heads), torch.empty_like(w)
    of_tokens = as_bytes(mask, w)
    with on_device_of(w):
        if normalize:
            energy_states, _ = sums_before(squares(w, CHUNK), columns)
        else:
            energy_states = like.new_zeros(samples, chunks, columns)
        kernels.membership_pass[(samples * chunks,)](
            *(w, eta, bias, of_tokens, energy_states, energy, membership, parts, tokens, chunks, repeats),
            *(0 if bias.shape[0] == 1 else bias.stride(0), bias.stride(1), bias.stride(2)),
            NORMALIZE=normalize,
            MASKED=mask is not None,
            EPSILON=NORM_EPSILON,
            **_all_heads(w),
        )
        moment_states, mass_states = sums_before(parts, columns)
        kernels.output_pass[(samples * chunks * heads,)](
            *(w, of_tokens, membership, moment_states, mass_states, mass, out, tokens, chunks),
            MASKED=mask is not None,
            EPSILON=SUM_EPSILON,
            **_one_head(w),
        )
    states = (samples, chunks, heads, width)
    return out, energy, membership, mass, energy_states.view(states), moment_states.view(states)


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
    samples, tokens, heads, width = w.shape
    chunks, columns = triton.cdiv(tokens, CHUNK), heads * width
    grad = grad.contiguous()
    parts, more_parts = (energy.new_empty(samples, chunks, columns + heads) for _ in range(2))
    by_membership, by_energy, by_w = torch.empty_like(energy), torch.empty_like(energy), torch.empty_like(w)
    grid, one_head = (samples * chunks * heads,), _one_head(w)
    saved = (w, grad, membership, mass, moment_states)
    with on_device_of(w):
        kernels.moments_pass[grid](*saved, parts, tokens, chunks, **one_head)
        moments_after, masses_after = sums_before(parts, columns, reverse=True)
        kernels.memberships_pass[grid](
            *(*saved, as_bytes(mask, w), moments_after, masses_after, by_membership, tokens, chunks),
            MASKED=mask is not None,
            **one_head,
        )
        kernels.energies_pass[(samples * chunks,)](
            *(w, eta, energy, membership, by_membership, energy_states, by_energy, more_parts, tokens, chunks),
            NORMALIZE=normalize,
            EPSILON=NORM_EPSILON,
            **_all_heads(w),
        )
        shares_after = sums_before(more_parts, columns, reverse=True)[0] if normalize else energy_states
        kernels.input_pass[grid](
            *(*saved, by_energy, energy_states, moments_after, shares_after, by_w, tokens, chunks),
            NORMALIZE=normalize,
            EPSILON=NORM_EPSILON,
            **_one_head(w, entries=8) | UNFUSED,
        )
    by_bias = (repeats * by_energy.mT).sum_to_size(bias.shape).to(bias.dtype)
    return by_w, more_parts[:, :, columns:].sum((0, 1)).to(eta.dtype), by_bias


def _all_heads(w: Tensor) -> dict[str, int]:
    """Return the constants of kernels that take a chunk with all heads, a few of its tokens at a time."""
    heads, width = w.shape[2:]
    sizes = tile(heads, width, entries=32)
    return {
        "H": heads,
        "D": width,
        "CHUNK": CHUNK,
        "HEADS": sizes.heads,
        "WIDTH": sizes.width,
        "TOKENS": sizes.tokens,
        "num_warps": sizes.warps,
        **FUSED,
    }


def _one_head(w: Tensor, entries: int = 16) -> dict[str, int]:
    """Return the constants of kernels that take a chunk of one head at once, so many entries a thread."""
    heads, width = w.shape[2:]
    padded = max(16, triton.next_power_of_2(width))
    warps = min(16, CHUNK * padded // (32 * entries))
    return {"H": heads, "D": width, "CHUNK": CHUNK, "WIDTH": padded, "num_warps": warps, **FUSED}
