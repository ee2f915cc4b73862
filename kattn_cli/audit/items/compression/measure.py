"""What each layer of ToST compresses: the coding rate of token groups, and the variational bound on it.

Source: ToST, "Token Statistics Transformer", eq. 2–4 and Theorem 1, with ``f(x) = log(1 + x)``.
H: groups (heads), N: tokens, d: width. A membership Π is ``(…, H, N)``, ``n_k`` the sum of its row k.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from kattn_cli.audit.view import View, mean_and_deviation
from kattn_cli.data import SplitName
from kattn_cli.runs.csv_rows import Row

COMPRESSED = 500
"""Images of each split, as in the paper's Figure 4a."""


def coding_rate(z: Tensor, membership: Tensor) -> Tensor:
    """Return ``½ Σ_k (n_k/n) Σ_i f(λ_i((1/n_k) Z Diag(π_k) Zᵀ))`` (eq. 2): ``z`` ``(…, N, d)`` to ``(…,)``."""
    sizes = membership.sum(-1)
    weighted = z.mT[..., None, :, :] * (membership / sizes[..., None])[..., None, :]
    spectra = torch.linalg.eigvalsh(weighted @ z[..., None, :, :])
    return _over_groups(spectra.clamp(min=0), sizes, z.shape[-2])


def variational_coding_rate(w: Tensor, membership: Tensor) -> Tensor:
    """Return ``½ Σ_k (n_k/n) Σ_i f((1/n_k) (U_kᵀ Z Diag(π_k) Zᵀ U_k)_ii)`` (eq. 4).

    ``w``: the tokens in each group's basis, ``U_kᵀ Z``, ``(…, H, N, d)``; returns ``(…,)``. At least
    :func:`coding_rate` for orthogonal ``U_k``, and equal where they diagonalise (Theorem 1).
    """
    sizes = membership.sum(-1)
    moments = (membership[..., None] * w.square()).sum(-2) / sizes[..., None]
    return _over_groups(moments, sizes, w.shape[-2])


def _over_groups(values: Tensor, sizes: Tensor, n: int) -> Tensor:
    return (sizes / n * values.log1p().sum(-1)).sum(-1) / 2


def compressions(view: View) -> Iterator[Row]:
    """Measure R^var (eq. 4) of the tokens that enter a layer and of those after its update, in the layer's subspaces.

    The update is what the block adds to its tokens, LayerScale included, here added to the tokens as normalised.
    """
    if not any(view.layers_with("subspace_tokens")):
        return
    splits: tuple[SplitName, ...] = ("train", "validation")
    for split in splits:
        entering = view.model.attention_inputs(view.images_of(split, COMPRESSED))
        for layer, mechanism, _ in view.layers_with("subspace_tokens"):
            z = entering[layer]
            added = _layer_scale(view, layer)(mechanism(z))
            for stage, tokens in (("before", z), ("after", z + added)):
                rates = variational_coding_rate(mechanism.subspace_tokens(tokens), mechanism.membership(tokens))
                rate, deviation = mean_and_deviation(rates)
                yield {
                    "epoch": view.epoch,
                    "split": split,
                    "layer": layer,
                    "stage": stage,
                    "rate": rate.item(),
                    "rate_std": deviation.item(),
                    "inputs": len(rates),
                }


def _layer_scale(view: View, layer: int) -> nn.Module:
    block = list(view.model.backbone.blocks)[layer]
    return block.get_submodule("ls1")
