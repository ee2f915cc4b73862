"""Sequence models with any mechanism: an encoder that classifies padded sequences, and a causal decoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from kattn_cli.attention.mechanism import refuse_longer
from kattn_cli.models.blocks import NORM_EPS, Block, FeedForward
from kattn_cli.models.experts import SparseExperts
from kattn_cli.models.model import AttentionModel
from kattn_cli.models.recomputed import checkpointed
from kattn_cli.models.short_convolution import ShortConvolution

DecoderState = tuple[int, list[Any]]
"""How many tokens were fed so far, and the state of each layer's mechanism."""


class Stack(nn.Module):
    """Blocks and a norm, which encoder and decoder have in common.

    ``layer_scale`` is where LayerScale's γ start, or None for no LayerScale; ``norm_eps`` ε of every layer norm.
    ``experts``: the options of :class:`~kattn_cli.models.experts.SparseExperts` in the place of every block's MLP, each
    expert as wide as that would be; None for MLPs.
    """

    def __init__(
        self,
        mechanisms: Sequence[nn.Module],
        dim: int,
        mlp_ratio: float,
        dropout: float,
        drop_path: float,
        experts: Mapping[str, Any] | None = None,
        layer_scale: float | None = None,
        norm_eps: float = NORM_EPS,
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

        def fed() -> FeedForward | nn.Module:
            return "mlp" if experts is None else SparseExperts(dim, int(dim * mlp_ratio), **experts)

        settings: dict[str, Any] = {"mlp_ratio": mlp_ratio, "layer_scale": layer_scale, "norm_eps": norm_eps}
        settings |= {"dropout": dropout, "drop_path": drop_path}
        self.blocks = nn.ModuleList(Block(dim, attn, feed_forward=fed(), **settings) for attn in mechanisms)
        self.norm = nn.LayerNorm(dim, eps=norm_eps)
        self.grad_checkpointing = False

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Turn checkpointing on or off: only each block's inputs are kept; named as in timm's models."""
        self.grad_checkpointing = enable

    def run(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return embedded tokens ``(B, N, dim)`` after blocks and norm."""
        x = self.dropout(x)
        for block in self.blocks:
            x = checkpointed(block, x, mask) if self.grad_checkpointing else block(x, mask)
        return self.norm(x)


class SequenceEncoder(Stack):
    """``(B, N, …)`` inputs to ``(B, classes)`` logits: blocks, a norm, the mean over the tokens, a linear head.

    With queries, to ``(B, queries, classes)``: the head reads each of the last tokens, and no mean is taken.

    Args:
        mechanisms: the attention of each block, which is also the depth.
        embed: from inputs to ``(B, N, dim)``: ``nn.Linear(channels, dim)``, ``nn.Embedding(vocabulary, dim)``, …
        seq_len: the longest input.
        pairs: inputs are ``(B, 2, N, …)``; each of the two is encoded by itself, and an MLP sees both means, their
            product and their difference (Long-Range Arena's Retrieval, as in Nyströmformer's program).
        queries: how many tokens at the end are classified one by one; 0 for one class a sequence.
        convolution: the width of a :class:`ShortConvolution` after the embedding; None for none.
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
        dropout: float = 0.0,
        drop_path: float = 0.0,
        pairs: bool = False,
        queries: int = 0,
        convolution: int | None = None,
        experts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(mechanisms, dim, mlp_ratio, dropout, drop_path, experts)
        self.embed = nn.Sequential(embed, ShortConvolution(dim, convolution)) if convolution else embed
        if position == "learned":
            self.position = nn.Parameter(nn.init.normal_(torch.empty(seq_len, dim), std=0.02))
        else:
            self.register_buffer("position", sinusoids(seq_len, dim), persistent=False)
        self.pairs, self.queries = pairs, queries
        hidden = int(dim * mlp_ratio)
        self.head = (
            nn.Sequential(nn.Linear(4 * dim, hidden), nn.ReLU(), nn.Linear(hidden, classes))
            if pairs
            else nn.Linear(dim, classes)
        )

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return logits ``(B, classes)``, or ``(B, queries, classes)`` of sequences without padding.

        ``mask``: ``(B, N)``, True where there is a token, or None for no padding; what stands there is not seen.
        """
        if self.queries:
            return self.head(self.encoded(inputs, mask)[:, -self.queries :])
        if not self.pairs:
            return self.head(self.mean(inputs, mask))
        means = self.mean(inputs.flatten(0, 1), None if mask is None else mask.flatten(0, 1))
        one, two = means.unflatten(0, (-1, 2)).unbind(1)
        return self.head(torch.cat((one, two, one * two, one - two), -1))

    def mean(self, inputs: Tensor, mask: Tensor | None) -> Tensor:
        """Return the mean over the tokens of what comes out of the blocks, ``(B, dim)``."""
        x = self.encoded(inputs, mask)
        if mask is None:
            return x.mean(1)
        # At least 1: a sequence without tokens has the mean 0, not NaN.
        tokens = mask.sum(1, keepdim=True).clamp(min=1)
        return x.masked_fill(~mask[..., None], 0).sum(1) / tokens

    def encoded(self, inputs: Tensor, mask: Tensor | None) -> Tensor:
        """Return what comes out of the blocks for every token, ``(B, N, dim)``."""
        if mask is not None and inputs.is_floating_point():
            inputs = inputs.masked_fill(~mask[..., None], 0)  # often not a number there, which a product would spread
        x = self.embed(inputs)
        refuse_longer(x.shape[1], len(self.position))
        return self.run(x + self.position[: x.shape[1]], mask)


class _Decoder(Stack):
    """Tokens and their places, and causal blocks."""

    def __init__(
        self,
        mechanisms: Sequence[nn.Module],
        *,
        dim: int,
        seq_len: int,
        vocabulary: int,
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        drop_path: float = 0.0,
        experts: Mapping[str, Any] | None = None,
        layer_scale: float | None = None,
        norm_eps: float = NORM_EPS,
    ) -> None:
        super().__init__(mechanisms, dim, mlp_ratio, dropout, drop_path, experts, layer_scale, norm_eps)
        self.embed = nn.Embedding(vocabulary, dim)
        self.position = nn.Parameter(torch.empty(seq_len, dim))
        for weight in (self.embed.weight, self.position):
            nn.init.normal_(weight, std=0.02)

    def embedded(self, tokens: Tensor, before: int = 0) -> Tensor:
        """Return the embeddings of ``(B, n)`` tokens that follow ``before`` others, ``(B, n, dim)``.

        Raises:
            ValueError: past ``seq_len`` tokens.
        """
        after = before + tokens.shape[1]
        refuse_longer(after, len(self.position))
        return self.embed(tokens) + self.position[before:after]


class CausalDecoder(_Decoder):
    """``(B, N)`` token ids to ``(B, N, vocabulary)`` logits of the next token, as GPT-2: its head is its embedding.

    Args:
        mechanisms: the attention of each block, causal; also the depth.
        seq_len: the longest text.
    """

    def forward(self, tokens: Tensor) -> Tensor:
        return self._head(self.run(self.embedded(tokens)))

    def decode(self, tokens: Tensor, state: DecoderState | None = None) -> tuple[Tensor, DecoderState]:
        """Return the logits of the next ``(B, n)`` tokens, and the state to give back with those that follow.

        Raises:
            AttributeError: if a mechanism cannot decode.
            ValueError: past ``seq_len`` tokens.
        """
        before, states = state or (0, [None] * len(self.blocks))
        x, following = self.embedded(tokens, before), []
        block: Any
        for block, past in zip(self.blocks, states, strict=True):
            x, past = block.decode(x, past)
            following.append(past)
        return self._head(self.norm(x)), (before + tokens.shape[1], following)

    def _head(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.embed.weight)


class DecodingClassifier(_Decoder):
    """``(B, N)`` tokens to ``(B, classes)`` logits, read off the decoder's output at each text's last token.

    With ``queries``, to ``(B, queries, classes)``, read off so many last ones. Its tensors are named as
    :class:`CausalDecoder`'s, so that a language model's weights begin it; see there.
    """

    def __init__(
        self, mechanisms: Sequence[nn.Module], *, dim: int, classes: int, queries: int = 0, **sizes: Any
    ) -> None:
        super().__init__(mechanisms, dim=dim, **sizes)
        self.queries = queries
        self.head = nn.Linear(dim, classes)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return logits ``(B, classes)``, or ``(B, queries, classes)`` of sequences without padding.

        ``mask``: ``(B, N)``, True where there is a token, or None for no padding, which stands at the end.
        """
        x = self.run(self.embedded(tokens), mask)
        if self.queries:
            return self.head(x[:, -self.queries :])
        if mask is None:
            return self.head(x[:, -1])
        last = mask.sum(1).clamp(min=1) - 1
        return self.head(x[torch.arange(len(x), device=x.device), last])


def sinusoids(n: int, dim: int) -> Tensor:
    """Return ``(n, dim)``: sin and cos of position / 10000^(2i/dim) in turn (Vaswani et al. 2017, §3.5)."""
    angles = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, :dim]


class PaddedInputs(Protocol):
    """Sequences and where they are; see :class:`~kattn_cli.data.sequences.Padded`."""

    @property
    def values(self) -> Tensor:
        """``(B, N)`` tokens, or ``(B, N, channels)``; of pairs with a 2 after B."""

    @property
    def mask(self) -> Tensor | None:
        """``(B, N)``, True where there is something, or None for no padding."""


class SequenceClassifier(AttentionModel):
    """Padded sequences to ``(B, classes)`` logits; the normalisation of a series' channels is part of it.

    Args:
        backbone: ``(values, mask)`` to logits.
        mean, std: of each channel of a series; None for tokens.
    """

    mean: Tensor | None
    std: Tensor | None

    def __init__(
        self, backbone: nn.Module, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
    ) -> None:
        super().__init__()
        self.backbone = backbone
        for name, values in (("mean", mean), ("std", std)):
            self.register_buffer(name, None if values is None else torch.tensor(values), persistent=False)

    def forward(self, inputs: PaddedInputs) -> Tensor:
        values, mask = inputs.values, inputs.mask
        if self.mean is not None and self.std is not None:
            values = (values - self.mean) / self.std
        return self.backbone(values, mask)


class LanguageModel(AttentionModel):
    """``(B, N)`` tokens to ``(B, N, vocabulary)`` logits of the token that follows each."""

    backbone: CausalDecoder

    def __init__(self, backbone: CausalDecoder) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, tokens: Tensor) -> Tensor:
        return self.backbone(tokens)

    def decode(self, tokens: Tensor, state: DecoderState | None = None) -> tuple[Tensor, DecoderState]:
        """Return logits and state; see :meth:`~kattn_cli.models.sequence_model.CausalDecoder.decode`."""
        return self.backbone.decode(tokens, state)
