"""Splits in memory: batches, subsets, sizes."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kattn_cli.data import images as images_file
from kattn_cli.data.images import MemorySplit


def split(count: int = 7) -> MemorySplit:
    """``count`` random uint8 images of 3 × 6 × 6."""
    return MemorySplit(torch.randint(0, 256, (count, 3, 6, 6), dtype=torch.uint8), torch.arange(count))


def test_batches_are_in_order_and_pixels_in_0_to_1() -> None:
    whole = split()
    batches = list(whole.batches(3))
    assert [labels.tolist() for _, labels in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    assert torch.equal(torch.cat([pixels for pixels, _ in batches]), whole.images.float() / 255)


def test_subset_and_first() -> None:
    whole = split()
    some = whole.subset(torch.tensor([5, 0]))
    assert some.labels.tolist() == [5, 0]
    assert torch.equal(some.images, whole.images[[5, 0]])
    assert len(whole.first(2)) == 2
    assert len(whole.first(None)) == 7


def test_resized_is_torchs_bilinear_interpolation_in_parts(monkeypatch) -> None:
    monkeypatch.setattr(images_file, "_RESIZED_AT_ONCE", 2)
    whole = split()
    wanted = F.interpolate(whole.images.float() / 255, size=(4, 4), mode="bilinear", antialias=True)
    resized = whole.resized(4)
    assert resized.images.dtype == torch.uint8
    assert torch.equal(resized.images, (wanted * 255).round().to(torch.uint8))
    floating = MemorySplit(whole.images.float() / 255, whole.labels).resized(4)
    assert torch.equal(floating.images, wanted)
    assert torch.equal(floating.labels, whole.labels)
