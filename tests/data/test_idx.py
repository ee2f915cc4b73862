"""MNIST's file format, and files that only look like it."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from tiny_data import idx
from torchvision.datasets.mnist import read_image_file

from kattn_cli.data.sets.mnist import content_md5, read_idx, read_labels
from kattn_cli.errors import DataError

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 28, 28))


def test_as_torchvision_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(idx(IMAGES))
    assert read_idx(path, (28, 28)).equal(read_image_file(str(path)))


def test_gzip_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    raw, zipped = tmp_path / "raw.gz", tmp_path / "zipped"
    raw.write_bytes(idx(IMAGES))
    zipped.write_bytes(gzip.compress(idx(IMAGES), mtime=0))
    assert read_idx(raw, (28, 28)).tolist() == read_idx(zipped, (28, 28)).tolist() == IMAGES.tolist()
    assert content_md5(raw) == content_md5(zipped)


WHOLE = idx(IMAGES)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "is not an idx file of bytes in 3 dimensions (it begins with nothing)"),
        (b"\x89PNG\r\n", "is not an idx file of bytes in 3 dimensions (it begins with 89 50 4e 47)"),
        (idx(IMAGES[0]), "is not an idx file of bytes in 3 dimensions (it begins with 00 00 08 02)"),
        (WHOLE[:-1], "is cut short (3,935 bytes, and its header promises 3,936); remove it and get it again"),
        (WHOLE[:9], "holds 0 × 0 pixels an image, not 28 × 28"),
        (WHOLE + b"x", "is too long (3,937 bytes, and its header promises 3,936); remove it and get it again"),
        (idx(IMAGES[:, :8, :9]), "holds 8 × 9 pixels an image, not 28 × 28"),
        (gzip.compress(WHOLE)[:-100], "is cut short or damaged ("),
        (gzip.compress(WHOLE)[:300] + b"\0" * 50 + gzip.compress(WHOLE)[350:], "is cut short or damaged ("),
        (gzip.compress(WHOLE)[:10] + b"\xff" * 100, "is cut short or damaged (Error -3 while decompressing data: "),
        (b"\x1f\x8bnonsense", "is cut short or damaged ("),
    ],
)
def test_what_is_wrong_is_told_in_one_line(data: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        read_idx(path, (28, 28))
    assert str(caught.value).startswith(f"{path}: {expected}")
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_idx(tmp_path, (28, 28))


def test_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_bytes(idx(np.array([3, 9, 0])))
    assert read_labels(path, 3, 10).tolist() == [3, 9, 0]
    with pytest.raises(DataError, match="holds 3 labels, and there are 4 images"):
        read_labels(path, 4, 10)
    with pytest.raises(DataError, match="has a label 9, and there are 9 classes: 0 … 8"):
        read_labels(path, 3, 9)
