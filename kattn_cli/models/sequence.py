"""Backbones for sequences, of any mechanism: an encoder that classifies, and a decoder that predicts what follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from kattn_cli.attention.mechanism import refuse_longer
from kattn_cli.models.blocks import NORM_EPS, Block

DecoderState = tuple[int, list[Any]]
"""How many tokens were fed so far, and the state of each layer's mechanism."""


class SequenceEncoder(nn.Module):
    """``(B, N, …)`` inputs to ``(B, classes)`` logits: blocks, a norm, the mean over the tokens, a linear head.

    Args:
        mechanisms: the attention of each block, which is also the depth.
        embed: from inputs to ``(B, N, dim)``: ``nn.Linear(channels, dim)``, ``nn.Embedding(vocabulary, dim)``, …
        seq_len: the longest input.
    """

    position: Tensor

    def __init__(
        self,
        mechanisms: Sequence[nn.Module],
        embed: nn.Module,
        *,
        dim: int,
        seq_len: int,
        classes: int,
        position: Literal["sinusoidal", "learned"] = "sinusoidal",
        mlp_ratio: float = 4.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed = embed
        if position == "learned":
            self.position = nn.Parameter(nn.init.normal_(torch.empty(seq_len, dim), std=0.02))
        else:
            self.register_buffer("position", sinusoids(seq_len, dim), persistent=False)
        self.blocks = nn.ModuleList(Block(dim, attn, mlp_ratio=mlp_ratio, drop_path=drop_path) for attn in mechanisms)
        self.norm = nn.LayerNorm(dim, eps=NORM_EPS)
        self.head = nn.Linear(dim, classes)

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """``mask``: ``(B, N)``, True where there is a token, or None for no padding; what stands there is not seen."""
        if mask is not None and inputs.is_floating_point():
            inputs = inputs.masked_fill(~mask[..., None], 0)  # often not a number there, which a product would spread
        x = self.embed(inputs)
        refuse_longer(x.shape[1], len(self.position))
        x = x + self.position[: x.shape[1]]
        for block in self.blocks:
            x = block(x, mask)
        x = self.norm(x)
        if mask is None:
            return self.head(x.mean(1))
        tokens = mask.sum(1, keepdim=True).clamp(min=1)
        return self.head(x.masked_fill(~mask[..., None], 0).sum(1) / tokens)


class Decoder(nn.Module):
    """``(B, N)`` token ids to ``(B, N, vocabulary)`` logits of the next token, as GPT-2: its head is its embedding.

    Args:
        mechanisms: the attention of each block, causal; also the depth.
        seq_len: the longest text.
    """

    def __init__(
        self,
        mechanisms: Sequence[nn.Module],
        *,
        dim: int,
        seq_len: int,
        vocabulary: int,
        mlp_ratio: float = 4.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.position = nn.Parameter(torch.empty(seq_len, dim))
        self.blocks = nn.ModuleList(Block(dim, attn, mlp_ratio=mlp_ratio, drop_path=drop_path) for attn in mechanisms)
        self.norm = nn.LayerNorm(dim, eps=NORM_EPS)
        for weight in (self.embed.weight, self.position):
            nn.init.normal_(weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self._embed(tokens, 0)
        for block in self.blocks:
            x = block(x)
        return self._head(x)

    def decode(self, tokens: Tensor, state: DecoderState | None = None) -> tuple[Tensor, DecoderState]:
        """Logits for the next ``(B, n)`` tokens, and the state to give back with those that follow.

        Raises:
            AttributeError: if a mechanism cannot decode.
            ValueError: past ``seq_len`` tokens.
        """
        before, states = state or (0, [None] * len(self.blocks))
        x, following = self._embed(tokens, before), []
        block: Any
        for block, past in zip(self.blocks, states, strict=True):
            x, past = block.decode(x, past)
            following.append(past)
        return self._head(x), (before + tokens.shape[1], following)

    def _embed(self, tokens: Tensor, before: int) -> Tensor:
        after = before + tokens.shape[1]
        refuse_longer(after, len(self.position))
        return self.embed(tokens) + self.position[before:after]

    def _head(self, x: Tensor) -> Tensor:
        return nn.functional.linear(self.norm(x), self.embed.weight)


def sinusoids(n: int, dim: int) -> Tensor:
    """``(n, dim)``: sin and cos of position / 10000^(2i/dim) in turn (Vaswani et al. 2017, §3.5)."""
    angles = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, :dim]
