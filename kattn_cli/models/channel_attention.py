"""FAN's channel attention, which replaces a block's MLP: an MLP over tokens whose channels are weighted.

Source: "Understanding the Robustness in Vision Transformers" (FAN; Zhou et al. 2022, §2.4, efficient channel
attention), in the form that the authors' program computes and FAN-T-ViT's 7.3 M parameters are counted for: per head
``σ(softmax(Q)ᵀ k̄) · τ`` times ``norm(MLP(x))``, both softmaxes over the tokens, k̄ the mean over the head's channels of
``softmax(x)``. The keys are x itself, so Q is the only projection, and the values are x, too.

Both softmaxes add up to 1 over N tokens, so their product is about 1/N and σ of it nearly ½: what a channel weighs is
mostly τ, one number a head. The MLP has a branch of convolutions where others have their activation.
Shapes: B batch, N tokens of a square grid, C channels in H heads of d.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class ConvolutionalMlp(nn.Module):
    """``W₂(h + γ·conv(h))`` for ``h = W₁ x``. ``(B, N, dim)`` to the same.

    conv: two 3 × 3 convolutions, of each channel by itself, with GELU and batch norm between them.

    Raises:
        ValueError: if the tokens are no square grid.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.conv = nn.Sequential(
            nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden),
            nn.GELU(),
            nn.BatchNorm2d(hidden),
            nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden),
        )
        self.gamma = nn.Parameter(torch.ones(hidden))
        self.fc2 = nn.Linear(hidden, dim)
        for layer in self.conv:
            if isinstance(layer, nn.Conv2d):
                # He's deviation for a depthwise convolution: each output sums 9 inputs.
                nn.init.normal_(layer.weight, std=math.sqrt(2 / 9))
                nn.init.zeros_(layer.get_parameter("bias"))

    def forward(self, x: Tensor) -> Tensor:
        side = math.isqrt(x.shape[1])
        if side * side != x.shape[1]:
            raise ValueError(f"channel attention is for a square grid of tokens, and {x.shape[1]} are none")
        h = self.fc1(x)
        mixed = self.conv(h.mT.unflatten(-1, (side, side))).flatten(2).mT
        return self.fc2(h + self.gamma * mixed)


class ChannelAttention(nn.Module):
    """``τ σ(softmax(Q)ᵀ k̄) ⊙ norm(MLP(x))``. ``(B, N, C)`` to the same; N is a square.

    Args:
        hidden: width of the MLP.
    """

    def __init__(self, dim: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dim, dim)
        self.temperature = nn.Parameter(torch.ones(heads, 1))
        self.mlp = ConvolutionalMlp(dim, hidden)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.mlp(x)) * self.weights(x)[:, None]

    def weights(self, x: Tensor) -> Tensor:
        """Return the weight of each channel, between 0 and its head's temperature, ``(B, C)``."""
        q = self.q(x).softmax(1).unflatten(-1, (self.heads, -1))  # (B, N, H, d)
        prototype = x.softmax(1).unflatten(-1, (self.heads, -1)).mean(-1)  # (B, N, H)
        scores = torch.einsum("bnhd,bnh->bhd", q, prototype)
        return (self.temperature * scores.sigmoid()).flatten(1)
