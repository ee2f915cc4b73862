"""What Principal Attention Pursuit does to its keys: does it converge, and does it separate planted corruption?

Source: RPC-Attention, "Unveiling the Hidden Structure of Self-Attention via Kernel PCA", Algorithm 1; the
yardstick is Candès, Li, Ma and Wright, "Robust Principal Component Analysis?" (2011), eq. 1.1, Algorithm 1.
B: batch, H: heads, N: tokens, d: head width, n: iterations.

``1/μ`` is 4 mean|k|. The paper's τ with λ = 4 is thus 16 mean|k|: an entry below that is no part of S in the first
iteration. Principal Component Pursuit has λ = 1/√max(N, d), and a τ below mean|k| from N = 17 on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from kattn_cli.audit.view import View, of_head
from kattn_cli.kernels.pursuit.equations import CONVENTIONS, NORM_EPSILON, Pursuit, pap_steps, shrink
from kattn_cli.runs.csv_rows import Row

ITERATIONS = 20
"""To see whether more of them would converge."""
SHARE = 0.05
SIZES = (2, 4, 8, 16, 32)
PCP_ITERATIONS = 300
"""At most: it ends where it has converged."""
INPUTS = 16
"""With outliers, since the yardstick decomposes every matrix many times."""


class PursuitTrace(NamedTuple):
    """After each iteration, ``(n, B, H)`` each."""

    residual: Tensor
    """``‖k − L − S‖ / ‖k‖``: 0 where the pursuit has converged to ``k = L + S``."""
    nonzero_share: Tensor
    """Share of the entries of S that are not 0."""


class Recovery(NamedTuple):
    """The support of S against the entries that were planted, ``(B, H)`` each."""

    precision: Tensor
    """Planted among found. Not a number where nothing was found; the planted share for a support by chance."""
    recall: Tensor
    """Found among planted. 0 where nothing was found; not a number where nothing was planted."""
    found_share: Tensor
    """Found among all entries: the recall of a support by chance."""


def pursuit_trace(k: Tensor, v: Tensor, pursuit: Pursuit, q: Tensor | None = None) -> PursuitTrace:
    """Return the residual and the sparsity of S for keys and values, and optional queries, ``(B, H, N, d)``."""
    norm = k.norm(dim=(-2, -1)).clamp(min=NORM_EPSILON)
    residuals, shares = [], []
    for _, sparse, low_rank in pap_steps(k, v, pursuit, q=q):
        residuals.append((k - low_rank - sparse).norm(dim=(-2, -1)) / norm)
        shares.append(_share(sparse != 0))
    return PursuitTrace(torch.stack(residuals), torch.stack(shares))


def planted(k: Tensor, share: float, size: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return ``k`` ``(B, H, N, d)`` with outliers of either sign added, and where they are, a mask of k's shape.

    Each sample and head gets ``round(share · N · d)`` of them, of ``size`` times its own mean|k|. The generator is
    the CPU's, so that every device plants the same.

    Raises:
        ValueError: if ``share`` is not between 0 and 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, not {share}")
    places = torch.rand(k.flatten(-2).shape, generator=generator).argsort(-1)
    signs = torch.randint(0, 2, k.shape, generator=generator) * 2 - 1
    chosen = places[..., : round(share * places.shape[-1])]
    mask = torch.zeros_like(places, dtype=torch.bool).scatter(-1, chosen, True).view(k.shape).to(k.device)
    outliers = signs.to(k) * size * k.abs().mean((-2, -1), keepdim=True)
    return torch.where(mask, k + outliers, k), mask


def recovery(sparse: Tensor, mask: Tensor) -> Recovery:
    """Measure how well the support of S finds the ``mask`` of what was planted, both ``(B, H, N, d)``."""
    found, hits = _share(sparse != 0), _share((sparse != 0) & mask)
    return Recovery(hits / found, hits / _share(mask), found)


def principal_component_pursuit(
    m: Tensor, lambda_: float | None = None, tolerance: float = 1e-6, iterations: int = 1000
) -> tuple[Tensor, Tensor]:
    """Return ``L`` and ``S`` that minimise ``‖L‖_* + λ‖S‖₁`` subject to ``L + S = M``, for each matrix ``(…, N, d)``.

    By alternating directions, with ``μ = N·d / (4‖M‖₁)`` and, unless given, ``λ = 1/√max(N, d)``. Ends when both
    ``‖M − L − S‖`` and the last change of S are at most ``tolerance · ‖M‖``, for all matrices, or after
    ``iterations``: the caller sees which by the first of these norms.
    """
    weight = 1 / math.sqrt(max(m.shape[-2:])) if lambda_ is None else lambda_
    step = 4 * m.abs().mean((-2, -1), keepdim=True)  # 1/μ
    limit = tolerance * m.norm(dim=(-2, -1))
    low_rank, sparse, u = torch.zeros_like(m), torch.zeros_like(m), torch.zeros_like(m)  # u = Y/μ
    for _ in range(iterations):
        before = sparse
        low_rank = _shrink_singular_values(m - sparse + u, step[..., 0])
        sparse = shrink(m - low_rank + u, weight * step)
        gap = m - low_rank - sparse
        u = u + gap
        if all((difference.norm(dim=(-2, -1)) <= limit).all() for difference in (gap, sparse - before)):
            break
    return low_rank, sparse


def _shrink_singular_values(z: Tensor, threshold: Tensor) -> Tensor:
    left, values, right = torch.linalg.svd(z, full_matrices=False)
    return (left * (values - threshold).clamp(min=0)[..., None, :]) @ right


def _share(entries: Tensor) -> Tensor:
    return entries.double().mean((-2, -1))


def traces(view: View) -> Iterator[Row]:
    """Measure ``‖k − L − S‖ / ‖k‖`` and the share of S not 0, in each convention, beyond the recipe's iterations."""
    for layer, mechanism, x in view.layers_with("pursued"):
        q, k, v = mechanism.pursued(x)
        own: Pursuit = mechanism.pursuit
        for convention in CONVENTIONS:
            longer = replace(own, convention=convention, iterations=max(ITERATIONS, own.iterations))
            trace = pursuit_trace(k, v, longer, q)
            for index, (residual, share) in enumerate(zip(*trace, strict=True)):
                for head in range(k.shape[1]):
                    mean, deviation = of_head(residual, head)
                    yield {
                        "layer": layer,
                        "head": head,
                        "convention": convention,
                        "iteration": index + 1,
                        "residual": mean,
                        "residual_std": deviation,
                        "nonzero_share": of_head(share, head)[0],
                        "recipe_iterations": own.iterations,
                        "recipe_convention": own.convention,
                        "inputs": len(k),
                    }


