"""A class for every pixel: cross-entropy, chosen by mean IoU over whole images."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.data.segmentation import IGNORED
from kattn_cli.data.segmentation.pairs import RandomView
from kattn_cli.data.segmentation.split import MaskSplit
from kattn_cli.models import AttentionModel
from kattn_cli.recipe.train import Train
from kattn_cli.tables.measures import MEAN_IOU
from kattn_cli.tasks.masks.evaluate import BatchedMasks, Segmented, evaluate_masks
from kattn_cli.tasks.masks.overlaps import PARTS, overlaps, segmentation_measures
from kattn_cli.training.feed import Feed, FileFeed, as_it_is
from kattn_cli.training.objective import Objective
from kattn_cli.training.plan import Plan


class Segmentation(Objective):
    """Logits ``(B, classes, H, W)``; targets ``(B, H, W)`` int64, where pixels of ``IGNORED`` have no say.

    Args:
        classes: how many there are.
        window: of the model, in pixels, which slides over whole images by ``stride``.
        stride: at most ``window``.
    """

    measure = MEAN_IOU

    def __init__(self, classes: int, window: int, stride: int) -> None:
        self.classes, self.window, self.stride = classes, window, stride
        self.kept = PARTS * classes

    def loss(self, outputs: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        """See :class:`Objective`; 0 where no pixel is labelled."""
        total = F.cross_entropy(
            outputs.float(), targets, ignore_index=IGNORED, label_smoothing=label_smoothing, reduction="sum"
        )
        return total / self.count(targets).clamp(min=1).to(total.dtype)

    def count(self, targets: Tensor) -> Tensor:
        """Return the number of labelled pixels."""
        return (targets != IGNORED).sum().double()

    def sums(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the overlaps of each class, see :func:`~kattn_cli.tasks.masks.overlaps.overlaps`."""
        return overlaps(outputs.argmax(1), targets, self.classes).flatten().double()

    def measures(self, sums: Sequence[float], count: float) -> dict[str, float]:
        """Return ``pixel_accuracy``, ``mean_accuracy`` and ``mean_iou``, in per cent; in training of the crops."""
        return segmentation_measures(sums)

    def feed(self, split: MaskSplit, plan: Plan, settings: Train, device: torch.device) -> Feed:
        """Return images with their masks from files, scaled, cropped and flipped one by one."""
        return FileFeed(split, plan, as_it_is, RandomView(split.image_size, settings.flip))

    def evaluate(
        self, model: AttentionModel, split: BatchedMasks, gather: Callable[[Tensor], Tensor] | None = None
    ) -> Segmented:
        """See :func:`~kattn_cli.tasks.masks.evaluate.evaluate_masks`."""
        return evaluate_masks(model, split, classes=self.classes, window=self.window, stride=self.stride, gather=gather)
