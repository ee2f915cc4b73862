"""Oxford Flowers in torchvision's layout."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import picture, write_picture
from scipy.io import savemat
from torchvision.datasets import Flowers102 as Torchvision

from kattn_cli.data.images import MemorySplit
from kattn_cli.data.reading.encoded import EvaluationView
from kattn_cli.data.sets.flowers102 import Flowers102
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection

DATA = ImageSection(name="flowers102", workers=0)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six flowers, in torchvision's folder, with the sums that torchvision would expect."""
    folder = tmp_path / "flowers-102"
    for number in range(1, 7):
        write_picture(folder / "jpg" / f"image_{number:05d}.jpg", number, 14, 18)
    savemat(folder / "imagelabels.mat", {"labels": np.array([[1, 102, 3, 4, 5, 6]])})
    savemat(
        folder / "setid.mat", {"trnid": np.array([[2, 1]]), "valid": np.array([[3, 6]]), "tstid": np.array([[5, 4]])}
    )
    sums = {
        key: (name, hashlib.md5((folder / name).read_bytes()).hexdigest())
        for key, name in (("label", "imagelabels.mat"), ("setid", "setid.mat"))
    }
    monkeypatch.setattr(Torchvision, "_file_dict", {**Torchvision._file_dict, **sums})
    return tmp_path


def test_splits_are_the_authors(root: Path) -> None:
    source = Flowers102(root=str(root))
    splits = source.load(DATA, 8)
    assert {name: split.labels.tolist() for name, split in splits.items()} == {
        "train": [101, 0],
        "validation": [2, 5],
        "test": [4, 3],
    }
    train = splits["train"]
    assert isinstance(train, MemorySplit)
    view = EvaluationView(8, 0.875)
    assert torch.equal(train.images, torch.stack([view(picture(number, 14, 18)) for number in (2, 1)]))
    facts = source.facts()
    assert (facts.classes, facts.channels, facts.image_size, facts.own_validation) == (102, 3, None, True)
    assert source.missing() == ""


def test_root_may_be_the_folder_itself_or_the_default(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(Flowers102(root=str(root / "flowers-102")).load(DATA, 8)["test"]) == 2
    monkeypatch.setenv("KATTN_DATA", str(root))
    assert Flowers102().places() == [root / "flowers102"]
    monkeypatch.delenv("KATTN_DATA")
    monkeypatch.setattr(Path, "home", lambda: root)
    assert Flowers102().places() == [root / ".cache" / "kattn" / "flowers102"]


def test_missing_and_damaged_files(root: Path) -> None:
    source = Flowers102(root=str(root))
    assert [check.status for check in source.files()] == ["missing", "ok", "ok"]
    assert source.files()[0].detail == "6 of 8,189 images"
    labels = root / "flowers-102" / "imagelabels.mat"
    labels.write_bytes(b"damaged")
    assert source.files()[1].status == "wrong checksum"
    with pytest.raises(DataError, match=f"{labels}: is cut short or damaged; remove it and get it again"):
        source.load(DATA, 8)
    labels.unlink()
    with pytest.raises(DataError, match=f"flowers102: there is no {labels}; kattn data fetch flowers102"):
        source.load(DATA, 8)
    assert source.files()[1].status == "missing"


def test_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Torchvision) -> None:
        raise OSError("no network")

    monkeypatch.setattr(Torchvision, "download", fail)
    with pytest.raises(DataError, match=f"flowers102: cannot be downloaded into {tmp_path}: no network; kattn data"):
        Flowers102(root=str(tmp_path), download=True).load(DATA, 8)