def planted_outliers(view: View) -> Iterator[Row]:
    """Compare the support of S with outliers planted in 5 % of the keys' entries; so that of the convex program."""
    for layer, mechanism, x in view.layers_with("pursued"):
        q, k, v = mechanism.pursued(x[:INPUTS])
        for size in SIZES:
            corrupted, mask = planted(k, SHARE, size, view.generator())
            for method, iterations, sparse in _supports(mechanism.pursuit, q, corrupted, v):
                found = recovery(sparse, mask)
                for head in range(k.shape[1]):
                    precision, recall, share = (part[:, head].nanmean().item() for part in found)
                    yield {
                        "layer": layer,
                        "head": head,
                        "method": method,
                        "iterations": iterations,
                        "share": SHARE,
                        "size": size,
                        "precision": precision,
                        "recall": recall,
                        "found_share": share,
                        "inputs": len(k),
                    }


def _supports(own: Pursuit, q: Tensor | None, k: Tensor, v: Tensor) -> Iterator[tuple[str, int, Tensor]]:
    for convention in CONVENTIONS:
        *_, (_, sparse, _) = pap_steps(k, v, replace(own, convention=convention), q=q)
        yield convention, own.iterations, sparse
    yield "pcp", PCP_ITERATIONS, principal_component_pursuit(k, tolerance=1e-4, iterations=PCP_ITERATIONS)[1]
