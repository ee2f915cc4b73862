"""The segmentation model: a vision transformer of any mechanism, and Segmenter's mask transformer over its patches.

Source: Strudel et al. 2021, "Segmenter: Transformer for Semantic Segmentation" (arXiv 2105.05633), §3.2. As in the
authors' program, a LayerNorm over the tokens precedes the two projections, and one over the classes follows the product
of the normalised embeddings. Ours: no dropout (theirs has 0.1 in the decoder's blocks).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from timm.layers import set_reentrant_ckpt, trunc_normal_
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.models.blocks import Block
from kattn_cli.models.layers import attention_layers
from kattn_cli.models.model import AttentionModel
from kattn_cli.models.vit import build_vit, replace_attention, sequence_length
from kattn_cli.recipe.model import Segmenter
from kattn_cli.recipe.schema import Attention


class MaskTransformer(nn.Module):
    """Patch tokens ``(B, N, C)`` to a score of each class for each patch, ``(B, N, K)``.

    Args:
        dim: C; the decoder is as wide as the backbone.
        depth: its blocks, of softmax attention whatever the backbone has.
        heads: of each.
        mlp_ratio: hidden width of each block's MLP over ``dim``.
        classes: K.
        patches: N.
    """

    def __init__(self, dim: int, depth: int, heads: int, mlp_ratio: float, classes: int, patches: int) -> None:
        super().__init__()
        self.project = nn.Linear(dim, dim)
        self.class_embedding = nn.Parameter(torch.empty(1, classes, dim))
        attentions = [SoftmaxAttention(dim, heads, seq_len=patches + classes) for _ in range(depth)]
        self.blocks = nn.ModuleList(Block(dim, attention, mlp_ratio=mlp_ratio) for attention in attentions)
        self.norm = nn.LayerNorm(dim)
        self.project_patches = nn.Linear(dim, dim, bias=False)
        self.project_classes = nn.Linear(dim, dim, bias=False)
        self.mask_norm = nn.LayerNorm(classes)
        self._initialise(dim)

    def forward(self, patches: Tensor) -> Tensor:
        count = patches.shape[1]
        x = torch.cat((self.project(patches), self.class_embedding.expand(len(patches), -1, -1)), 1)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        # Of length 1, so that their products are cosines, which the last norm scales by class.
        patch = F.normalize(self.project_patches(x[:, :count]), dim=-1)
        classes = F.normalize(self.project_classes(x[:, count:]), dim=-1)
        return self.mask_norm(patch @ classes.mT)

    def _initialise(self, dim: int) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        trunc_normal_(self.class_embedding, std=0.02)
        for projection in (self.project_patches, self.project_classes):
            nn.init.normal_(projection.weight, std=dim**-0.5)


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
        """Return the logits of the patches, ``(B, classes, H / patch_size, W / patch_size)``."""
        tokens = self.backbone.forward_features((images - self.mean) / self.std)
        scores = self.decoder(tokens[:, self.backbone.num_prefix_tokens :])
        return scores.mT.unflatten(2, self.backbone.patch_embed.grid_size)

    def set_grad_checkpointing(self, enabled: bool) -> None:
        """Turn checkpointing of the backbone, which is nearly all, on or off."""
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
    """Return the model with the mechanisms that ``attention`` names in its backbone, layer by layer.

    The backbone has timm's names, so that it can begin from a classifier's run or a file of timm's.
    """
    sizes = model.model_dump(exclude={"name", "decoder_depth"})
    backbone = build_vit(image_size=image_size, channels=channels, classes=0, pool="token", feed_forward="mlp", **sizes)
    layers = attention_layers(model, image_size)
    replace_attention(backbone, [layers.build(one) for one in attention.per_layer(layers.depth)])
    patches = sequence_length(backbone) - backbone.num_prefix_tokens
    decoder = MaskTransformer(model.dim, model.decoder_depth, model.heads, model.mlp_ratio, classes, patches)
    return SegmentationModel(backbone, decoder, mean, std)
