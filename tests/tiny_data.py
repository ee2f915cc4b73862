"""Data sets of a few images in the formats of the real ones, written into a test's own folder."""

from __future__ import annotations

import gzip
import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
import torchvision.datasets


def idx(array: np.ndarray) -> bytes:
    """The bytes of an idx file."""
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def mnist_arrays(train: int = 60, test: int = 20) -> dict[str, np.ndarray]:
    """MNIST's four files, by name; the labels run round 0 … 9."""
    draw = np.random.default_rng(0)
    files = {}
    for part, count in (("train", train), ("t10k", test)):
        files[f"{part}-images-idx3-ubyte"] = draw.integers(0, 256, (count, 28, 28))
        files[f"{part}-labels-idx1-ubyte"] = np.arange(count) % 10
    return files


def write_mnist(folder: Path, gzipped: bool = False) -> dict[str, np.ndarray]:
    """MNIST's four files in ``folder``; their arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = mnist_arrays()
    for name, array in arrays.items():
        data = idx(array)
        (folder / (f"{name}.gz" if gzipped else name)).write_bytes(gzip.compress(data) if gzipped else data)
    return arrays


def write_cifar(
    root: Path, source: type[torchvision.datasets.CIFAR10], key: str, classes: int, monkeypatch: pytest.MonkeyPatch
) -> np.ndarray:
    """CIFAR of 2 images a class and file in ``root``, whose sums torchvision is told; the first file's images."""
    draw = np.random.default_rng(0)
    folder = root / source.base_folder
    folder.mkdir(parents=True)
    first = draw.integers(0, 256, (2 * classes, 3, 32, 32), dtype=np.uint8)

    def write(name: str, content: object) -> list[str]:
        data = pickle.dumps(content)
        (folder / name).write_bytes(data)
        return [name, hashlib.md5(data).hexdigest()]

    def batch(images: np.ndarray) -> dict[str, object]:
        return {"data": images.reshape(len(images), -1), key: [index % classes for index in range(len(images))]}

    lists = {
        which: [
            write(name, batch(first if index == 0 else first[::-1]))
            for index, (name, _) in enumerate(getattr(source, which))
        ]
        for which in ("train_list", "test_list")
    }
    for which, entries in lists.items():
        monkeypatch.setattr(source, which, entries)
    _, md5 = write(source.meta["filename"], {source.meta["key"]: [str(label) for label in range(classes)]})
    monkeypatch.setattr(source, "meta", {**source.meta, "md5": md5})
    return first
