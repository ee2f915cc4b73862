"""Image and mask go through the same scaling, crop and flip; whole images keep their masks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ade_files import write_ade
from PIL import Image

from kattn_cli.data.segmentation import IGNORED
from kattn_cli.data.segmentation.pairs import RandomView, WholeView, scaled_size
from kattn_cli.data.sets.ade20k import Ade20k
from kattn_cli.recipe.data import SegmentationSection
from kattn_cli.tasks.masks.task import Masks


def pair(height: int = 32, width: int = 48) -> tuple[Image.Image, Image.Image]:
    """A picture of broad stripes whose mask is the picture itself."""
    stripes = np.repeat(np.arange(width // 8, dtype=np.uint8) * 30, 8)[None].repeat(height, 0)
    return Image.fromarray(stripes), Image.fromarray(stripes)


@pytest.mark.parametrize("seed", range(20))
def test_the_mask_follows_the_image(seed: int) -> None:
    """Where the picture is not black from beyond its border, and not between two stripes, both are alike."""
    image, mask = (np.asarray(one).astype(int) for one in RandomView(32, flip=0.5)(*pair(), seed))
    assert image.shape == mask.shape == (32, 32)
    labelled = mask != IGNORED
    assert (image[~labelled] == 0).all()
    assert np.median(np.abs(image - mask)[labelled]) == 0
    assert (np.abs(image - mask)[labelled] <= 15).all()


def test_a_seed_decides_all_and_flips_as_often_as_asked() -> None:
    view = RandomView(32, flip=0.5)
    one, same, other = (np.asarray(view(*pair(), seed)[0]) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    rising = [
        int(np.asarray(RandomView(32, flip=0.25)(*pair(), seed)[1])[0, :16].astype(int)[-1]) for seed in range(200)
    ]
    flipped = [RandomView(32, flip=1.0)(*pair(), seed)[1] for seed in range(20)]
    assert len(set(rising)) > 3
    for seed, picture in enumerate(flipped):
        straight = RandomView(32, flip=0.0)(*pair(), seed)[1]
        assert np.array_equal(np.asarray(picture), np.asarray(straight)[:, ::-1])


def test_scales_are_between_a_half_and_two() -> None:
    """A checkerboard of 4 pixels shows by how much it was scaled."""
    board = np.kron(np.indices((64, 64)).sum(0) % 2, np.ones((4, 4))).astype(np.uint8)
    lengths = []
    for seed in range(60):
        mask = np.asarray(RandomView(256)(Image.fromarray(board), Image.fromarray(board), seed)[1])[128 - 3]
        known = mask[mask != IGNORED]
        lengths.append(len(known) / (1 + np.count_nonzero(np.diff(known.astype(int)))))
    assert 2 - 0.3 < min(lengths) < 2.6
    assert 6.8 < max(lengths) < 8.5


def test_without_a_seed_it_is_the_centre() -> None:
    image, mask = RandomView(16)(*pair(32, 48), None)
    expected = np.asarray(pair()[1].resize((24, 16), Image.Resampling.NEAREST))[:, 4:20]
    assert np.array_equal(np.asarray(mask), expected)
    assert image.size == (16, 16)


def test_a_whole_image_has_the_shorter_side_asked_for_and_its_mask_as_it_was() -> None:
    image, mask = WholeView(16)(*pair(32, 48), None)
    assert (image.size, mask.size) == ((24, 16), (48, 32))
    same = pair(32, 48)
    untouched = WholeView(32)(*same, None)
    assert untouched[0] is same[0]


@pytest.mark.parametrize(
    ("size", "scaled"), [((30, 45), (10, 15)), ((45, 30), (15, 10)), ((7, 7), (10, 10)), ((100, 99), (10, 10))]
)
def test_scaled_sizes(size: tuple[int, int], scaled: tuple[int, int]) -> None:
    assert scaled_size(size, 10) == scaled


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_crops_are_the_same_whoever_makes_them(tmp_path: object, workers: int) -> None:
    root = write_ade(tmp_path / "ade")  # type: ignore[operator]
    section = SegmentationSection(name="ade20k", image_size=16, workers=workers)
    split = Masks().load(Ade20k(root=str(root)), section).splits["train"]
    plan = [[(0, 5), (3, 6)], [(4, 7)]]
    (images, masks), (more, _) = split.stream(plan, RandomView(16, 0.5))
    assert (images.shape, masks.shape, more.shape) == ((2, 3, 16, 16), (2, 16, 16), (1, 3, 16, 16))
    assert (images.dtype, masks.dtype) == (torch.uint8, torch.int64)
    expected, labels = RandomView(16, 0.5)(*split.pairs.read(int(split.rows[3])), 6)
    assert np.array_equal(images[1].permute(1, 2, 0).numpy(), np.asarray(expected))
    assert np.array_equal(masks[1].numpy(), np.asarray(labels))
