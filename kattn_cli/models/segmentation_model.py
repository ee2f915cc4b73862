"""The segmentation model: a vision transformer of any mechanism, and Segmenter's mask transformer over its patches."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from timm.layers import set_reentrant_ckpt
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor

from kattn_cli.models.layers import attention_layers
from kattn_cli.models.model import AttentionModel
from kattn_cli.models.segmenter import MaskTransformer
from kattn_cli.models.vit import build_vit, replace_attention, sequence_length
from kattn_cli.recipe.model import Segmenter
from kattn_cli.recipe.schema import Attention


class SegmentationModel(AttentionModel):
    """``(B, channels, H, W)`` pixels in [0, 1] to ``(B, classes, H, W)`` logits.

    Normalisation is part of the model. The masks of patches are enlarged bilinearly.
    """

    backbone: VisionTransformer
    mean: Tensor
    std: Tensor

    def __init__(
        self, backbone: VisionTransformer, decoder: MaskTransformer, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        super().__init__()
        self.backbone, self.decoder = backbone, decoder
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return F.interpolate(self.masks(images), size=images.shape[-2:], mode="bilinear", align_corners=False)

    def masks(self, images: Tensor) -> Tensor:
        """Logits of the patches, ``(B, classes, H / patch_size, W / patch_size)``."""
        tokens = self.backbone.forward_features((images - self.mean) / self.std)
        scores = self.decoder(tokens[:, self.backbone.num_prefix_tokens :])
        return scores.mT.unflatten(2, self.backbone.patch_embed.grid_size)

    def set_grad_checkpointing(self, enabled: bool) -> None:
        """See :class:`~kattn_cli.models.model.AttentionModel`; of the backbone, which is nearly all."""
        set_reentrant_ckpt(False)  # timm's other way loses the gradients of auxiliary losses
        self.backbone.set_grad_checkpointing(enabled)


def build_segmenter(
    model: Segmenter,
    attention: Attention,
    *,
    image_size: int,
    channels: int,
    classes: int,
    mean: Sequence[float],
    std: Sequence[float],
) -> SegmentationModel:
    """The model with the mechanisms that ``attention`` names in its backbone, layer by layer.

    The backbone has timm's names, so that it can begin from a classifier's run or a file of timm's.
    """
    sizes = model.model_dump(exclude={"name", "decoder_depth"})
    backbone = build_vit(image_size=image_size, channels=channels, classes=0, pool="token", feed_forward="mlp", **sizes)
    layers = attention_layers(model, image_size)
    replace_attention(backbone, [layers.build(one) for one in attention.per_layer(layers.depth)])
    patches = sequence_length(backbone) - backbone.num_prefix_tokens
    decoder = MaskTransformer(model.dim, model.decoder_depth, model.heads, model.mlp_ratio, classes, patches)
    return SegmentationModel(backbone, decoder, mean, std)
