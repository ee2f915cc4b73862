"""Canvases: a function of the seed, masks that fit, made once and read as ADE20K is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_data import write_mnist

from kattn_cli.data.segmentation import SegmentationData
from kattn_cli.data.sets.fashion_canvases import FashionCanvases, Items, canvas
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import SegmentationSection
from kattn_cli.tasks import load_data

SQUARE = np.zeros((1, 28, 28), dtype=np.uint8)
SQUARE[:, 4:24, 4:24] = 200
SQUARE[:, 10:14, 10:14] = 0


@pytest.fixture
def fashion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "cache"))
    write_mnist(tmp_path / "fashion")
    return tmp_path / "fashion"


def section(fashion: Path, **changes: object) -> SegmentationSection:
    options = {"name": "fashion_canvases", "root": str(fashion), "size": 32, "train": 20, "test": 4, "workers": 0}
    return SegmentationSection.model_validate({**options, **changes})


def loaded(fashion: Path, **changes: object) -> SegmentationData:
    data = load_data(section(fashion, **changes))
    assert isinstance(data, SegmentationData)
    return data


def test_an_item_with_its_holes_is_in_the_mask_and_stands_out() -> None:
    items = Items(SQUARE, np.array([6]))
    picture, mask = canvas(items, 64, np.random.default_rng(0))
    assert set(np.unique(mask)) == {0, 7}
    assert picture[mask == 7].mean() > picture[mask == 0].mean() + 40
    rows, columns = np.nonzero(mask == 7)
    dark = picture[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] < 40
    assert dark.any()


def test_up_to_five_items_of_which_none_hides_another() -> None:
    items = Items(SQUARE.repeat(10, 0), np.arange(10))
    shares, numbers = [], []
    for seed in range(60):
        _, mask = canvas(items, 64, np.random.default_rng(seed))
        shares.append((mask > 0).mean())
        numbers.append(len(np.unique(mask)) - 1)
    assert min(numbers) >= 1
    assert 4 <= max(numbers) <= 5
    assert 0.2 < np.mean(shares) < 0.6


def test_they_are_a_function_of_the_seed_and_kept(fashion: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = loaded(fashion)
    assert (data.classes, data.channels, data.image_size, data.stride) == (11, 1, 32, 32)
    assert {name: len(split) for name, split in data.splits.items()} == {"train": 19, "validation": 1, "test": 4}
    images, masks = next(data.splits["test"].batches(4))
    monkeypatch.setattr("kattn_cli.data.sets.fashion_canvases.canvas", None)
    again, _ = next(loaded(fashion).splits["test"].batches(4))
    assert all(torch.equal(*both) for both in zip(images, again, strict=True))
    assert all(int(mask.max()) <= 10 for mask in masks)
    assert not list(Path(data.splits["test"].pairs.images.name(0)).parents[3].glob(".*.[0-9]*"))
    monkeypatch.undo()


def test_another_seed_or_split_gives_other_canvases(fashion: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = (next(loaded(fashion, seed=seed).splits["test"].batches(1))[0][0] for seed in (0, 1))
    trained = loaded(fashion).splits["train"].take(torch.tensor([0]))[0][0]
    assert not torch.equal(first, other)
    assert not torch.equal(first, trained)


def test_facts_need_no_file_and_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "cache"))
    source = FashionCanvases(root=str(tmp_path / "nowhere"))
    assert (source.facts().classes, source.facts().image_size, len(source.class_names())) == (11, 64, 11)
    assert source.files()[0].status == "not generated yet"
    with pytest.raises(DataError, match=r"^fashion_canvases: there is no train-images-idx3-ubyte"):
        source.fetch()
