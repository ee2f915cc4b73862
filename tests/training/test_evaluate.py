"""Evaluation counts what a split yields."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from kattn_cli.data import MemorySplit
from kattn_cli.training.evaluate import Outputs, evaluate


class Fixed(nn.Module):
    """Says class 1 of 3 with logits (0, 1, 0), whatever it sees."""

    device = torch.device("cpu")

    def mechanisms(self) -> list[nn.Module]:
        return []

    def experts(self) -> list[nn.Module]:
        return []

    def forward(self, x: Tensor) -> Tensor:
        assert not self.training
        return torch.tensor([0.0, 1.0, 0.0]).expand(len(x), 3)


class Skipping(MemorySplit):
    """As a split on disk whose image 2 cannot be read."""

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        kept = torch.tensor([index for index in range(len(self)) if index != 2])
        yield from self.subset(kept).batches(size)


@pytest.fixture
def split() -> MemorySplit:
    return MemorySplit(torch.zeros(5, 1, 2, 2, dtype=torch.uint8), torch.tensor([1, 0, 1, 1, 2]))


def test_by_hand(split: MemorySplit) -> None:
    model = Fixed().train()
    for whole, right in ((split, 3 / 5), (Skipping(split.images, split.labels), 2 / 4)):
        result = evaluate(model, whole, batch_size=2)  # type: ignore[arg-type]
        assert result.images == (5 if whole is split else 4)
        assert result.top1 == pytest.approx(100 * right)
        assert result.top5 == 100
        total = torch.tensor([0.0, 1.0, 0.0]).logsumexp(0).item()
        assert result.loss == pytest.approx(total - right, rel=1e-6)
        assert result.ece == pytest.approx(abs(right - torch.tensor([0.0, 1.0, 0.0]).softmax(0)[1].item()), rel=1e-5)
    assert model.training


def test_among_some_classes_only() -> None:
    """Of classes 3 and 1, in that order: image 0 (class 1) is right only once class 2 is out of the way."""
    scores = torch.tensor([[0.0, 2.0, 9.0, 1.0], [0.0, 1.0, 0.0, 5.0], [7.0, 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 3.0]])
    outputs = Outputs(scores, torch.tensor([1, 3, 0, 3]), torch.zeros(4))
    assert outputs.measures().top1 == 50
    some = outputs.among(torch.tensor([3, 1]))
    assert some.scores.tolist() == [[1, 2], [5, 1], [3, 4]]
    assert some.labels.tolist() == [1, 0, 0]
    assert some.measures().top1 == pytest.approx(100 * 2 / 3)
    e = math.e
    assert some.confidence().tolist() == pytest.approx([e / (e + 1), e**4 / (e**4 + 1), e / (e + 1)])
    assert some.measures().top5 == 100


class Counting(Fixed):
    """Its auxiliary loss is the number of inputs of the last batch."""

    layer_reduction = "sum"

    def mechanisms(self) -> list[nn.Module]:
        return [self]

    def forward(self, x: Tensor) -> Tensor:
        self.seen = float(len(x))
        return super().forward(x)

    def auxiliary_loss(self) -> Tensor:
        return torch.tensor(self.seen)


def test_auxiliary_loss_weighs_a_last_smaller_batch_by_its_size(split: MemorySplit) -> None:
    """Five images by two: (2 · 2 + 2 · 2 + 1 · 1) / 5."""
    found = evaluate(Counting(), split, batch_size=2)  # type: ignore[arg-type]
    assert found.auxiliary_loss == pytest.approx(9 / 5)
