"""Augmentation of one image from a file, in a worker process: DeiT's, by timm and torchvision.

Random numbers come from the global generators of Python, numpy and torch, which the caller seeds for each image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from PIL import Image
from timm.data.auto_augment import RandAugment, rand_augment_transform
from timm.data.constants import IMAGENET_DEFAULT_MEAN
from torch import Tensor
from torchvision import transforms
from torchvision.transforms import InterpolationMode
from torchvision.transforms.functional import pil_to_tensor

from kattn_cli.recipe.train import Train
from kattn_cli.training.augment.randaugment import fill_levels, parse_policy

BICUBIC = InterpolationMode.BICUBIC

LevelToArgument = Callable[[float, dict[str, Any]], tuple[Any, ...]]


def train_transform(
    settings: Train, image_size: int, channels: int, mean: Sequence[float] = IMAGENET_DEFAULT_MEAN
) -> Callable[[Image.Image], Tensor]:
    """Return what turns an image of any mode and size into uint8 ``(channels, image_size, image_size)``.

    In DeiT's order: the resized crop, or where ``settings`` ask for none the central square of the image, with
    ``crop_padding`` if that is asked for; flip; RandAugment. All resizing is bicubic. Erasing and mixing are for
    whole batches. The result can be pickled.

    Args:
        settings: ``crop_scale``, ``crop_padding``, ``flip`` and ``randaugment`` are heeded.
        image_size: of the result.
        channels: 1 or 3; the image is converted to grey or RGB.
        mean: of each channel, in [0, 1]; what RandAugment puts in at the borders of a moved image.

    Raises:
        ValueError: if ``settings.randaugment`` cannot be read.
    """
    steps: list[Callable[[Image.Image], Any]] = [partial(_converted, mode="RGB" if channels == 3 else "L")]
    if settings.crop_scale:
        scale = (settings.crop_scale, 1.0)
        steps.append(transforms.RandomResizedCrop(image_size, scale=scale, interpolation=BICUBIC))
    else:
        steps += [transforms.Resize(image_size, BICUBIC), transforms.CenterCrop(image_size)]
    if settings.crop_padding:
        steps.append(transforms.RandomCrop(image_size, padding=settings.crop_padding))
    if settings.flip:
        steps.append(transforms.RandomHorizontalFlip(settings.flip))
    if settings.randaugment:
        steps.append(_rand_augment(settings.randaugment, fill_levels(mean[:channels])))
    return transforms.Compose([*steps, pil_to_tensor])


def _converted(image: Image.Image, mode: str) -> Image.Image:
    return image if image.mode == mode else image.convert(mode)


def _rand_augment(policy: str, fill: tuple[int, ...]) -> RandAugment:
    """Return timm's RandAugment as its ``create_transform`` sets it up for DeiT; posterize keeps a bit at least."""
    parse_policy(policy)
    hparams = {"img_mean": fill if len(fill) > 1 else fill[0], "interpolation": Image.Resampling.BICUBIC}
    # timm 1.0.22 takes inc0 for inc1
    augment = rand_augment_transform(policy.replace("-inc0", ""), hparams)
    for operation in augment.ops:
        if operation.name.startswith("Posterize"):
            operation.level_fn = partial(_at_least_one_bit, operation.level_fn)
    return augment


def _at_least_one_bit(level_fn: LevelToArgument, level: float, hparams: dict[str, Any]) -> tuple[int]:
    """Raise timm's number of bits to 1, where its 0 gave a black image before Pillow 13 and is an error since."""
    (bits,) = level_fn(level, hparams)
    return (max(1, bits),)
