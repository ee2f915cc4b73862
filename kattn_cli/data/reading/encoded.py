"""Encoded images on disk, their decoding, and a record of those that cannot be read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from math import floor
from typing import Protocol

import numpy as np
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.functional import center_crop, pil_to_tensor, resize

from kattn_cli.errors import DataError


class Encoded(Protocol):
    """Images as they lie on disk. It is sent to the workers, so it should be small and quick to pickle."""

    def source(self, row: int) -> str | bytes:
        """Return the path of an image, or its encoded bytes."""

    def name(self, row: int) -> str:
        """Return what to call an image in messages."""


@dataclass(frozen=True)
class Paths:
    """Image files. A million paths take a tenth of the memory as an array that they take as strings."""

    paths: np.ndarray
    """``(n,)`` UTF-8 bytes, see :func:`paths_of`."""

    def source(self, row: int) -> str:
        """See :class:`Encoded`."""
        return self.paths[row].decode("utf-8", "surrogateescape")

    def name(self, row: int) -> str:
        """See :class:`Encoded`."""
        return self.source(row)


def paths_of(paths: Sequence[str]) -> Paths:
    """Return image files at ``paths``."""
    return Paths(np.array([path.encode("utf-8", "surrogateescape") for path in paths], dtype=np.bytes_))


_NAMED = 3


class Unreadable(Exception):
    """An image that cannot be used; its text is the reason."""


def open_image(source: str | bytes, channels: int) -> Image.Image:
    """Open a file (its path) or encoded bytes as RGB, or as grey values where ``channels`` is 1.

    Raises:
        Unreadable: whatever ails it: no such file, not an image, cut short, broken, absurdly large.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="PIL")
            with Image.open(BytesIO(source) if isinstance(source, bytes) else source) as image:
                return image.convert("RGB" if channels == 3 else "L")
    except UnidentifiedImageError:
        raise Unreadable("not an image") from None
    except Exception as error:  # PIL's decoders raise nearly anything on broken input
        raise Unreadable(_in_one_line(error)) from error


def _in_one_line(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def as_uint8(image: Image.Image) -> Tensor:
    """Return ``(channels, height, width)`` in 0 … 255."""
    return pil_to_tensor(image)


@dataclass(frozen=True)
class EvaluationView:
    """The central ``crop_pct`` of an image, as timm and DeiT evaluate; ``(channels, image_size, image_size)`` uint8.

    The short side becomes ⌊image_size / crop_pct⌋ (bicubic), and the centre is cut out. An image of image_size ×
    image_size passes untouched where ``crop_pct`` is 1.
    """

    image_size: int
    crop_pct: float

    def __call__(self, image: Image.Image) -> Tensor:
        """Return the view of one image."""
        resized = resize(image, [floor(self.image_size / self.crop_pct)], InterpolationMode.BICUBIC)
        return as_uint8(center_crop(resized, [self.image_size]))


@dataclass
class Corruption:
    """The images of a data set that could not be read, each once, and how many are tolerated."""

    limit: int
    found: dict[str, str] = field(default_factory=dict)
    """Why, by the name of the image."""

    def note(self, name: str, reason: str) -> None:
        """Count an image, unless it was counted before.

        Raises:
            DataError: if there are now more than ``limit``.
        """
        self.found.setdefault(name, reason)
        if len(self.found) > self.limit:
            count = "1 image" if len(self.found) == 1 else f"{len(self.found)} images"
            raise DataError(
                f"{count} cannot be read, more than data.max_corrupt = {self.limit}: {self.summary()}; "
                "mend or remove them, or raise data.max_corrupt"
            )

    def lines(self) -> list[str]:
        """Return ``name (reason)`` of each."""
        return [f"{name} ({reason})" for name, reason in self.found.items()]

    def summary(self) -> str:
        """Return the first few in one line."""
        return ", ".join(self.lines()[:_NAMED]) + (", …" if len(self.found) > _NAMED else "")
