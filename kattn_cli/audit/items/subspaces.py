"""TSSA: what its layers compress, and whether the subspaces that they learn are incoherent (ToST, §4.1, D.4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor, nn

from kattn_cli.audit.coding_rate import variational_coding_rate
from kattn_cli.audit.over_inputs import mean_and_deviation
from kattn_cli.audit.subspaces import CoherenceNull, coherence, coherence_null, subspace_gram
from kattn_cli.audit.view import View
from kattn_cli.data import SplitName
from kattn_cli.runs.csv_rows import Row

COMPRESSED = 500
"""Images of each split, as in the paper's Figure 4a."""
DRAWS = 200
SHOWN = 4
"""Directions of each head in Figure 11."""


def compressions(view: View) -> Iterator[Row]:
    """R^var (eq. 4) of the tokens that enter each layer and of those after its update, in the layer's own subspaces.

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
                    "epoch": view.moment.epoch,
                    "split": split,
                    "layer": layer,
                    "stage": stage,
                    "rate": rate.item(),
                    "rate_std": deviation.item(),
                    "inputs": len(rates),
                }


def coherences(view: View) -> Iterator[Row]:
    """Mean and largest |cosine| of directions of different heads, beside that of random directions."""
    for layer, mechanism, _ in view.layers_with("subspace_tokens"):
        if mechanism.heads < 2:
            continue
        found = coherence(_gram(mechanism))
        null = _random(mechanism.heads, mechanism.head_dim, mechanism.dim, view.seed)
        yield {
            "epoch": view.moment.epoch,
            "layer": layer,
            "coherence": found.mean,
            "largest": found.largest,
            "null_mean": null.mean,
            "null_low": null.low,
            "null_high": null.high,
        }


def directions(view: View) -> Iterator[Row]:
    """The cosines themselves, of a few directions of each head drawn at random, as in Figure 11."""
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
    """The same for every layer and epoch of one shape."""
    return coherence_null(heads, width, dim, DRAWS, torch.Generator().manual_seed(seed))


def _gram(mechanism: nn.Module) -> Tensor:
    weight = mechanism.get_parameter("u.weight").detach().cpu()
    return subspace_gram(weight, int(mechanism.heads))  # type: ignore[arg-type]


def _layer_scale(view: View, layer: int) -> nn.Module:
    block = list(view.model.backbone.blocks)[layer]
    return block.get_submodule("ls1")
