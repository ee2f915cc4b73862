"""Data sets, one file each."""

from __future__ import annotations

from kattn_cli.data import digits
from kattn_cli.data.images import ImageData, Source, Split, SplitName

__all__ = ["DATASETS", "ImageData", "Source", "Split", "SplitName", "load_data"]

DATASETS: dict[str, Source] = {
    "digits": digits.SOURCE,
}


def load_data(name: str, image_size: int | None = None) -> ImageData:
    """The data set ``name``, its images resized to ``image_size`` if that is given."""
    source = DATASETS[name]
    splits = source.load()
    if image_size is not None and image_size != source.image_size:
        splits = {split: part.resized(image_size) for split, part in splits.items()}
    pixels = splits["train"].images.double()
    return ImageData(
        name=name,
        classes=source.classes,
        channels=source.channels,
        image_size=image_size or source.image_size,
        mean=tuple(pixels.mean((0, 2, 3)).tolist()),
        std=tuple(pixels.std((0, 2, 3)).tolist()),
        splits=splits,
    )
