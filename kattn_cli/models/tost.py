"""The architecture that ToST and FAN take over from XCiT: a convolutional stem, blocks, class attention at the end.

Sources: "Token Statistics Transformer", §3.2, Appendix C.2 and Table 5; "XCiT: Cross-Covariance Image
Transformers", whose local patch interaction ToST leaves out; "Understanding the Robustness in Vision Transformers"
(FAN), whose blocks have channel attention in the place of the MLP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from timm.layers import trunc_normal_
from timm.models.xcit import PositionalEncodingFourier
from torch import Tensor, nn

from kattn_cli.attention.class_attention import ClassAttention
from kattn_cli.kernels.precision import exact_dtype
from kattn_cli.models.blocks import NORM_EPS, Block, ClassBlock, FeedForward
from kattn_cli.models.channel_attention import ChannelAttention
from kattn_cli.models.conv_stem import conv_stem
from kattn_cli.models.recomputed import checkpointed


class TokenStatisticsTransformer(nn.Module):
    """``(B, channels, height, width)`` images to ``(B, classes)`` logits, with any mechanism in each block.

    The mechanisms are built for ``(image_size / patch_size)²`` tokens: the class token joins after the blocks.
    Every linear map, those of the mechanisms included, starts as in XCiT: truncated normal, σ = 0.02, no bias.

    Args:
        mechanisms: the attention of each block, which is also the depth.
        patch_size: a power of two.
        heads: of the class attention, and of the channel attention.
        tokens_norm: whether the class-attention blocks' second norm goes over all tokens, or over CLS alone.
        drop_path: the same in every block, as in XCiT.
    """

    def __init__(
        self,
        mechanisms: Sequence[nn.Module],
        *,
        image_size: int,
        channels: int,
        classes: int,
        patch_size: int,
        dim: int,
        heads: int,
        mlp_ratio: float,
        class_depth: int,
        layer_scale: float,
        tokens_norm: bool = True,
        drop_path: float,
        feed_forward: FeedForward | Literal["channel"],
    ) -> None:
        super().__init__()
        self.patch_embed = conv_stem(channels, dim, patch_size)
        self.pos_embed = FourierPositions(dim=dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        sizes = {"mlp_ratio": mlp_ratio, "layer_scale": layer_scale}

        def fed() -> FeedForward | nn.Module:
            return ChannelAttention(dim, heads, int(dim * mlp_ratio)) if feed_forward == "channel" else feed_forward

        self.blocks = nn.ModuleList(
            Block(dim, attn, feed_forward=fed(), drop_path=drop_path, **sizes) for attn in mechanisms
        )
        seq_len = (image_size // patch_size) ** 2 + 1
        self.cls_blocks = nn.ModuleList(
            ClassBlock(dim, ClassAttention(dim, heads, seq_len=seq_len), tokens_norm=tokens_norm, **sizes)
            for _ in range(class_depth)
        )
        self.norm = nn.LayerNorm(dim, eps=NORM_EPS)
        self.head = nn.Linear(dim, classes)
        self.grad_checkpointing = False
        trunc_normal_(self.cls_token, std=0.02)
        self.apply(_initialise)

    def forward(self, images: Tensor) -> Tensor:
        grid = self.patch_embed(images)
        x = (grid + self.pos_embed(1, *grid.shape[-2:])).flatten(2).mT
        for block in self.blocks:
            x = self._run(block, x)
        x = torch.cat((self.cls_token.expand(len(x), -1, -1), x), 1)
        for block in self.cls_blocks:
            x = self._run(block, x)
        return self.head(self.norm(x)[:, 0])

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Turn checkpointing on or off: only each block's inputs are kept."""
        self.grad_checkpointing = enable

    def _run(self, block: nn.Module, x: Tensor) -> Tensor:
        return checkpointed(block, x) if self.grad_checkpointing else block(x)


class FourierPositions(PositionalEncodingFourier):
    """Sines and cosines of a patch's row and column, projected to the model's width: ``(B, dim, height, width)``.

    timm's, which computes them in float32 whatever the model's type, and in float64 for a model in float64.
    """

    def forward(self, batch: int, height: int, width: int) -> Tensor:
        weight = self.token_projection.weight
        rows, columns = (self._waves(n, exact_dtype(weight), weight.device) for n in (height, width))
        code = torch.cat((rows[:, None].expand(-1, width, -1), columns[None].expand(height, -1, -1)), -1)
        return self.token_projection(code[None].permute(0, 3, 1, 2).to(weight.dtype)).repeat(batch, 1, 1, 1)

    def _waves(self, n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return sin and cos in turn of ``2π i/n`` over growing wavelengths, for i = 1 … n: ``(n, hidden_dim)``."""
        places = torch.arange(1, n + 1, device=device).to(dtype)
        angles = places / (places[-1:] + self.eps) * self.scale
        channels = torch.arange(self.hidden_dim, device=device).to(dtype)
        wavelengths = self.temperature ** (2 * torch.div(channels, 2, rounding_mode="floor") / self.hidden_dim)
        angles = angles[:, None] / wavelengths
        return torch.stack((angles[:, 0::2].sin(), angles[:, 1::2].cos()), -1).flatten(1)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
