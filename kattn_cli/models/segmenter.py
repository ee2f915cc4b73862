"""Segmenter's mask transformer: class embeddings that join the patches, and meet them again as masks.

Source: Strudel et al. 2021, "Segmenter: Transformer for Semantic Segmentation" (arXiv 2105.05633), §3.2. As in the
authors' program, a LayerNorm over the tokens precedes the two projections, and one over the classes follows the product
of the normalised embeddings. Ours: no dropout (theirs has 0.1 in the decoder's blocks).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from timm.layers import trunc_normal_
from torch import Tensor, nn

from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.models.blocks import Block


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
