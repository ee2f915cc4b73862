"""Oxford Pets in torchvision's layout."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from image_files import picture, write_picture
from torchvision.datasets import OxfordIIITPet as Torchvision

from kattn_cli.data.images import MemorySplit
from kattn_cli.data.reading.encoded import EvaluationView
from kattn_cli.data.sets.pets import Pets
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection

DATA = ImageSection(name="pets", workers=0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Four animals in torchvision's folder."""
    folder = tmp_path / "oxford-iiit-pet"
    for number, name in enumerate(("Abyssinian_2", "yorkshire_terrier_1", "Abyssinian_1", "pug_9")):
        write_picture(folder / "images" / f"{name}.jpg", number, 14, 18)
    (folder / "annotations").mkdir()
    (folder / "annotations" / "trainval.txt").write_text("Abyssinian_2 1 1 1\nyorkshire_terrier_1 37 2 25\n")
    (folder / "annotations" / "test.txt").write_text("pug_9 23 2 16\nAbyssinian_1 1 1 1\n")
    return tmp_path


def test_splits_are_the_authors(root: Path) -> None:
    source = Pets(root=str(root))
    splits = source.load(DATA, 8)
    assert {name: split.labels.tolist() for name, split in splits.items()} == {"train": [0, 36], "test": [22, 0]}
    train = splits["train"]
    assert isinstance(train, MemorySplit)
    view = EvaluationView(8, 0.875)
    assert torch.equal(train.images, torch.stack([view(picture(number, 14, 18)) for number in (0, 1)]))
    facts = source.facts()
    assert (facts.classes, facts.channels, facts.image_size, facts.own_validation) == (37, 3, None, False)


def test_missing_and_damaged_files(root: Path) -> None:
    source = Pets(root=str(root))
    assert source.missing() == ""
    assert [(check.path.name, check.status) for check in source.files()] == [
        ("images", "missing"),
        ("trainval.txt", "no checksum known"),
        ("test.txt", "no checksum known"),
    ]
    test = root / "oxford-iiit-pet" / "annotations" / "test.txt"
    test.write_text("pug_9 23\n")
    with pytest.raises(DataError, match=f"{test}: is cut short or damaged; remove it and get it again"):
        source.load(DATA, 8)
    test.unlink()
    with pytest.raises(DataError, match=f"pets: there is no {test}; kattn data fetch pets"):
        source.load(DATA, 8)


def test_an_image_that_is_listed_and_not_there(root: Path) -> None:
    absent = root / "oxford-iiit-pet" / "images" / "pug_9.jpg"
    absent.unlink()
    source = Pets(root=str(root))
    assert source.load(DATA, 8)["test"].labels.tolist() == [0]
    assert source.corrupt == [f"{absent} (No such file or directory)"]


def test_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Torchvision) -> None:
        raise RuntimeError("File not found or corrupted.")

    monkeypatch.setattr(Torchvision, "_download", fail)
    with pytest.raises(DataError, match=f"pets: cannot be downloaded into {tmp_path}: File not found or corrupted"):
        Pets(root=str(tmp_path), download=True).load(DATA, 8)
    assert Pets(root=str(tmp_path)).places() == [tmp_path]
