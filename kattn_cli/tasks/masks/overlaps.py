"""How well a segmentation fits its labels: sums for each class, and the measures that they make.

Source: ADE20K's benchmark (Zhou et al. 2017, §4.2), whose pixel accuracy, mean accuracy and mean IoU these are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MEASURES = ("pixel_accuracy", "mean_accuracy", "mean_iou")
PARTS = 3
"""Sums kept of each class."""


def overlaps(predicted: Tensor, labelled: Tensor, classes: int) -> Tensor:
    """Return pixels of each class: those predicted rightly, all predicted, all labelled, ``(3, classes)`` int64.

    Args:
        predicted: a class for each pixel, 0 … classes − 1, of any shape.
        labelled: of the same shape; a pixel of any other label than 0 … classes − 1 does not count.
        classes: how many there are.
    """
    counted = (labelled >= 0) & (labelled < classes)
    predicted, labelled = predicted[counted], labelled[counted].long()
    parts = (predicted[predicted == labelled], predicted, labelled)
    return torch.stack([torch.bincount(part, minlength=classes) for part in parts])


def class_ious(sums: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the intersection over union of each class in %, ``(classes,)``; nan where it is in neither.

    Args:
        sums: of :func:`overlaps`, flat or ``(3, classes)``, added up over all pixels of a split.
    """
    right, predicted, labelled = np.asarray(sums, dtype=np.float64).reshape(PARTS, -1)
    return _percent(right, predicted + labelled - right)


def class_accuracies(sums: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the share of each class's pixels that are predicted rightly in %, ``(classes,)``; nan without any."""
    right, _, labelled = np.asarray(sums, dtype=np.float64).reshape(PARTS, -1)
    return _percent(right, labelled)


def segmentation_measures(sums: Sequence[float] | NDArray[np.floating]) -> dict[str, float]:
    """Return :data:`MEASURES` in %.

    A class that no pixel is labelled with is left out of the mean accuracy; one that is not predicted either, of the
    mean IoU. One that is predicted and labelled nowhere counts there as 0.
    """
    right, _, labelled = np.asarray(sums, dtype=np.float64).reshape(PARTS, -1)
    pixel = _percent(right.sum(), labelled.sum())
    values = (float(pixel), _mean(class_accuracies(sums)), _mean(class_ious(sums)))
    return dict(zip(MEASURES, values, strict=True))


def _percent(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return 100 * np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) > 0)


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
