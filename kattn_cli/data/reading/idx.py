"""MNIST's file format: a big-endian header (type, number of dimensions, sizes), then the bytes, gzipped or not."""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from pathlib import Path

import torch
from torch import Tensor

from kattn_cli.errors import DataError

_GZIP = b"\x1f\x8b"
_UINT8 = b"\x00\x00\x08"


def contents(path: Path) -> bytes:
    """The bytes of ``path``, decompressed if they are gzipped.

    Raises:
        DataError: if it cannot be read or decompressed.
    """
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: is cut short or damaged ({error}); remove it and get it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def content_md5(path: Path) -> str:
    """The MD5 sum of :func:`contents`, which no compressor has a say in."""
    return hashlib.md5(contents(path), usedforsecurity=False).hexdigest()


def read_idx(path: Path, shape: tuple[int, ...]) -> Tensor:
    """``(n, *shape)`` uint8.

    Raises:
        DataError: if the file is damaged, cut short or too long, or holds items of another shape.
    """
    data = contents(path)
    header = 4 + 4 * (1 + len(shape))
    if data[:4] != _UINT8 + bytes([1 + len(shape)]):
        what = f"is not an idx file of bytes in {1 + len(shape)} dimensions"
        raise DataError(f"{path}: {what} (it begins with {data[:4].hex(' ') or 'nothing'})")
    sizes = [int.from_bytes(data[at : at + 4], "big") for at in range(4, header, 4)]
    if tuple(sizes[1:]) != shape:
        raise DataError(f"{path}: holds {_times(sizes[1:])} pixels an image, not {_times(shape)}")
    promised, found = header + math.prod(sizes), len(data)
    if found != promised:
        raise DataError(
            f"{path}: is {'cut short' if found < promised else 'too long'} ({found:,} bytes, and its header promises "
            f"{promised:,}); remove it and get it again"
        )
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)[header:].view(sizes)


def read_labels(path: Path, count: int, classes: int) -> Tensor:
    """``(count,)`` int64.

    Raises:
        DataError: as :func:`read_idx`; also if there are more or fewer, or one is out of range.
    """
    labels = read_idx(path, ()).long()
    if len(labels) != count:
        raise DataError(f"{path}: holds {len(labels):,} labels, and there are {count:,} images")
    if count and int(labels.max()) >= classes:
        raise DataError(f"{path}: has a label {int(labels.max())}, and there are {classes} classes: 0 … {classes - 1}")
    return labels


def _times(sizes: tuple[int, ...] | list[int]) -> str:
    return " × ".join(map(str, sizes))
