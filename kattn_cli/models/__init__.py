"""Models: a backbone with any attention, behind the normalisation of its data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from timm.layers import set_reentrant_ckpt
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from kattn_cli.attention.options import build_attention
from kattn_cli.models.tost import TokenStatisticsTransformer
from kattn_cli.models.vit import build_timm, build_vit, heads_of, replace_attention, sequence_length
from kattn_cli.recipe import Attention, Mechanism
from kattn_cli.recipe_model import Model, TimmModel, Tost

Backbone = VisionTransformer | TokenStatisticsTransformer


class Classifier(nn.Module):
    """``(B, channels, height, width)`` pixels in [0, 1] to ``(B, classes)`` logits.

    Normalisation is part of the model, so that an attack's ε is in pixels.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, backbone: Backbone, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.backbone = backbone
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return self.backbone((images - self.mean) / self.std)

    def mechanisms(self) -> list[nn.Module]:
        """The attention module of each layer."""
        return [block.get_submodule("attn") for block in self.backbone.blocks]

    def set_grad_checkpointing(self, enabled: bool) -> None:
        """Trade time for memory: keep only what enters each block, and compute the rest again for the backward pass.

        Loss, gradients and auxiliary losses stay the same; dropout and stochastic depth draw the same numbers twice.
        """
        set_reentrant_ckpt(False)  # timm's other way loses the gradients of auxiliary losses
        self.backbone.set_grad_checkpointing(enabled)

    def attention_inputs(self, images: Tensor) -> list[Tensor]:
        """What the attention of each layer receives for ``images``, ``(B, N, C)`` each."""
        return self._inputs_of(self.mechanisms(), images)

    def class_maps(self, images: Tensor) -> dict[int, Tensor]:
        """How much the class token takes of each patch, ``(B, H, patches)`` by layer.

        Of ToST and XCiT the class-attention layers, counted by themselves; of a vision transformer with a class token
        those whose mechanism has an attention matrix; else none.
        """
        if isinstance(self.backbone, TokenStatisticsTransformer):
            attentions: list[Any] = [block.get_submodule("attn") for block in self.backbone.cls_blocks]
            inputs = self._inputs_of(attentions, images)
            pairs = zip(attentions, inputs, strict=True)
            return {layer: attention.class_map(x)[..., 1:] for layer, (attention, x) in enumerate(pairs)}
        if not self.backbone.has_class_token:
            return {}
        skip = self.backbone.num_prefix_tokens
        maps = {}
        for layer, (mechanism, x) in enumerate(zip(self.mechanisms(), self.attention_inputs(images), strict=True)):
            if hasattr(mechanism, "attention_matrix"):
                maps[layer] = mechanism.attention_matrix(x)[:, :, 0, skip:]  # type: ignore[operator]
        return maps

    def patch_grid(self, images: Tensor) -> tuple[int, int]:
        """Rows and columns of patches that ``images`` are cut into."""
        if isinstance(self.backbone, TokenStatisticsTransformer):
            rows, columns = self.backbone.patch_embed(images[:1]).shape[-2:]
            return int(rows), int(columns)
        rows, columns = self.backbone.patch_embed.grid_size
        return int(rows), int(columns)

    def _inputs_of(self, modules: Sequence[nn.Module], images: Tensor) -> list[Tensor]:
        inputs: list[Tensor] = []
        hooks = [module.register_forward_pre_hook(lambda _, args: inputs.append(args[0])) for module in modules]
        try:
            self(images)
        finally:
            for hook in hooks:
                hook.remove()
        return inputs


@dataclass(frozen=True)
class Layers:
    """What the mechanisms of a model are built for: ``depth`` of them, for ``(B, seq_len, dim)`` in ``heads`` heads."""

    depth: int
    dim: int
    heads: int
    seq_len: int
    causal: bool = False

    def build(self, mechanism: Mechanism) -> nn.Module:
        """The mechanism for one layer.

        Raises:
            RecipeError: if its constructor refuses, in its own words.
        """
        sizes = {"dim": self.dim, "heads": self.heads, "seq_len": self.seq_len}
        return build_attention(mechanism.name, mechanism.options, **sizes, causal=self.causal)


def attention_layers(model: Model, image_size: int) -> Layers:
    """The layers of ``model`` for images of ``image_size × image_size`` pixels.

    Raises:
        ValueError: if the name is of a model in timm that is not a vision transformer.
    """
    if isinstance(model, TimmModel):
        with torch.device("meta"):
            vit = build_timm(model.name, img_size=image_size)
        return Layers(len(vit.blocks), int(vit.embed_dim), heads_of(vit), sequence_length(vit))
    patches = (image_size // model.patch_size) ** 2
    if isinstance(model, Tost):
        return Layers(model.depth, model.dim, model.heads, patches)
    return Layers(model.depth, model.dim, model.heads, patches + (model.pool == "token"), model.causal)


def build_model(
    model: Model,
    attention: Attention,
    *,
    image_size: int,
    channels: int,
    classes: int,
    mean: Sequence[float],
    std: Sequence[float],
) -> Classifier:
    """The backbone that ``model`` names with the mechanisms that ``attention`` names, layer by layer."""
    layers = attention_layers(model, image_size)
    chosen = attention.per_layer(layers.depth)
    data: dict[str, Any] = {"image_size": image_size, "channels": channels, "classes": classes}
    if isinstance(model, Tost):
        sizes = model.model_dump(exclude={"name", "depth"})
        backbone = TokenStatisticsTransformer([layers.build(one) for one in chosen], **data, **sizes)
        return Classifier(backbone, mean, std)
    if isinstance(model, TimmModel):
        vit = build_timm(
            model.name, img_size=image_size, in_chans=channels, num_classes=classes, drop_path_rate=model.drop_path
        )
    else:
        vit = build_vit(**data, **model.model_dump(exclude={"name", "causal"}))
    replace_attention(vit, [layers.build(one) for one in chosen])
    return Classifier(vit, mean, std)


def auxiliary_loss(model: Classifier) -> Tensor:
    """The terms that mechanisms add to the loss, joined over layers as each kind asks; 0 where none does."""
    total = torch.zeros((), device=model.mean.device)
    for reduction, terms in _auxiliary_terms(model):
        joined = torch.stack(terms)
        total = total + (joined.mean() if reduction == "mean" else joined.sum())
    return total


def _auxiliary_terms(model: Classifier) -> Iterator[tuple[str, list[Tensor]]]:
    with_term: list[Any] = [module for module in model.mechanisms() if hasattr(module, "auxiliary_loss")]
    reductions = [getattr(module, "layer_reduction", "sum") for module in with_term]
    for reduction in sorted(set(reductions)):
        chosen = zip(with_term, reductions, strict=True)
        yield reduction, [module.auxiliary_loss() for module, own in chosen if own == reduction]
