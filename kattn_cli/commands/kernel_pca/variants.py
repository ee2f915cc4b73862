"""Measure what robust and sparse losses find beside outliers, and what landmarks cost a kernel SVD."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kattn_cli.audit.gram import centred
from kattn_cli.commands.kernel_pca.solvers import (
    FOLDER,
    KERNELS,
    DataName,
    KernelName,
    PcaSettings,
    points,
    record_of,
)
from kattn_cli.kernel_pca.robust import Huber, Insensitive, robust_kernel_pca
from kattn_cli.kernel_pca.solvers import Array, full
from kattn_cli.kernel_pca.svd import KernelSvd, kernel_svd, landmarks, nystrom
from kattn_cli.runs.csv_rows import append_rows, new_csv, write_manifest_of
from kattn_cli.runs.provenance import now

OUTLIERS, DISTANCE = 0.03, 2.0
"""The share of points that lie on a line through the mean, and how far out, in mean lengths of a point."""
THRESHOLD = 0.5
"""κ and ε, in median lengths of a point's scores under kernel PCA."""
LANDMARKS = (0.05, 0.1, 0.2, 0.4)
"""Shares of the rows and of the columns."""

Row = dict[str, Any]


def measure_losses(
    data: Sequence[DataName], kernels: Sequence[KernelName], settings: PcaSettings, results: Path
) -> Path:
    """Write what each loss misses of the other points' variance where some points are outliers, a row each.

    ``missed``: the share of the best components' variance of the points that are no outliers. ``points``: the share
    of all points that the components are made of.
    """
    return _table("losses", _losses, data, kernels, settings, results)


def measure_asymmetric(
    data: Sequence[DataName], kernels: Sequence[KernelName], settings: PcaSettings, results: Path
) -> Path:
    """Write time and error of kernel SVD, exact and from landmarks, of an asymmetric kernel matrix, a row each.

    Rows and columns are every other point, and each row is divided by the sum of its sizes, as attention's are.
    ``error``: ``‖K − H_e Σ H_rᵀ‖ / ‖K‖``; ``residual``: the larger one of the two equations.
    """
    return _table("asymmetric", _asymmetric, data, kernels, settings, results)


def _table(
    stem: str,
    rows: Callable[[Array, KernelName, PcaSettings], Iterator[Row]],
    data: Sequence[DataName],
    kernels: Sequence[KernelName],
    settings: PcaSettings,
    results: Path,
) -> Path:
    every = points(data, settings)
    path, record = new_csv(results / FOLDER, stem), record_of(settings)
    for name, x in every.items():
        for kernel in kernels:
            fixed = {"task": name, "n": len(x), "kernel": kernel, "components": settings.components}
            append_rows(path, [{**fixed, **row, "seed": settings.seed} for row in rows(x, kernel, settings)])
    write_manifest_of(path, {**record, "end": now()})
    return path


def _losses(x: Array, kernel: KernelName, settings: PcaSettings) -> Iterator[Row]:
    draws = np.random.default_rng([settings.seed, 3])
    outliers = draws.permutation(len(x))[: round(OUTLIERS * len(x))]
    others = np.delete(np.arange(len(x)), outliers)
    line = draws.normal(size=x.shape[1])
    line *= DISTANCE * np.linalg.norm(x, axis=1).mean() / np.linalg.norm(line)
    moved = x.copy()
    moved[outliers] = draws.choice([-1, 1], size=(len(outliers), 1)) * line
    moved[outliers] += 0.1 * draws.normal(size=moved[outliers].shape)
    best = full(centred(KERNELS[kernel](x[others])), settings.components).values.sum()

    gram = centred(KERNELS[kernel](moved))
    plain = full(gram, settings.components)
    threshold = THRESHOLD * float(np.median(np.linalg.norm(plain.scores, axis=1)))
    found = {"variance": (plain.vectors / np.sqrt(plain.values), plain.vectors)}
    for loss in (Huber(threshold), Insensitive(threshold)):
        one = robust_kernel_pca(gram, settings.components, loss, draws, start=plain.scores, tolerance=1e-4)
        found[type(loss).__name__] = one.weights, one.dual
    for name, (weights, dual) in found.items():
        scores = (gram @ weights)[others]  # about the mean of all points, and the outliers shift that
        missed = 1 - np.square(scores - scores.mean(0)).sum() / best
        used = {"loss": name, "threshold": "" if name == "variance" else f"{threshold:.4g}"}
        yield {**used, "outliers": OUTLIERS, "missed": f"{missed:.4g}", "points": f"{dual.any(axis=1).mean():.4g}"}


def _asymmetric(x: Array, kernel: KernelName, settings: PcaSettings) -> Iterator[Row]:
    matrix = torch.from_numpy(KERNELS[kernel](x[::2], x[1::2]))
    matrix = matrix / matrix.abs().sum(1, keepdim=True)
    draws = torch.Generator().manual_seed(settings.seed)
    yield _row("SVD", 1.0, matrix, partial(kernel_svd, matrix, settings.components), settings.rounds)
    for share in LANDMARKS:
        rows, columns = (landmarks(size, max(1, round(share * size)), draws) for size in matrix.shape)
        parts = matrix[rows], matrix[:, columns], rows
        yield _row("Nyström", share, matrix, partial(nystrom, *parts, settings.components), settings.rounds)


def _row(method: str, share: float, matrix: torch.Tensor, solve: Callable[[], KernelSvd], rounds: int) -> Row:
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        found = solve()
        seconds.append(time.perf_counter() - start)
    error = torch.linalg.matrix_norm(matrix - found.product) / torch.linalg.matrix_norm(matrix)
    residual = max(one.item() for one in found.residuals(matrix))
    measured = {"seconds": round(statistics.median(seconds), 6), "error": f"{error.item():.4g}"}
    return {"method": method, "landmarks": share, **measured, "residual": f"{residual:.4g}"}
