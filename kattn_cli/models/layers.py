"""Layers: the sizes that the mechanisms of a model are built for."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from kattn_cli.attention.options import build_attention
from kattn_cli.models.vit import build_timm, heads_of, sequence_length
from kattn_cli.recipe.model import DecisionTransformer, Decoder, Encoder, ImageModel, Segmenter, TimmModel, Tost
from kattn_cli.recipe.schema import Mechanism

TOKENS_A_STEP = 3
"""Return to go, state and action."""


@dataclass(frozen=True)
class Layers:
    """Sizes that mechanisms are built for: ``depth`` of them, for ``(B, seq_len, dim)`` in ``heads`` heads."""

    depth: int
    dim: int
    heads: int
    seq_len: int
    causal: bool = False

    def build(self, mechanism: Mechanism) -> nn.Module:
        """Return the mechanism of one layer.

        Raises:
            RecipeError: if its constructor refuses, in its own words.
        """
        sizes = {"dim": self.dim, "heads": self.heads, "seq_len": self.seq_len}
        return build_attention(mechanism.name, mechanism.options, **sizes, causal=self.causal)


def attention_layers(model: ImageModel | Segmenter, image_size: int) -> Layers:
    """Return the layers of ``model`` for images of ``image_size × image_size`` pixels.

    Raises:
        ValueError: if the name is of a model in timm that is not a vision transformer.
    """
    if isinstance(model, TimmModel):
        # Only its sizes are wanted, so no weights are made.
        with torch.device("meta"):
            vit = build_timm(model.name, img_size=image_size)
        return Layers(len(vit.blocks), int(vit.embed_dim), heads_of(vit), sequence_length(vit))
    patches = (image_size // model.patch_size) ** 2
    if isinstance(model, Tost):
        return Layers(model.depth, model.dim, model.heads, patches)
    if isinstance(model, Segmenter):
        return Layers(model.depth, model.dim, model.heads, patches + 1)
    return Layers(model.depth, model.dim, model.heads, patches + (model.pool == "token"), model.causal)


def sequence_layers(model: Encoder | Decoder, seq_len: int) -> Layers:
    """Return the layers of ``model`` for sequences of up to ``seq_len``; those of a decoder are causal."""
    return Layers(model.depth, model.dim, model.heads, seq_len, causal=isinstance(model, Decoder))


def trajectory_layers(model: DecisionTransformer, context: int) -> Layers:
    """Return the layers of ``model`` for windows of ``context`` steps, each of which is three tokens."""
    return Layers(model.depth, model.dim, model.heads, TOKENS_A_STEP * context, causal=True)
