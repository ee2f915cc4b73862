"""HDF5 files, whose reader raises nearly anything at a damaged one; here each fault is one line with file and key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kattn_cli.errors import DataError, KattnError

MOST_SQUEEZED = 1100
"""Bytes that one byte of a file can stand for: deflate makes at most 1,032 of one."""


class Hdf5:
    """A file that is open for reading."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self._file = path, file

    def names(self) -> list[str]:
        """Return the names of the arrays.

        Raises:
            DataError: if they cannot be read.
        """
        import h5py

        with self._reading():
            there = [name for name in self._file if isinstance(self._file[name], h5py.Dataset)]
            # A name that is not UTF-8 comes as bytes.
            return [name if isinstance(name, str) else name.decode(errors="replace") for name in there]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array of numbers, which is not read.

        Raises:
            DataError: if there is none, or it is not of numbers.
        """
        with self._reading(name):
            array = self._file[name]
            kind, shape, bytes_ = array.dtype, tuple(array.shape), array.nbytes
        if kind.kind not in "fiub":
            raise DataError(f"{self.path}: {name}: holds {kind}, expected numbers")
        if bytes_ > MOST_SQUEEZED * self.path.stat().st_size:
            raise DataError(f"{self.path}: {name}: has shape {shape}, more than a file of this size can hold")
        return shape

    def array(self, name: str) -> np.ndarray:
        """Return a whole array.

        Raises:
            DataError: if it cannot be read, or is not of numbers.
        """
        self.shape(name)
        with self._reading(name):
            return np.asarray(self._file[name][:])

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the file, numbers as Python's.

        Raises:
            DataError: if they cannot be read.
        """
        with self._reading("attributes"):
            found = {key: value.item() if hasattr(value, "item") else value for key, value in self._file.attrs.items()}
            return {key: value.decode() if isinstance(value, bytes) else value for key, value in found.items()}

    @contextmanager
    def _reading(self, name: str = "") -> Iterator[None]:
        try:
            yield
        except Exception as error:  # h5py's own, NumPy's, and MemoryError for a size that is nonsense
            raise _unreadable(self.path, error, name) from None


@contextmanager
def opened(path: Path) -> Iterator[Hdf5]:
    """Open the file at ``path``.

    Raises:
        DataError: if it is not there, or no HDF5 file.
    """
    import h5py

    try:
        file = h5py.File(path)
    except Exception as error:  # as above
        raise _unreadable(path, error) from None
    with file:
        yield Hdf5(path, file)


def _unreadable(path: Path, error: Exception, name: str = "") -> KattnError:
    key = f"{name}: " if name else ""
    return DataError(f"{path}: {key}cannot be read as HDF5: {' '.join(str(error).split()) or type(error).__name__}")
