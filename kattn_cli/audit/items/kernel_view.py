"""Softmax attention as kernel PCA (RPC-Attention, §2): projection error, eigenvectors, Theorem 1's values."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from kattn_cli.audit.alignment import PUBLISHED, alignment
from kattn_cli.audit.eigenvector_check import eigenvector_check
from kattn_cli.audit.projection_error import CONVENTIONS, projection_error
from kattn_cli.audit.theorem_values import theorem_values
from kattn_cli.audit.view import View, of_head
from kattn_cli.runs.csv_rows import Row


def projection_errors(view: View) -> Iterator[Row]:
    """Both terms of J_proj (eq. 13) and their difference, means over inputs and tokens."""
    for layer, q, k, v in _softmaxes(view):
        for convention in CONVENTIONS:
            error = projection_error(q, k, v, convention)
            for head in range(q.shape[1]):
                feature, projection = (term[:, head].mean().item() for term in error)
                yield {
                    "epoch": view.moment.epoch,
                    "layer": layer,
                    "head": head,
                    "convention": convention,
                    "feature_norm": feature,
                    "projection_norm": projection,
                    "j_proj": feature - projection,
                    "inputs": len(q),
                }


def eigenvectors(view: View) -> Iterator[Row]:
    """§2.2.2 for the learned values, and for random ones in their place."""
    for layer, _, k, v in _softmaxes(view):
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
                    "epoch": view.moment.epoch,
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


def alignments(view: View) -> Iterator[Row]:
    """Learned values beside Theorem 1's, and beside those with their tokens permuted."""
    for layer, _, k, v in _softmaxes(view):
        theorem = theorem_values(k, min(v.shape[-2:])).scaled_values
        measured = alignment(v, theorem, view.permutations, view.generator())
        for measure, found in measured.items():
            for head in range(k.shape[1]):
                value, deviation = of_head(found.value, head)
                yield {
                    "epoch": view.moment.epoch,
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


def _softmaxes(view: View) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    for layer, mechanism, x in view.layers_with("kernel_inputs"):
        yield layer, *mechanism.kernel_inputs(x)
