"""Mean and standard deviation, counted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kattn_cli.data import images as statistics
from kattn_cli.data.images import MemorySplit


def test_bytes_are_counted_as_numpy_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_CHUNK", 4)
    images = torch.randint(0, 256, (11, 3, 5, 5), dtype=torch.uint8)
    images[:, 1] //= 3
    mean, std = statistics.channel_statistics(MemorySplit(images, torch.zeros(11)), 3)
    pixels = images.numpy().astype(np.float64) / 255
    np.testing.assert_allclose(mean, pixels.mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(std, pixels.std((0, 2, 3), ddof=1), rtol=1e-12)


class OnDisk:
    """A split that must not be read."""


def test_images_on_disk_get_imagenets() -> None:
    mean, std = statistics.channel_statistics(OnDisk(), 3)  # type: ignore[arg-type]
    assert mean == (0.485, 0.456, 0.406)
    assert std == (0.229, 0.224, 0.225)
    (grey,), _ = statistics.channel_statistics(OnDisk(), 1)  # type: ignore[arg-type]
    assert grey == pytest.approx(0.449)
