"""Cross-entropy and what is counted beside it, by hand."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from kattn_cli.tasks.images.objective import Classification
from kattn_cli.tasks.text.objective import Language

LOGITS = torch.log(torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]))
LABELS = torch.tensor([0, 1, 0, 2])


def test_the_loss_is_the_mean_of_minus_the_log_of_what_was_given_to_the_right_class() -> None:
    loss = Classification().loss(LOGITS, LABELS, 0.0)
    assert loss.item() == pytest.approx(-sum(math.log(one) for one in (0.7, 0.3, 0.5, 0.6)) / 4)


def test_labels_are_smoothed_and_shares_are_not_smoothed_again() -> None:
    smoothed = Classification().loss(LOGITS, LABELS, 0.1)
    shares = F.one_hot(LABELS, 3) * 0.9 + 0.1 / 3
    torch.testing.assert_close(Classification().loss(LOGITS, shares, 0.1), smoothed)
    assert not torch.isclose(smoothed, Classification().loss(LOGITS, LABELS, 0.0))


@pytest.mark.parametrize("mixed", [False, True])
def test_measures_are_shares_of_what_is_told(mixed: bool) -> None:
    objective = Classification()
    targets = F.one_hot(LABELS, 3).float() if mixed else LABELS
    sums, count = objective.sums(LOGITS, targets), objective.count(targets)
    assert count == 4
    assert sums.tolist() == [3, 4]
    assert objective.measures(sums.tolist(), 4.0) == {"top1": 75.0, "top5": 100.0}


def test_of_a_text_every_token_is_told() -> None:
    objective = Language(context=2, vocabulary=3)
    logits, following = LOGITS.view(2, 2, 3), LABELS.view(2, 2)
    assert objective.count(following) == 4
    assert objective.sums(logits, following).tolist() == [3, 4]
    torch.testing.assert_close(objective.loss(logits, following, 0.0), Classification().loss(LOGITS, LABELS, 0.0))


def test_order_of_merit() -> None:
    """Of a text the least loss, of classes the most right, and then the least loss."""
    by_loss, by_accuracy = Language(8, 3).merit, Classification().merit
    assert by_loss(1.0, {"top1": 10}) > by_loss(1.1, {"top1": 90})
    assert by_accuracy(9.0, {"top1": 90}) > by_accuracy(0.1, {"top1": 80})
    assert by_accuracy(0.1, {"top1": 90}) > by_accuracy(0.2, {"top1": 90})
