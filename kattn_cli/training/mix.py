"""Mixup (arXiv:1710.09412) and CutMix (arXiv:1905.04899) of a batch with itself in reverse, by timm."""

from __future__ import annotations

import torch
from timm.data.mixup import Mixup, mixup_target
from torch import Tensor

from kattn_cli.recipe.train import Train


class Mix:
    """DeiT's mixing: one λ for the whole batch, mixup or CutMix at even odds where ``settings`` ask for both.

    Drawn from numpy's global generator. Of an odd number of images the last stays as it is, and so does a single one.

    Args:
        settings: ``mixup`` and ``cutmix``, of which at least one is not 0, and ``label_smoothing``.
        classes: of the data set.
    """

    def __init__(self, settings: Train, classes: int) -> None:
        self.classes, self.smoothing = classes, settings.label_smoothing
        self._mixup = Mixup(
            mixup_alpha=settings.mixup,
            cutmix_alpha=settings.cutmix,
            prob=1.0,
            switch_prob=0.5,
            mode="batch",
            label_smoothing=settings.label_smoothing,
            num_classes=classes,
        )

    def __call__(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Images ``(B, C, H, W)`` and labels ``(B,)`` to new images and float32 targets ``(B, classes)``.

        Rows of the targets sum to 1; what is given is not changed.
        """
        paired = len(images) // 2 * 2
        rest = images[paired:], mixup_target(labels[paired:], self.classes, smoothing=self.smoothing)
        if not paired:
            return rest
        mixed = self._mixup(images[:paired].clone(), labels[:paired])
        return mixed if paired == len(images) else (torch.cat([mixed[0], rest[0]]), torch.cat([mixed[1], rest[1]]))
