"""Measures of a segmentation by hand, and against torchmetrics."""

from __future__ import annotations

import math

import pytest
import torch
from torchmetrics.classification import MulticlassAccuracy, MulticlassJaccardIndex

from kattn_cli.tasks.masks.overlaps import class_accuracies, class_ious, overlaps, segmentation_measures

IGNORED = 255
LABELS = torch.tensor([[0, 0, 0, 1], [1, 1, IGNORED, IGNORED]], dtype=torch.uint8)
TOLD = torch.tensor([[0, 0, 1, 1], [1, 2, 0, 2]])


def test_sums_and_measures_by_hand() -> None:
    sums = overlaps(TOLD, LABELS, 4)
    assert sums.tolist() == [[2, 2, 0, 0], [2, 3, 1, 0], [3, 3, 0, 0]]
    assert class_ious(sums.numpy()).tolist()[:3] == pytest.approx([100 * 2 / 3, 100 * 2 / 4, 0.0])
    assert math.isnan(class_ious(sums.numpy())[3])
    assert class_accuracies(sums.numpy()).tolist()[:2] == pytest.approx([100 * 2 / 3, 100 * 2 / 3])
    measured = segmentation_measures(sums.flatten().tolist())
    assert measured == {
        "pixel_accuracy": pytest.approx(100 * 4 / 6),
        "mean_accuracy": pytest.approx(100 * 2 / 3),
        "mean_iou": pytest.approx((200 / 3 + 50 + 0) / 3),
    }


def test_sums_of_parts_add_up() -> None:
    parts = [overlaps(told, labels, 3) for told, labels in zip(TOLD, LABELS, strict=True)]
    assert torch.equal(torch.stack(parts).sum(0), overlaps(TOLD, LABELS, 3))


def test_the_measures_are_those_of_torchmetrics() -> None:
    """One class is nowhere, another is told and not labelled: both leave the IoU out, or count 0, as we do."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 5, (3, 20, 20), generator=draw)
    told = torch.where(
        torch.rand(3, 20, 20, generator=draw) < 0.6, labels, torch.randint(0, 6, (3, 20, 20), generator=draw)
    )
    labels[:, :4] = IGNORED
    measured = segmentation_measures(overlaps(told, labels, 7).flatten().tolist())
    jaccard = MulticlassJaccardIndex(7, average="macro", ignore_index=IGNORED)(told, labels)
    micro = MulticlassAccuracy(7, average="micro", ignore_index=IGNORED)(told, labels)
    each = MulticlassAccuracy(7, average="none", ignore_index=IGNORED)(told, labels)
    assert measured["mean_iou"] == pytest.approx(100 * float(jaccard), rel=1e-5)
    assert measured["pixel_accuracy"] == pytest.approx(100 * float(micro), rel=1e-5)
    assert measured["mean_accuracy"] == pytest.approx(100 * float(each[:5].mean()), rel=1e-5)


def test_without_a_label_there_is_nothing_to_tell() -> None:
    nothing = segmentation_measures(overlaps(TOLD, torch.full_like(TOLD, IGNORED), 3).flatten().tolist())
    assert all(math.isnan(value) for value in nothing.values())
