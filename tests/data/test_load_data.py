"""From a recipe's data section to splits of one size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_data import idx, write_mnist

from kattn_cli.data import DATASETS, MemorySplit
from kattn_cli.data.holdout import hold_out
from kattn_cli.data.sets.digits import Digits
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection
from kattn_cli.tasks import load_data


def section(root: Path, **keys: Any) -> ImageSection:
    """A data section on a tiny MNIST."""
    write_mnist(root)
    return ImageSection.model_validate({"name": "mnist", "root": str(root), **keys})


def test_validation_is_held_out_of_training(tmp_path: Path) -> None:
    loaded = load_data(section(tmp_path, validation=0.3))
    everything = load_data(section(tmp_path, choose_on="test")).splits["train"]
    kept, held_out = hold_out(everything.labels, 0.3)
    assert {name: len(split) for name, split in loaded.splits.items()} == {"train": 40, "validation": 20, "test": 20}
    for name, indices in (("train", kept), ("validation", held_out)):
        split, wanted = loaded.splits[name], everything.subset(indices)  # type: ignore[index]
        assert isinstance(split, MemorySplit)
        assert isinstance(wanted, MemorySplit)
        assert torch.equal(split.images, wanted.images)
        assert torch.equal(split.labels, wanted.labels)
    assert loaded.chosen_on == "validation"


def test_a_tenth_is_held_out_unless_the_recipe_says_otherwise(tmp_path: Path) -> None:
    loaded = load_data(section(tmp_path))
    assert len(loaded.splits["validation"]) == 10
    train = loaded.splits["train"]
    assert isinstance(train, MemorySplit)
    assert loaded.mean[0] == pytest.approx(train.images.double().mean().item() / 255, rel=1e-12)


def test_choose_on_test_holds_nothing_out(tmp_path: Path) -> None:
    loaded = load_data(section(tmp_path, choose_on="test"))
    assert len(loaded.splits["train"]) == 60
    assert loaded.splits["validation"] is loaded.splits["test"] or torch.equal(
        loaded.splits["validation"].labels, loaded.splits["test"].labels
    )
    assert loaded.chosen_on == "test"


def test_choose_on_test_leaves_a_validation_split_of_its_own_unused() -> None:
    loaded = load_data(ImageSection(choose_on="test"))
    assert {name: len(split) for name, split in loaded.splits.items()} == {
        "train": 1257,
        "validation": 355,
        "test": 355,
    }


def test_resized_images_stay_bytes(tmp_path: Path) -> None:
    loaded = load_data(section(tmp_path, image_size=14))
    assert loaded.image_size == 14
    for split in loaded.splits.values():
        assert isinstance(split, MemorySplit)
        assert split.images.shape[1:] == (1, 14, 14)
        assert split.images.dtype == torch.uint8


def test_labels_out_of_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = section(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(np.full(20, 10)))
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte: has a label 10, and there are 10 classes: 0 … 9"):
        load_data(data)

    class Shifted(Digits):
        def load(self, data: ImageSection, image_size: int) -> Any:
            splits = super().load(data, image_size)
            return {name: MemorySplit(split.images, split.labels - 1) for name, split in splits.items()}  # type: ignore[attr-defined]

    monkeypatch.setitem(DATASETS, "digits", Shifted)
    with pytest.raises(DataError, match="digits, train split: has a label -1, and there are 10 classes: 0 … 9"):
        load_data(ImageSection())


def test_a_set_without_images(tmp_path: Path) -> None:
    data = section(tmp_path)
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(np.zeros((0, 28, 28))))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(np.zeros(0)))
    with pytest.raises(DataError, match="mnist, test split: there are no images"):
        load_data(data)


def test_one_image_a_class_cannot_be_held_out(tmp_path: Path) -> None:
    data = section(tmp_path)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(np.zeros((10, 28, 28))))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.arange(10)))
    with pytest.raises(DataError, match="no class has two training samples, so that none can be held out"):
        load_data(data)


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_says_what_it_is(name: str) -> None:
    cls = DATASETS[name]
    assert cls.description
    assert cls.how_to_get
    assert "\n" not in cls.description + cls.how_to_get


@pytest.mark.parametrize("kind", [torch.uint8, torch.float32])
def test_images_of_one_colour_are_refused(monkeypatch: pytest.MonkeyPatch, kind: torch.dtype) -> None:
    """They would be divided by nothing, and the loss be no number."""

    def one_colour(self: Digits, section: ImageSection, size: int) -> dict[str, MemorySplit]:
        images = torch.full((40, 1, 8, 8), 51, dtype=torch.uint8)
        pixels = images if kind == torch.uint8 else images.float() / 255
        return {name: MemorySplit(pixels, torch.arange(40) % 10) for name in ("train", "validation", "test")}

    monkeypatch.setattr(Digits, "load", one_colour)
    with pytest.raises(DataError) as caught:
        load_data(ImageSection())
    assert str(caught.value) == (
        "digits: no variance in channel 0 (every pixel is 0.2) of the training images, which are divided by their "
        "standard deviation; look at the images"
    )
