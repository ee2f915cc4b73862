"""One of several classes for each image or sequence: cross-entropy, chosen by top-1 accuracy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.data.images import ImageData, MemorySplit
from kattn_cli.models import AttentionModel
from kattn_cli.recipe.train import Train
from kattn_cli.tables.measures import TOP1
from kattn_cli.training.augment.batches import Mix, after_decoding, in_memory
from kattn_cli.training.augment.transforms import train_transform
from kattn_cli.training.evaluate import Batched, Evaluation, evaluate, topk_correct
from kattn_cli.training.feed import Feed, FileFeed, MemoryFeed
from kattn_cli.training.objective import Objective
from kattn_cli.training.plan import Plan


class Classification(Objective):
    """Logits ``(…, classes)``; targets ``(…)`` int64, or where images are mixed, shares ``(…, classes)``.

    Of mixed images the class with the greatest share counts as right.
    """

    measure = TOP1
    kept = 2

    def loss(self, outputs: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        """See :class:`Objective`; shares are not smoothed again."""
        mixed = targets.is_floating_point()
        logits = outputs.flatten(0, -2)
        labels = targets if mixed else targets.flatten()
        return F.cross_entropy(logits, labels, label_smoothing=0.0 if mixed else label_smoothing)

    def count(self, targets: Tensor) -> Tensor:
        """See :class:`Objective`."""
        return torch.full((), _hard(targets).numel(), dtype=torch.float64, device=targets.device)

    def sums(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return how many are right at the first place, and among the first five."""
        logits, hard = outputs.flatten(0, -2), _hard(targets)
        return torch.stack([topk_correct(logits, hard, k).double().sum() for k in (1, 5)])

    def measures(self, sums: Sequence[float], count: float) -> dict[str, float]:
        """Return ``top1`` and ``top5``, in per cent."""
        return {name: 100 * right / count for name, right in zip(("top1", "top5"), sums, strict=True)}

    def evaluate(
        self, model: AttentionModel, split: Batched, gather: Callable[[Tensor], Tensor] | None = None
    ) -> Evaluation:
        """See :func:`~kattn_cli.training.evaluate.evaluate`."""
        return evaluate(model, split, gather=gather)


class ImageClassification(Classification):
    """One of several classes for each image, which is augmented and mixed as the recipe says."""

    def __init__(self, data: ImageData) -> None:
        self.data = data

    def feed(self, split: Any, plan: Plan, settings: Train, device: torch.device) -> Feed:
        """Return images from memory, augmented whole on the device; or from files, image by image."""
        data = self.data
        if isinstance(split, MemorySplit):
            return MemoryFeed(split, device, in_memory(settings, data.mean, data.std))
        transform = train_transform(settings, data.image_size, data.channels, data.mean)
        return FileFeed(split, plan, after_decoding(settings, data.mean, data.std), transform)

    def mix(self, settings: Train) -> Mix | None:
        """See :class:`Objective`."""
        return Mix(settings, self.data.classes) if settings.mixup or settings.cutmix else None


def _hard(targets: Tensor) -> Tensor:
    return targets.argmax(-1) if targets.is_floating_point() else targets.flatten()
