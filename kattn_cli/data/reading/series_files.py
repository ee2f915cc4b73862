"""Time series in ``.ts`` files: a header, then one series a line, its channels between colons and its class at the end.

The format is that of https://www.timeseriesclassification.com; ``aeon`` reads the values. It does not count what it
reads, nor say in which line it stumbled, so that every line is looked over first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kattn_cli.errors import DataError

_OF_NUMBERS = b"0123456789.+-eE "
"""What is left of a line without these is counted faster."""

CUT = "the file is cut short or damaged"
Header = dict[str, list[str]]
"""The words after each ``@key``, all in small letters, as aeon takes them."""


@dataclass(frozen=True)
class Outline:
    """A file's series without their values: the ``channels`` of each, and their ``lengths`` and ``labels`` in order."""

    channels: int
    lengths: tuple[int, ...]
    labels: tuple[str, ...]


def outline(path: Path) -> Outline:
    """Return the outline of the file at ``path``, every line of which is read, once a process: some seconds a gigabyte.

    A file that ends in the header, within a line or within a class's name shows; one that ends between two lines does
    not, since the format says nowhere how many there are.

    Raises:
        DataError: if it cannot be read, or a line is other than the header or the first line promise.
    """
    try:
        stat = path.stat()
        return _looked_over(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


@lru_cache(maxsize=8)
def _looked_over(path: Path, size: int, written_ns: int) -> Outline:
    with path.open("rb") as file:
        lines = enumerate(file, 1)
        return _outline(path, _header(path, lines), lines)


def _header(path: Path, lines: Iterable[tuple[int, bytes]]) -> Header:
    header: Header = {}
    for _, line in lines:
        words = line.decode("utf-8", "replace").lower().split()
        if words[:1] == ["@data"]:
            break
        if words and words[0].startswith("@"):
            header[words[0][1:]] = words[1:]
    else:
        what = "is empty" if not path.stat().st_size else "has no line @data: it is cut short, or no .ts file"
        raise DataError(f"{path}: {what}; get it again")
    if header.get("timestamps") == ["true"]:
        raise DataError(f"{path}: its header says @timeStamps true, and series with times are not read here")
    if header.get("classlabel", ["true"])[:1] != ["true"]:
        raise DataError(f"{path}: its header says @classLabel false; series without classes cannot be classified")
    return header


def _outline(path: Path, header: Header, lines: Iterator[tuple[int, bytes]]) -> Outline:
    classes = header.get("classlabel", [])[1:]
    expected = _whole_number(header, "dimensions")
    steps = _whole_number(header, "serieslength")
    equal = header.get("equallength", ["true"]) == ["true"]
    lengths, labels = [], []
    for number, line in lines:
        body, colon, ending = line.strip().rpartition(b":")
        channels = body.translate(None, _OF_NUMBERS).split(b":") if colon else []
        label = ending.decode("utf-8", "replace").strip().lower()
        counts = {channel.count(b",") + 1 for channel in channels}
        expected = expected or len(channels)
        steps = steps or max(counts, default=0)
        if not channels or len(channels) != expected:
            fault = f"has {_channels(len(channels))}, not {expected}"
        elif len(counts) > 1:
            fault = f"its channels have from {min(counts)} to {max(counts)} steps"
        elif equal and counts != {steps}:
            fault = f"has {counts.pop()} steps, not {steps}"
        elif not label:
            fault = "has no class"
        elif classes and label not in classes:
            fault = f'has the class "{label}", none of {", ".join(classes)}'
        else:
            lengths.append(counts.pop())
            labels.append(label)
            continue
        raise DataError(f"{path}, line {number}: {fault}; {CUT}")
    if not labels or not expected:
        raise DataError(f"{path}: has no series after its header; {CUT}")
    return Outline(expected, tuple(lengths), tuple(labels))


def _whole_number(header: Header, key: str) -> int:
    """Return the header's number, or 0."""
    words = header.get(key, [])
    return int(words[0]) if words and words[0].isdecimal() else 0


def _channels(count: int) -> str:
    return "1 channel" if count == 1 else f"{count} channels"


def read_series(path: Path) -> list[Tensor]:
    """Return the series of a file that :func:`outline` found sound, ``(N, channels)`` float32 each, without gaps.

    Raises:
        DataError: if ``aeon`` cannot be imported, or a value is no finite number.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from aeon.datasets import load_from_ts_file

            found, _ = load_from_ts_file(str(path))
    except ImportError as error:
        raise DataError(f"aeon, which reads time series, cannot be imported: {in_one_line(error)}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {in_one_line(error)}") from None
    series = [torch.from_numpy(without_gaps(one).T.copy()).float() for one in found]
    for number, one in enumerate(series, 1):
        if not bool(torch.isfinite(one).all()):
            raise DataError(f"{path}, series {number}: holds a value that is infinite")
    return series


def without_gaps(values: np.ndarray) -> np.ndarray:
    """Fill each NaN of ``(channels, N)`` on the line between its neighbours, as Zerveas et al. (2021) have it.

    Before the first value and after the last stands that value; a channel without any is 0 (theirs stays NaN).
    """
    filled, steps = values.copy(), np.arange(values.shape[1])
    missing = np.isnan(values)
    for channel in np.flatnonzero(missing.any(axis=1)):
        known = steps[~missing[channel]]
        filled[channel] = np.interp(steps, known, values[channel, known]) if len(known) else 0.0
    return filled


def in_one_line(error: Exception) -> str:
    """Return a library's error text in one line, or else the kind of its error."""
    return " ".join(str(error).split()) or type(error).__name__
