"""The loss of pixels by hand: those without a label have no say."""

from __future__ import annotations

import math

import pytest
import torch

from kattn_cli.data.segmentation import IGNORED
from kattn_cli.tasks.masks.objective import Segmentation

OBJECTIVE = Segmentation(classes=3, window=2, stride=2)
SHARES = torch.tensor([[[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]], [[0.1, 0.3, 0.6], [0.4, 0.4, 0.2]]])
LOGITS = SHARES.log().permute(2, 0, 1)[None]
"""One image of 2 × 2 pixels, ``(1, 3, 2, 2)``."""
MASK = torch.tensor([[[0, 2], [2, IGNORED]]])


def test_the_loss_is_the_mean_over_labelled_pixels() -> None:
    expected = -(math.log(0.7) + math.log(0.3) + math.log(0.6)) / 3
    assert OBJECTIVE.loss(LOGITS, MASK, 0.0).item() == pytest.approx(expected)
    assert OBJECTIVE.count(MASK) == 3


def test_labels_are_smoothed_where_there_is_one() -> None:
    over_classes = torch.stack([SHARES[0, 0], SHARES[0, 1], SHARES[1, 0]]).log().mean(1).mean()
    expected = 0.9 * OBJECTIVE.loss(LOGITS, MASK, 0.0) - 0.1 * over_classes
    torch.testing.assert_close(OBJECTIVE.loss(LOGITS, MASK, 0.1), expected)


def test_a_batch_without_labels_costs_nothing() -> None:
    logits = LOGITS.clone().requires_grad_()
    loss = OBJECTIVE.loss(logits, torch.full_like(MASK, IGNORED), 0.1)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_sums_make_the_measures() -> None:
    sums = OBJECTIVE.sums(LOGITS, MASK)
    assert sums.shape == (OBJECTIVE.kept,)
    assert sums.view(3, 3).tolist() == [[1, 0, 1], [1, 1, 1], [1, 0, 2]]
    measures = OBJECTIVE.measures((2 * sums).tolist(), 6.0)
    assert measures == {
        "pixel_accuracy": pytest.approx(200 / 3),
        "mean_accuracy": pytest.approx(75.0),
        "mean_iou": pytest.approx((100 + 0 + 50) / 3),
    }
    assert OBJECTIVE.merit(9.0, measures) > OBJECTIVE.merit(0.1, {"mean_iou": 40.0})
