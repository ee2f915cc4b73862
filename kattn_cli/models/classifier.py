"""The classifier of images: a backbone behind the normalisation of its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from timm.layers import set_reentrant_ckpt
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor

from kattn_cli.models.model import AttentionModel
from kattn_cli.models.tost import TokenStatisticsTransformer

Backbone = VisionTransformer | TokenStatisticsTransformer


class Classifier(AttentionModel):
    """``(B, channels, height, width)`` pixels in [0, 1] to ``(B, classes)`` logits.

    Normalisation is part of the model, so that an attack's ε is in pixels.
    """

    backbone: Backbone
    mean: Tensor
    std: Tensor

    def __init__(self, backbone: Backbone, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.backbone = backbone
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return self.backbone((images - self.mean) / self.std)

    def set_grad_checkpointing(self, enabled: bool) -> None:
        """Turn gradient checkpointing on or off; see :class:`~kattn_cli.models.model.AttentionModel`."""
        set_reentrant_ckpt(False)  # timm's other way loses the gradients of auxiliary losses
        self.backbone.set_grad_checkpointing(enabled)

    def class_maps(self, images: Tensor) -> dict[int, Tensor]:
        """Return the class token's attention to each patch, ``(B, H, patches)`` by layer.

        Of ToST and XCiT the class-attention layers, counted by themselves; of a vision transformer with a class token
        those whose mechanism has an attention matrix; else none.
        """
        if isinstance(self.backbone, TokenStatisticsTransformer):
            attentions: list[Any] = [block.get_submodule("attn") for block in self.backbone.cls_blocks]
            inputs = self.inputs_of(attentions, images)
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
        """Return the rows and columns of patches that ``images`` are cut into."""
        if isinstance(self.backbone, TokenStatisticsTransformer):
            rows, columns = self.backbone.patch_embed(images[:1]).shape[-2:]
            return int(rows), int(columns)
        rows, columns = self.backbone.patch_embed.grid_size
        return int(rows), int(columns)
