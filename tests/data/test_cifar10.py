"""CIFAR-10 and CIFAR-100 in torchvision's layout."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision.datasets
from tiny_data import write_cifar

from kattn_cli.data import MemorySplit
from kattn_cli.data.sets.cifar10 import Cifar10
from kattn_cli.data.sets.cifar100 import Cifar100
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection


@pytest.mark.parametrize("given", [".", "cifar-10-batches-py"])
def test_cifar10(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_cifar(tmp_path, torchvision.datasets.CIFAR10, "labels", 10, monkeypatch)
    source = Cifar10(root=str(tmp_path / given))
    assert source.missing() == ""
    assert [check.status for check in source.files()] == ["ok"] * 7
    train, test = (source.load(ImageSection(), 32)[name] for name in ("train", "test"))
    assert isinstance(train, MemorySplit)
    assert (len(train), len(test)) == (100, 20)
    assert train.images.dtype == torch.uint8
    assert torch.equal(train.images[:20], torch.from_numpy(first))
    assert train.labels[:20].tolist() == [*range(10)] * 2


def test_cifar100_has_fine_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cifar(tmp_path, torchvision.datasets.CIFAR100, "fine_labels", 100, monkeypatch)
    source = Cifar100(root=str(tmp_path))
    assert source.facts().classes == 100
    assert source.load(ImageSection(), 32)["train"].labels.max() == 99


def test_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path))
    path = tmp_path / "cifar100" / "cifar-100-python" / "train"
    with pytest.raises(DataError) as caught:
        Cifar100().load(ImageSection(), 32)
    assert str(caught.value) == (
        f"cifar100: there is no file {path}; kattn data fetch cifar100 downloads it, and so does download: true; or "
        "unpack cifar-100-python.tar.gz and give its folder as root"
    )
    assert {check.status for check in Cifar100().files()} == {"missing"}


def test_a_damaged_file_is_named_and_never_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cifar(tmp_path, torchvision.datasets.CIFAR10, "labels", 10, monkeypatch)
    path = tmp_path / "cifar-10-batches-py" / "data_batch_3"
    path.write_bytes(path.read_bytes()[:-1])
    source = Cifar10(root=str(tmp_path))
    with pytest.raises(DataError) as caught:
        source.load(ImageSection(), 32)
    assert str(caught.value) == f"{path}: is cut short or damaged; remove it and get it again"
    assert [check.status for check in source.files()].count("wrong checksum") == 1
