"""Whole images against the model called once, corrupted images, and several processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from ade_files import write_ade

from kattn_cli.data.corruptions import corrupt
from kattn_cli.data.segmentation import IGNORED, SegmentationData
from kattn_cli.data.sets.ade20k import Ade20k
from kattn_cli.errors import DataError
from kattn_cli.models import build_segmenter
from kattn_cli.models.segmentation_model import SegmentationModel
from kattn_cli.recipe.data import SegmentationSection
from kattn_cli.recipe.model import Segmenter
from kattn_cli.recipe.schema import Attention
from kattn_cli.tasks.masks.evaluate import BatchedMasks, Segmented, evaluate_masks, windows_at_once
from kattn_cli.tasks.masks.evaluation import CorruptedMasks
from kattn_cli.tasks.masks.overlaps import overlaps, segmentation_measures
from kattn_cli.tasks.masks.task import Masks
from kattn_cli.training.corrupted import Making
from kattn_cli.training.seed import Stream, generator


def judge(
    model: SegmentationModel, split: BatchedMasks, gather: Callable[[torch.Tensor], torch.Tensor] | None = None
) -> Segmented:
    return evaluate_masks(model, split, classes=3, window=16, stride=16, gather=gather)


@pytest.fixture
def data(tmp_path: Path) -> SegmentationData:
    return load(tmp_path, ((16, 16),))


def load(tmp_path: Path, sizes: tuple[tuple[int, int], ...]) -> SegmentationData:
    root = write_ade(tmp_path / "ade", sizes=sizes)
    return Masks().load(Ade20k(root=str(root)), SegmentationSection(name="ade20k", image_size=16, workers=0))


def model() -> SegmentationModel:
    sizes = Segmenter(patch_size=4, dim=16, depth=1, heads=2, decoder_depth=1)
    known = {"image_size": 16, "channels": 3, "classes": 3, "mean": (0.5,) * 3, "std": (0.25,) * 3}
    return build_segmenter(sizes, Attention(name="softmax"), **known)  # type: ignore[arg-type]


def test_windows_of_the_image_s_size_are_the_whole_image(data: SegmentationData) -> None:
    judged = model().train()
    found = judge(judged, data.splits["test"])
    assert judged.training
    images, masks = (torch.stack(part) for part in next(data.splits["test"].batches(10)))
    with torch.no_grad():
        logits = judged.eval()(images)
    assert found.images == 6
    assert np.array_equal(found.sums, overlaps(logits.argmax(1), masks, 3).numpy())
    assert found.loss == pytest.approx(F.cross_entropy(logits, masks, ignore_index=IGNORED).item(), rel=1e-5)
    assert found.measures == segmentation_measures(found.sums)


def test_parts_of_several_processes_add_up(tmp_path: Path) -> None:
    data = load(tmp_path, ((16, 16), (16, 24), (20, 16)))
    judged, split = model(), data.splits["test"]
    whole = judge(judged, split)
    rows: list[torch.Tensor] = []

    def kept(row: torch.Tensor) -> torch.Tensor:
        rows.append(row)
        return row

    for rank in range(2):
        judge(judged, split.subset(torch.arange(rank, 6, 2)), kept)
    joined = judge(judged, split.first(1), lambda _: torch.cat(rows))
    assert joined.images == whole.images == 6
    assert np.array_equal(joined.sums, whole.sums)
    assert joined.loss == pytest.approx(whole.loss)
    assert whole.sums[2].sum() < 2 * 6 * 20 * 24


def test_nothing_to_evaluate(data: SegmentationData) -> None:
    with pytest.raises(DataError, match="there is nothing to evaluate that can be read"):
        judge(model(), data.splits["test"].first(0))


def test_windows_at_once_are_as_many_as_memory_allows() -> None:
    assert windows_at_once(11, 64) == 64
    assert windows_at_once(150, 512) == 1


def test_images_are_corrupted_as_they_are_seen_and_masks_stay(tmp_path: Path) -> None:
    """Images of one size are corrupted together; what is drawn does not depend on how many are asked for at once."""
    split = load(tmp_path, ((16, 16), (24, 48))).splits["test"]
    clean, masks = next(split.batches(6))
    parts = [list(CorruptedMasks(split, "fog", 3, Making("cifar-c", seed=4)).batches(size)) for size in (1, 4, 6)]
    assert [len(part) for part in parts] == [6, 2, 1]
    (images, kept), *_ = parts[2]
    for other in parts[:2]:
        for one, same in zip(images, (image for batch, _ in other for image in batch), strict=True):
            assert torch.equal(one, same)
    assert all(torch.equal(*both) for both in zip(masks, kept, strict=True))
    draws = generator(4, Stream.CORRUPTION, ((5 * 9 + 2) << 32))
    first = corrupt(torch.stack(clean[::2]), "fog", 3, draws, "cifar-c")
    second = corrupt(torch.stack(clean[1::2]), "fog", 3, draws, "cifar-c")
    assert torch.equal(torch.stack(images[::2]), first)
    assert torch.equal(torch.stack(images[1::2]), second)
    assert images[1].shape == (3, 16, 32)
