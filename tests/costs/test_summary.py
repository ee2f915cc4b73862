"""Parameters, operations and memory, counted by hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kattn_cli.costs.summary import summarise


class Perceptron(nn.Module):
    """Two matrices: 4 × 6 and 6 × 3."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6, bias=False), nn.Linear(6, 3, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        return self.second(self.first(images.flatten(1)).tanh())


def on_meta(count: int) -> Tensor:
    return torch.empty(count, 1, 2, 2, device="meta")


def test_a_perceptron_by_hand() -> None:
    """Per image: 2·(24 + 18) operations; kept are the input (4), tanh's output (6) and the logits squared (3)."""
    with torch.device("meta"):
        model = Perceptron()
    summary = summarise(model, lambda images: model(images).square().sum(), on_meta, shard=5, ema=True)
    weights = 4 * (24 + 18)
    assert summary.parameters == 42
    assert summary.flops == 2 * 42
    kept = (summary.weights, summary.gradients, summary.optimizer, summary.average)
    assert kept == (weights, weights, 2 * weights, weights)
    assert summary.activations == 4 * 5 * (4 + 6 + 3)
    assert summary.memory == 5 * weights + summary.activations
