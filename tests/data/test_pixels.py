"""CIFAR-10 as pixels in grey: from its own files and from parquet, decoded once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import torchvision.datasets
from image_files import encoded, picture, truncated
from PIL import Image
from tiny_data import write_cifar

from kattn_cli.data.sets.huggingface import HuggingFace
from kattn_cli.data.sets.pixels import Pixels, luma
from kattn_cli.errors import DataError


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "kattn"))


def write(path: Path, numbers: range, side: int = 32, classes: int = 10, broken: bool = False) -> None:
    images = [encoded(picture(number, side, side)) for number in numbers]
    if broken:
        images[1] = truncated(numbers[1])
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"img": images, "label": [number % classes for number in numbers]}), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty images to train on, ten to test."""
    write(tmp_path / "parquet" / "train.parquet", range(20))
    write(tmp_path / "parquet" / "test.parquet", range(20, 30))
    return tmp_path / "parquet"


def grey(number: int, size: int = 32) -> np.ndarray:
    """Of one image, by Pillow."""
    return np.asarray(picture(number, size, size).convert("L"))


def fault(**options: object) -> str:
    with pytest.raises(DataError) as caught:
        Pixels(**options).load()  # type: ignore[arg-type]
    return str(caught.value)


def test_luma_is_pillow_s() -> None:
    colours = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    ours = luma(torch.from_numpy(colours).permute(2, 0, 1)[None])
    assert np.array_equal(ours[0, 0].numpy(), np.asarray(Image.fromarray(colours).convert("L")))
    same = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    assert torch.equal(luma(same.expand(1, 3, 16, 16)), same)


def test_parquet_row_by_row(folder: Path) -> None:
    source = Pixels(root=str(folder))
    assert source.missing() == ""
    facts = source.facts()
    assert (facts.classes, facts.seq_len, facts.vocabulary, facts.channels) == (10, 1024, 256, 0)
    assert (facts.pairs, facts.own_validation) == (False, False)
    splits = source.load()
    assert list(splits) == ["train", "test"]
    assert splits["train"].values.shape == (20, 1024)
    assert splits["train"].values.dtype == torch.uint8
    assert np.array_equal(splits["train"].values[7].numpy(), grey(7).reshape(-1))
    assert splits["train"].labels.tolist() == [*range(10), *range(10)]
    assert splits["test"].lengths.tolist() == [1024] * 10
    batch, labels = splits["test"].take(slice(3, 5))
    assert batch.mask is None
    assert batch.values.dtype == torch.int64
    assert np.array_equal(batch.values[1].numpy(), grey(24).reshape(-1))
    assert labels.tolist() == [3, 4]


def test_the_first_ones_and_smaller(folder: Path) -> None:
    splits = Pixels(root=str(folder), size=8, train=5, test=2).load()
    assert splits["train"].values.shape == (5, 64)
    assert splits["test"].values.shape == (2, 64)
    assert splits["test"].lengths.tolist() == [64, 64]
    means = grey(0).reshape(8, 4, 8, 4).mean((1, 3)).reshape(-1)
    near = splits["train"].values[0].numpy() - means
    assert np.abs(near).mean() < 12
    assert Pixels(root=str(folder), size=8).facts().seq_len == 64


def test_cifar_s_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_cifar(tmp_path / "cifar", torchvision.datasets.CIFAR10, "labels", 10, monkeypatch)
    source = Pixels(root=str(tmp_path / "cifar"))
    splits = source.load()
    expected = Image.fromarray(first[3].transpose(1, 2, 0)).convert("L")
    assert np.array_equal(splits["train"].values[3].numpy(), np.asarray(expected).reshape(-1))
    assert len(splits["train"]) == 5 * len(splits["test"]) == 100
    assert {check.status for check in source.files()} == {"ok"}
    assert not (tmp_path / "kattn" / "pixels").exists()


def test_decoded_once_unless_the_files_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Pixels(root=str(folder)).load()
    decode = HuggingFace.load
    monkeypatch.setattr(HuggingFace, "load", lambda *_: pytest.fail("decoded again"))
    again = Pixels(root=str(folder), train=6).load()
    assert torch.equal(again["train"].values, before["train"].values[:6])
    assert torch.equal(again["test"].labels, before["test"].labels)
    monkeypatch.setattr(HuggingFace, "load", decode)
    write(folder / "test.parquet", range(40, 52))
    assert np.array_equal(Pixels(root=str(folder)).load()["test"].values[0].numpy(), grey(40).reshape(-1))


def test_a_damaged_copy_is_made_again(folder: Path, tmp_path: Path) -> None:
    before = Pixels(root=str(folder)).load()
    (copy,) = (tmp_path / "kattn" / "pixels").glob("*.npz")
    copy.write_bytes(copy.read_bytes()[:5000])
    assert torch.equal(Pixels(root=str(folder)).load()["train"].values, before["train"].values)


def test_what_is_missing(tmp_path: Path, folder: Path) -> None:
    (folder / "test.parquet").unlink()
    assert fault(root=str(folder)) == f"pixels: there is no test.parquet in {folder}, beside train.parquet"
    message = fault(root=str(tmp_path / "nowhere"))
    assert message.startswith(f"pixels: there is no file {tmp_path}/nowhere/cifar-10-batches-py/data_batch_1; ")
    assert message.endswith("give its folder as root, or a folder with train.parquet and test.parquet")
    assert Pixels().places() == [tmp_path / "kattn" / "cifar10"]


def test_other_images_than_cifar_s(tmp_path: Path, folder: Path) -> None:
    write(folder / "train.parquet", range(20), side=12)
    assert fault(root=str(folder)) == (
        f"pixels: {folder} has images of 12 × 12 pixels in 10 classes; CIFAR-10's are of 32 × 32 in 10"
    )
    write(folder / "train.parquet", range(20), classes=3)
    assert "images of 32 × 32 pixels in 3 classes" in fault(root=str(folder))


def test_an_image_that_cannot_be_read_is_named(folder: Path) -> None:
    write(folder / "test.parquet", range(20, 30), broken=True)
    message = fault(root=str(folder))
    assert message.startswith(f"pixels: {folder}, test, row 1 (")
    assert message.endswith(" cannot be read; get the parquet files again")
