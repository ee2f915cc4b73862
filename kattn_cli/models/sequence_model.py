"""Models of sequences: one that classifies padded ones, and one that tells what follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from kattn_cli.models.model import AttentionModel
from kattn_cli.models.sequence import CausalDecoder, DecoderState


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
        """See :meth:`~kattn_cli.models.sequence.CausalDecoder.decode`."""
        return self.backbone.decode(tokens, state)
