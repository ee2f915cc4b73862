"""Whether values, taken back to coefficients, are eigenvectors of the keys' centred Gram matrix.

Source: RPC-Attention, "Unveiling the Hidden Structure of Self-Attention via Kernel PCA", §2.2.2, Figures 2 and 5.
N: tokens, d: head width, D: columns of the values.

The paper sets ``Â = (I − 1_N)⁻¹ G⁻¹ V`` with ``G = diag(1/g)`` and calls â_d an eigenvector where the entries of
``γ = K̃_φ â_d / (N â_d)`` differ little. ``I − 1_N`` is singular, and the paper does not say how it is inverted: here by
its pseudo-inverse, which, as it is an orthogonal projection, is ``I − 1_N`` itself.

Small differences alone say nothing. For this kernel ``κ_φ(k_i, k_j) ≤ exp(−‖k_j‖²/√d) ≤ 1``, so no eigenvalue of
``K̃_φ / N`` exceeds 1, most are far smaller, and γ is near 0 for any values. Hence the residual, which has no scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from kattn_cli.audit.gram import LogKernel, centred, log_exponential, normalised_gram, times_exp
from kattn_cli.audit.view import View, softmax_layers
from kattn_cli.runs.csv_rows import Row

PAIRS_AT_ONCE = 2**22


class EigenvectorCheck(NamedTuple):
    """Of each head and column; not a number for a column whose â_d is 0."""

    difference_mean: Tensor
    """Of ``|γ_i − γ_j|`` over the pairs ``i < j``, ``(…, D)``, as the next two."""
    difference_std: Tensor
    """Of the population of pairs."""
    difference_median: Tensor
    eigenvalues: Tensor
    """All of ``K̃_φ / N``, ``(…, N)``, largest first."""
    residual: Tensor
    """``‖K̃â − ρâ‖ / ‖K̃â‖`` ``(…, D)``, ρ the Rayleigh quotient: the sine of the angle from â to ``K̃â``.

    0 for an eigenvector, 1 for an orthogonal image; small for any values where K̃'s eigenvalues are nearly equal.
    """


def eigenvector_check(k: Tensor, v: Tensor, log_kernel: LogKernel = log_exponential) -> EigenvectorCheck:
    """Check keys ``(…, N, d)`` and values ``(…, N, D)``, in float64. A column's own scale makes no difference."""
    n = k.shape[-2]
    gram = normalised_gram(k, log_kernel)
    scaled = centred(gram.scaled)
    log_g = gram.log_normaliser
    weighted = (log_g - log_g.amax(-1, keepdim=True)).exp()[..., None] * v.double()
    coefficients = weighted - weighted.mean(-2, keepdim=True)
    image = scaled @ coefficients
    gamma = times_exp(image / coefficients, gram.log_scale[..., None, None]) / n
    rayleigh = (coefficients * image).sum(-2) / coefficients.square().sum(-2)
    distance = torch.linalg.vector_norm(image - rayleigh[..., None, :] * coefficients, dim=-2)
    eigenvalues = torch.linalg.eigvalsh(scaled).flip(-1)
    return EigenvectorCheck(
        *_over_pairs(gamma),
        eigenvalues=times_exp(eigenvalues, gram.log_scale[..., None]) / n,
        residual=distance / torch.linalg.vector_norm(image, dim=-2),
    )


def _over_pairs(gamma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mean, deviation and median of ``|γ_i − γ_j|``: ``(…, N, D)`` to ``(…, D)`` thrice."""
    first, second = torch.triu_indices(gamma.shape[-2], gamma.shape[-2], 1, device=gamma.device)
    columns = gamma.mT.reshape(-1, gamma.shape[-2])
    statistics = []
    for chunk in columns.split(max(1, PAIRS_AT_ONCE // len(first))):
        pairs = (chunk[:, first] - chunk[:, second]).abs()
        statistics.append(torch.stack([pairs.mean(-1), pairs.std(-1, correction=0), pairs.quantile(0.5, -1)]))
    mean, deviation, median = torch.cat(statistics, -1).unflatten(-1, gamma.mT.shape[:-1])
    return mean, deviation, median


def eigenvectors(view: View) -> Iterator[Row]:
    """Check the learned values as in §2.2.2, and random ones in their place."""
    for layer, _, k, v in softmax_layers(view):
        random = torch.randn(v.shape, generator=view.generator(), dtype=v.dtype).to(v.device)
        for name, values in (("learned", v), ("random", random)):
            check = eigenvector_check(k, values)
            largest = check.eigenvalues[..., : v.shape[-1]].abs()
            for head in range(k.shape[1]):
                of_columns = {
                    column: getattr(check, column)[:, head].nanmean().item()
                    for column in ("difference_mean", "difference_std", "difference_median", "residual")
                }
                own = largest[:, head]
                yield {
                    "epoch": view.epoch,
                    "layer": layer,
                    "head": head,
                    "values": name,
                    **of_columns,
                    "eigenvalue_max": own.amax(-1).mean().item(),
                    "eigenvalue_min": own.amin(-1).mean().item(),
                    "eigenvalue_mean": own.mean().item(),
                    "eigenvalue_median": own.median(-1).values.mean().item(),
                    "inputs": len(k),
                }
