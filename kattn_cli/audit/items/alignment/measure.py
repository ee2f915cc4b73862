"""How alike two sets of values of the same tokens are, beside what a permutation of the tokens gives.

Source: "A Reproduction Study: The Kernel PCA Interpretation of Self-Attention Fails Under Scrutiny" (arXiv 2505.07908)
for the three measures; Kornblith et al., "Similarity of Neural Network Representations Revisited", for CKA.
N: tokens, D: columns. Everything is computed in float64 on the CPU; no measure depends on either side's scale.

CKA here is the biased estimate, well above 0 for unrelated values when N is not much larger than D: hence the null.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import Generator, Tensor

from kattn_cli.audit.gram import centred
from kattn_cli.audit.items.alignment.theorem_values import theorem_values
from kattn_cli.audit.view import View, of_head, softmax_layers
from kattn_cli.runs.csv_rows import Row

PUBLISHED = {"cosine": 0.32, "linear_cka": 0.11, "kernel_cka": 0.32}
"""The reproduction study's means, upper bounds over ten vision transformers."""

TINY = torch.finfo(torch.float64).tiny


class Alignment(NamedTuple):
    """Of one measure, ``(…,)`` each; the null permutes the tokens of one side."""

    value: Tensor
    null_mean: Tensor
    null_high: Tensor
    """The null's 95 % quantile."""
    p_value: Tensor
    """``(1 + permutations that reach the value) / (1 + permutations)``."""


def best_assignment_cosine(a: Tensor, b: Tensor) -> Tensor:
    """Return the mean ``|cosine|`` of columns, paired to make it largest: ``(…, N, D)`` twice to ``(…,)`` in [0, 1].

    The columns are not centred, and one of zeros has cosine 0. Where one side has more columns, the rest go unpaired.
    """
    return _matched(_unit_columns(a), _unit_columns(b))


def linear_cka(a: Tensor, b: Tensor) -> Tensor:
    """Return the CKA of the Gram matrices ``X Xᵀ``: ``(…, N, D)`` twice to ``(…,)`` in [0, 1]; 0 where a side is 0."""
    return _product(_linear_gram(a), _linear_gram(b))


def kernel_cka(a: Tensor, b: Tensor) -> Tensor:
    """Return the CKA of the Gram matrices ``exp(−‖x_i − x_j‖² / 2σ²)``, σ each side's median distance of tokens."""
    return _product(_rbf_gram(a), _rbf_gram(b))


def alignment(v: Tensor, theorem: Tensor, permutations: int, generator: Generator) -> dict[str, Alignment]:
    """Compare learned values and Theorem 1's, ``(…, N, D)`` each, by every measure (a key of :data:`PUBLISHED`).

    Every head of every input has ``permutations`` orders of its own, the same for the three measures. ``generator``
    is one of the CPU.
    """
    columns, other_columns = _unit_columns(v), _unit_columns(theorem)
    grams = torch.stack([_linear_gram(v), _rbf_gram(v)])
    other_grams = torch.stack([_linear_gram(theorem), _rbf_gram(theorem)])
    values = torch.stack([_matched(columns, other_columns), *_product(grams, other_grams)])
    null = []
    for _ in range(permutations):
        order = torch.rand(theorem.shape[:-1], generator=generator).argsort(-1)
        cosine = _matched(columns, other_columns.take_along_dim(order[..., None], -2))
        null.append(torch.stack([cosine, *_product(grams, _permuted(other_grams, order))]))
    drawn = torch.stack(null)
    p_values = (1 + (drawn >= values).sum(0)) / (1 + permutations)
    rows = zip(values, drawn.mean(0), drawn.quantile(0.95, 0), p_values, strict=True)
    return {measure: Alignment(*row) for measure, row in zip(PUBLISHED, rows, strict=True)}


def _largest_one(x: Tensor) -> Tensor:
    """Return ``x`` in float64 on the CPU, over its largest entry, so that squares stay within float64."""
    x = x.detach().to("cpu", torch.float64)
    return x / x.abs().amax((-2, -1), keepdim=True).clamp(min=TINY)


def _unit_columns(x: Tensor) -> Tensor:
    return F.normalize(_largest_one(x), dim=-2, eps=TINY)


def _linear_gram(x: Tensor) -> Tensor:
    x = _largest_one(x)
    return _unit_centred(x @ x.mT)


def _rbf_gram(x: Tensor) -> Tensor:
    x = _largest_one(x)
    distances = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    first, second = torch.triu_indices(x.shape[-2], x.shape[-2], 1)
    bandwidth = distances[..., first, second].quantile(0.5, -1)[..., None, None]
    return _unit_centred((-distances.square() / (2 * bandwidth.square()).clamp(min=TINY)).exp())


def _unit_centred(gram: Tensor) -> Tensor:
    """Return the Gram matrix centred and of Frobenius norm 1, so that the CKA of two is their product's sum."""
    gram = centred(gram)
    return gram / torch.linalg.matrix_norm(gram)[..., None, None].clamp(min=TINY)


def _product(gram: Tensor, other: Tensor) -> Tensor:
    return (gram * other).sum((-2, -1)).clamp(0, 1)


def _permuted(gram: Tensor, order: Tensor) -> Tensor:
    """Return rows and columns in the order of ``(…, N)``, for grams ``(2, …, N, N)``."""
    n = order.shape[-1]
    index = (order[..., :, None] * n + order[..., None, :]).flatten(-2)
    return gram.flatten(-2).take_along_dim(index[None], -1).unflatten(-1, (n, n))


def _matched(columns: Tensor, other: Tensor) -> Tensor:
    cosines = (columns.mT @ other).abs()
    best = []
    for matrix in cosines.reshape(-1, *cosines.shape[-2:]).numpy():
        rows, paired = linear_sum_assignment(matrix, maximize=True)
        best.append(matrix[rows, paired].mean())
    return torch.tensor(best, dtype=torch.float64).reshape(cosines.shape[:-2]).clamp(max=1)


def alignments(view: View) -> Iterator[Row]:
    """Lay learned values beside Theorem 1's, and beside those with their tokens permuted."""
    for layer, _, k, v in softmax_layers(view):
        theorem = theorem_values(k, min(v.shape[-2:])).scaled_values
        measured = alignment(v, theorem, view.permutations, view.generator())
        for measure, found in measured.items():
            for head in range(k.shape[1]):
                value, deviation = of_head(found.value, head)
                yield {
                    "epoch": view.epoch,
                    "layer": layer,
                    "head": head,
                    "measure": measure,
                    "value": value,
                    "value_std": deviation,
                    "null_mean": of_head(found.null_mean, head)[0],
                    "null_high": of_head(found.null_high, head)[0],
                    "p_value": found.p_value[:, head].median().item(),
                    "significant_share": (found.p_value[:, head] <= 0.05).double().mean().item(),
                    "published": PUBLISHED[measure],
                    "inputs": len(k),
                }
