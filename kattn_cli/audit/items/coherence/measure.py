"""Are the subspaces that TSSA learns incoherent, as its derivation assumes?

Source: ToST, "Token Statistics Transformer", §3.3, Appendix D.4, Figure 11. H: heads, d: head width, C: width.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kattn_cli.audit.view import View
from kattn_cli.runs.csv_rows import Row

DRAWS = 200
SHOWN = 4
"""Directions of each head in Figure 11."""


class Coherence(NamedTuple):
    """|cosine| over the pairs of directions from different heads: 0 where all subspaces are orthogonal."""

    mean: float
    largest: float


class CoherenceNull(NamedTuple):
    """The mean |cosine| of random directions, and the range of 95 % of its draws."""

    mean: float
    low: float
    high: float


def subspace_gram(weight: Tensor, heads: int) -> Tensor:
    """Return the cosines ``(H, d, H, d)`` of the directions of all heads, for the weight ``(H·d, C)`` of ``w = U x``.

    A row of the weight is a column of U_k, taken at unit norm as in Figure 11: ``gram[i, :, j, :]`` is its block
    ``U_iᵀ U_j``.
    """
    directions = F.normalize(weight, dim=-1)
    return (directions @ directions.mT).unflatten(1, (heads, -1)).unflatten(0, (heads, -1))


def coherence(gram: Tensor) -> Coherence:
    """Return how coherent the heads are, from cosines ``(H, d, H, d)``.

    Raises:
        ValueError: if there is one head, which leaves no pairs.
    """
    heads = gram.shape[0]
    if heads < 2:
        raise ValueError("coherence is between different heads, and there is one")
    others = ~torch.eye(heads, dtype=torch.bool, device=gram.device)
    between = gram.transpose(1, 2)[others].abs()  # (H² − H, d, d)
    return Coherence(between.mean().item(), between.max().item())


def coherence_null(heads: int, width: int, dim: int, draws: int, generator: torch.Generator) -> CoherenceNull:
    """Return the coherence of ``heads · width`` independent, uniform directions in ``dim`` dimensions, over ``draws``.

    Each |cosine| has the mean ``Γ(C/2) / (√π Γ((C + 1)/2))``, about ``√(2/(πC))``.
    """
    means = torch.tensor(
        [
            coherence(subspace_gram(torch.randn(heads * width, dim, generator=generator), heads)).mean
            for _ in range(draws)
        ],
        dtype=torch.float64,
    )
    low, high = means.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return CoherenceNull(means.mean().item(), low, high)


def coherences(view: View) -> Iterator[Row]:
    """Measure the mean and largest |cosine| of directions of different heads, beside that of random directions."""
    for layer, mechanism, _ in view.layers_with("subspace_tokens"):
        if mechanism.heads < 2:
            continue
        found = coherence(_gram(mechanism))
        null = _random(mechanism.heads, mechanism.head_dim, mechanism.dim, view.seed)
        yield {
            "epoch": view.epoch,
            "layer": layer,
            "coherence": found.mean,
            "largest": found.largest,
            "null_mean": null.mean,
            "null_low": null.low,
            "null_high": null.high,
        }


def directions(view: View) -> Iterator[Row]:
    """Write the cosines themselves, of a few directions of each head drawn at random, as in Figure 11."""
    for layer, mechanism, _ in view.layers_with("subspace_tokens"):
        gram = _gram(mechanism)
        order = torch.rand(gram.shape[:2], generator=view.generator()).argsort(-1)[:, :SHOWN]
        for head_i, rows in enumerate(order.tolist()):
            for head_j, columns in enumerate(order.tolist()):
                for i, row in enumerate(rows):
                    for j, column in enumerate(columns):
                        cosine = gram[head_i, row, head_j, column].item()
                        yield {"layer": layer, "head_i": head_i, "head_j": head_j, "i": i, "j": j, "cosine": cosine}


@cache
def _random(heads: int, width: int, dim: int, seed: int) -> CoherenceNull:
    """Return the null, the same for every layer and epoch of one shape."""
    return coherence_null(heads, width, dim, DRAWS, torch.Generator().manual_seed(seed))


def _gram(mechanism: nn.Module) -> Tensor:
    weight = mechanism.get_parameter("u.weight").detach().cpu()
    return subspace_gram(weight, int(mechanism.heads))  # type: ignore[arg-type]
