"""Augmentation of whole batches, on the device they lie on.

In DeiT's order: crop, flip, RandAugment, erasing. Random numbers are drawn on the CPU from torch's global generator,
but for :func:`random_crop`'s shifts and the erased boxes' noise; nothing makes the CPU wait for the device.

Mixup (arXiv:1710.09412) and CutMix (arXiv:1905.04899) mix a batch with itself in reverse, by timm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from timm.data.mixup import Mixup, mixup_target
from torch import Tensor

from kattn_cli.kernels.precision import full_precision
from kattn_cli.recipe.train import Train
from kattn_cli.training.augment.erasing import random_boxes, random_erasing, to_device
from kattn_cli.training.augment.randaugment import RandAugment


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
        """Return mixed images and float32 targets ``(B, classes)``, of images ``(B, C, H, W)`` and labels ``(B,)``.

        Rows of the targets sum to 1; what is given is not changed.
        """
        # timm mixes a batch with its reverse and refuses an odd number.
        paired = len(images) // 2 * 2
        rest = images[paired:], mixup_target(labels[paired:], self.classes, smoothing=self.smoothing)
        if not paired:
            return rest
        # A copy, since timm mixes in place.
        mixed = self._mixup(images[:paired].clone(), labels[:paired])
        return mixed if paired == len(images) else (torch.cat([mixed[0], rest[0]]), torch.cat([mixed[1], rest[1]]))


Augment = Callable[[Tensor], Tensor]
"""A batch ``(B, C, H, W)`` float32 in [0, 1] to a batch of that shape; what is given is not changed."""

RATIO = (3 / 4, 4 / 3)


def in_memory(settings: Train, mean: Sequence[float], std: Sequence[float]) -> Augment:
    """Return all augmentation that ``settings`` ask for, for images in memory; ``mean``, ``std`` of each channel.

    The result is in [0, 1] but for erased boxes, see :func:`~kattn_cli.training.augment.erasing.random_erasing`.

    Raises:
        ValueError: if ``settings.randaugment`` cannot be read.
    """
    steps: list[Augment] = []
    if settings.crop_padding:
        steps.append(partial(random_crop, padding=settings.crop_padding))
    if settings.crop_scale:
        steps.append(partial(random_resized_crop, smallest=settings.crop_scale))
    if settings.flip:
        steps.append(partial(random_flip, probability=settings.flip))
    if settings.randaugment:
        steps.append(RandAugment(settings.randaugment, mean))
    return partial(_in_turn, [*steps, after_decoding(settings, mean, std)])


def after_decoding(settings: Train, mean: Sequence[float], std: Sequence[float]) -> Augment:
    """Return erasing, which is left to do after :func:`~kattn_cli.training.augment.transforms.train_transform`."""
    steps: list[Augment] = []
    if settings.erasing:
        steps.append(partial(random_erasing, probability=settings.erasing, mean=mean, std=std))
    return partial(_in_turn, steps)


def _in_turn(steps: Sequence[Augment], images: Tensor) -> Tensor:
    for step in steps:
        images = step(images)
    return images


def random_crop(images: Tensor, padding: int) -> Tensor:
    """Move each image ``(B, C, H, W)`` by up to ``padding`` pixels each way, with zeros coming in."""
    count, _, height, width = images.shape
    padded = F.pad(images, (padding,) * 4)
    top, left = torch.randint(0, 2 * padding + 1, (2, count, 1), device=images.device)
    rows = (top + torch.arange(height, device=images.device))[:, None, :, None]
    columns = (left + torch.arange(width, device=images.device))[:, None, None, :]
    sample = torch.arange(count, device=images.device)[:, None, None, None]
    channel = torch.arange(images.shape[1], device=images.device)[None, :, None, None]
    return padded[sample, channel, rows, columns]


def random_flip(images: Tensor, probability: float) -> Tensor:
    """Exchange left and right in some of the images ``(B, C, H, W)``."""
    # On the CPU, so that a seed chooses the same images on every device.
    flipped = torch.rand(len(images), 1, 1, 1, device="cpu") < probability
    return torch.where(to_device(flipped, images.device), images.flip(3), images)


def random_resized_crop(images: Tensor, smallest: float) -> Tensor:
    """Enlarge a random box of each image ``(B, C, H, W)`` to the image's size (Inception's crop).

    Its share of the area is uniform in [``smallest``, 1], its ratio log-uniform in [3/4, 4/3]; the whole image is
    taken where ten such boxes do not fit (torchvision then keeps to the ratio, which differs for images of
    less than 3 : 4 alone).
    """
    count, _, height, width = images.shape
    boxes = random_boxes(count, height, width, (smallest, 1.0), RATIO)
    whole = torch.tensor([0, 0, height, width], device="cpu")
    return resized_crop(images, torch.where(boxes[:, 2:3] > 0, boxes, whole))


@full_precision
def resized_crop(images: Tensor, boxes: Tensor) -> Tensor:
    """Enlarge the ``boxes`` ``(B, 4)`` (top, left, height, width) of images ``(B, C, H, W)`` in [0, 1] to H × W.

    Bicubic as Pillow and torchvision enlarge the cut-out box (a = −0.5), as one product of matrices each way.
    """
    _, _, height, width = images.shape
    top, left, tall, wide = to_device(boxes.T, images.device)
    rows, columns = _enlarging(top, tall, height), _enlarging(left, wide, width)
    wider = (images.flatten(1, 2) @ columns.mT).view_as(images)
    # Cubic weights are negative in part, so edges overshoot.
    return (rows[:, None] @ wider).clamp_(0, 1)


def _enlarging(start: Tensor, length: Tensor, size: int) -> Tensor:
    """Return weights ``(B, size, size)``: of each new pixel, over the pixels of ``[start, start + length)``."""
    pixel = torch.arange(size, device=start.device)
    start, length = start[:, None, None], length[:, None, None]
    centre = start + (pixel[:, None] + 0.5) * (length / size) - 0.5
    weights = _cubic((centre - pixel).abs()) * ((pixel >= start) & (pixel < start + length))
    # At the box's edge the kernel is cut off; the rest is made to add up to 1, as Pillow does.
    return weights / weights.sum(-1, keepdim=True)


def _cubic(distance: Tensor) -> Tensor:
    """Return Keys's kernel with a = −0.5, of distances ≥ 0 in pixels."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((2.5 - 0.5 * distance) * distance - 4) * distance + 2
    return torch.where(distance <= 1, near, torch.where(distance < 2, far, 0.0))
