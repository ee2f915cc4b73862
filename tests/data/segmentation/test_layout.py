"""ADE20K's layout: labels, classes, what is held out, and bad data in one line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ade_files import annotated, write_ade, write_pair
from PIL import Image

from kattn_cli.data.segmentation import IGNORED, SegmentationData
from kattn_cli.data.segmentation.data import SegmentationDataSet
from kattn_cli.data.sets.ade20k import Ade20k
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import SegmentationSection
from kattn_cli.tasks.masks.task import Masks


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_ade(tmp_path / "ade")


def section(**changes: Any) -> SegmentationSection:
    return SegmentationSection.model_validate({"name": "ade20k", "image_size": 16, "workers": 0, **changes})


def loaded(root: Path, **changes: Any) -> SegmentationData:
    return Masks().load(Ade20k(root=str(root)), section(**changes))


def read_all(data: SegmentationData) -> list[torch.Tensor]:
    return [mask for _, masks in data.splits["test"].batches(4) for mask in masks]


def test_nothing_labelled_is_ignored_and_classes_count_from_0(root: Path) -> None:
    data = loaded(root)
    images, masks = next(data.splits["test"].batches(3))
    assert [tuple(image.shape) for image in images] == [(3, 16, 16), (3, 16, 24), (3, 20, 16)]
    for number, mask in enumerate(masks):
        picture, labels = annotated(number, 3, (mask.shape[0], mask.shape[1]))
        expected = np.where(labels == 0, IGNORED, labels.astype(int) - 1)
        assert mask.dtype == torch.int64
        assert np.array_equal(mask.numpy(), expected)
        torch.testing.assert_close(images[number], torch.from_numpy(picture).permute(2, 0, 1) / 255)


def test_names_come_from_the_list_of_classes(root: Path) -> None:
    assert loaded(root).class_names == ("thing 1, stuff", "thing 2, stuff", "thing 3, stuff")
    (root / "objectInfo3.txt").unlink()
    assert Ade20k(root=str(root)).facts().classes == 150


def test_a_twentieth_is_held_out_evenly_and_none_where_the_test_set_is_to_choose_by(root: Path) -> None:
    assert {name: len(split) for name, split in loaded(root).splits.items()} == {
        "train": 19,
        "validation": 1,
        "test": 6,
    }
    quarter = loaded(root, validation=0.25).splits
    assert quarter["validation"].rows.tolist() == [2, 6, 10, 14, 18]
    assert sorted([*quarter["train"].rows.tolist(), 2, 6, 10, 14, 18]) == list(range(20))
    chosen = loaded(root, choose_on="test").splits
    assert len(chosen["train"]) == 20
    assert chosen["validation"] is chosen["test"]


def test_the_size_of_the_window_must_be_given(root: Path) -> None:
    with pytest.raises(DataError, match=r"ade20k: its images vary in size; give data.image_size, such as 512"):
        loaded(root, image_size=None)


def test_an_image_without_an_annotation(root: Path) -> None:
    (root / "annotations" / "training" / "ADE_0003.png").unlink()
    with pytest.raises(DataError, match=r"training/ADE_0003\.jpg has no annotation .*ADE_0003\.png; add or remove it$"):
        loaded(root)


def test_a_missing_folder_is_named(root: Path) -> None:
    assert Ade20k(root=str(root)).missing() == ""
    source = Ade20k(root=str(root / "images"))
    assert source.missing().startswith(
        f"data.root: {root / 'images' / 'images' / 'training'} is not a folder; unpack ADE"
    )
    with pytest.raises(DataError, match=r"^ade20k: root: "):
        Masks().load(source, section())


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("size", r"16 × 16 pixels, and its annotation 8 × 16"),
        ("label", r"its annotation has a label 4, and there are 3 classes"),
        ("colour", r"its annotation is a picture of mode RGB, not of a label a pixel"),
        ("image", r"not an image"),
        ("annotation", r"its annotation cannot be read: "),
    ],
)
def test_what_cannot_be_used_is_named_with_its_reason(root: Path, spoil: str, reason: str) -> None:
    image, labels = annotated(0, 3, (16, 16))
    if spoil == "size":
        labels = labels[:8]
    if spoil == "label":
        labels[5, 5] = 4
    path = write_pair(root, "validation", 0, image, labels)
    annotation = root / "annotations" / "validation" / "ADE_0000.png"
    if spoil == "colour":
        Image.fromarray(image).save(annotation)
    if spoil == "image":
        path.write_bytes(b"no image")
    if spoil == "annotation":
        annotation.write_bytes(b"no image")
    told = f"1 image cannot be read, more than data.max_corrupt = 0: {path} "
    with pytest.raises(DataError, match=rf"^{told}\({reason}.*mend or remove"):
        read_all(loaded(root, max_corrupt=0))
    data = loaded(root)
    assert len(read_all(data)) == 5
    assert len(data.unreadable()) == 1


def test_a_list_of_classes_must_count(root: Path) -> None:
    (root / "objectInfo3.txt").write_text("1\twall\n3\tsky\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"objectInfo3\.txt: expected a line for each class, which begin with 1, 2, 3"):
        Ade20k(root=str(root)).facts()


def test_it_is_checked_by_folder_and_never_fetched(root: Path) -> None:
    source: SegmentationDataSet = Ade20k(root=str(root))
    assert [(check.path.name, check.detail) for check in source.files()] == [
        ("training", "20 images"),
        ("validation", "6 images"),
    ]
    with pytest.raises(DataError, match=r"ade20k: is not fetched; unpack ADEChallengeData2016"):
        source.fetch()
