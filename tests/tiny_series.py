"""Time series of a few steps in ``.ts`` files, as the UEA archive has them, written into a test's own folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

UNCOUNTED = "ERing"
"""A set whose number of series is not known to the package, so that a tiny one passes for it."""


def ts_line(series: np.ndarray, label: str) -> str:
    """One line of a file: the rows of ``series`` ``(channels, N)``, then its class; NaN is ``?``."""
    return ":".join([",".join("?" if np.isnan(x) else f"{x:.6f}" for x in row) for row in series] + [label]) + "\n"


def ts_text(series: Sequence[np.ndarray], labels: Sequence[str], *extra: str) -> str:
    """A whole file; ``extra``: lines for its header, such as ``@equalLength true``."""
    header = [
        "# A few series of a test.",
        f"@problemName {UNCOUNTED}",
        "@timeStamps false",
        "@univariate false",
        f"@dimensions {len(series[0])}",
        *(extra or ["@equalLength false"]),
        f"@classLabel true {' '.join(sorted(set(labels)))}",
        "@data",
    ]
    return "\n".join(header) + "\n" + "".join(map(ts_line, series, labels))


def write_series(
    root: Path, name: str = UNCOUNTED, train: int = 12, test: int = 6, channels: int = 2, classes: int = 3
) -> dict[str, tuple[list[np.ndarray], list[str]]]:
    """Both files of a set in ``root/name``: series ``(channels, N)`` of 3 to 8 steps, whose classes take turns.

    Returns:
        what was written as ``train`` and ``test``, rounded as it was. A series of class ``k`` lies around ``k``.
    """
    draw = np.random.default_rng(0)
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for split, count in (("train", train), ("test", test)):
        labels = [f"c{index % classes}" for index in range(count)]
        series = [
            np.round(draw.normal(index % classes, 0.3, (channels, 3 + index % 6)), 6).astype(np.float64)
            for index in range(count)
        ]
        (folder / f"{name}_{split.upper()}.ts").write_text(ts_text(series, labels), encoding="utf-8")
        written[split] = (series, labels)
    return written
