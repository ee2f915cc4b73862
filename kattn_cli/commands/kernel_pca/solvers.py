"""Measure what kernel PCA costs to a stated accuracy, by the dual and by the standard solvers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from threadpoolctl import threadpool_info

from kattn_cli.audit.gram import centred
from kattn_cli.console import progress_bar
from kattn_cli.errors import KattnError
from kattn_cli.kernel_pca.solvers import Array, full
from kattn_cli.kernel_pca.tuning import SOLVERS, Setting, timed, tuned
from kattn_cli.runs.csv_rows import append_rows, new_csv, write_manifest_of
from kattn_cli.runs.provenance import now, provenance

FOLDER = "kernel_pca"
DIMENSIONS = 20
TUNING_DRAWS = 5
KERNELS = {"rbf": rbf_kernel, "polynomial": polynomial_kernel}
"""scikit-learn's with its defaults: 1/d in front of the distance or product, third degree."""

DataName = Literal["digits", "synthetic"]
KernelName = Literal["rbf", "polynomial"]


@dataclass(frozen=True)
class PcaSettings:
    """What is asked for; ``tolerance``: the share of variance that may be missed; ``points``: of synthetic data."""

    components: int = 20
    tolerance: float = 1e-2
    rounds: int = 5
    points: int = 2000
    seed: int = 0


class _Task(NamedTuple):
    name: str
    kernel: KernelName
    gram: Array
    exact: Array
    """The top eigenvalues."""


def measure_kernel_pca(
    data: Sequence[DataName], kernels: Sequence[KernelName], settings: PcaSettings, *, results: Path
) -> list[Path]:
    """Time the solvers in turns, round by round, and return one CSV for each data set, with a manifest beside it.

    Each iterative solver first gets the cheapest setting that reaches the tolerance
    (:mod:`kattn_cli.kernel_pca.tuning`), by other draws than those that are timed. Kernel matrices are made and
    centred beforehand, and cost nothing here.

    Raises:
        KattnError: if a data set has too few points for so many components.
    """
    every, paths = points(data, settings), []
    with progress_bar("round") as bar:
        task = bar.add_task("kernel PCA", total=len(every) * len(kernels) * settings.rounds, count="", note="")
        for name, x in every.items():
            paths.append(new_csv(results / FOLDER, name))
            record = {**record_of(settings), "tuned": {}}
            write_manifest_of(paths[-1], record)
            for kernel in dict.fromkeys(kernels):
                bar.update(task, note=f"{name}, {kernel}: tuning")
                one = _task(name, kernel, x, settings.components)
                chosen = _tuned(one, settings)
                record["tuned"][kernel] = chosen
                for number, rows in _rounds(one, chosen, settings):
                    append_rows(paths[-1], rows)
                    done = bar.tasks[0].completed + 1
                    note = f"{name}, {kernel}, N = {len(x):,}"
                    bar.update(task, completed=done, count=f"{number}/{settings.rounds}", note=note)
            write_manifest_of(paths[-1], {**record, "end": now()})
    return paths


def points(data: Sequence[DataName], settings: PcaSettings) -> dict[DataName, Array]:
    """Return the points of each data set.

    Raises:
        KattnError: if one has too few for so many components.
    """
    every = {name: _points(name, settings) for name in dict.fromkeys(data)}
    for name, x in every.items():
        if len(x) <= settings.components:
            wanted = f"expected fewer than the {len(x)} points of {name}"
            raise KattnError(f"--components {settings.components}: {wanted}")
    return every


def record_of(settings: PcaSettings) -> dict[str, Any]:
    """Return the manifest of a table, as it begins."""
    return {**provenance("cpu"), "threads": _threads(), "settings": asdict(settings)}


def _points(name: DataName, settings: PcaSettings) -> Array:
    """Return ``(N, d)`` with variance 1 over all entries, so that the kernels' own widths suit.

    ``synthetic``: normal, coordinate j of standard deviation in proportion to ``1/√j``.
    """
    if name == "digits":
        x = load_digits().data
    else:
        draws = np.random.default_rng([settings.seed, 0])
        x = draws.normal(size=(settings.points, DIMENSIONS)) / np.sqrt(np.arange(1, DIMENSIONS + 1))
    x = x - x.mean(0)
    return x / x.std()


def _task(name: DataName, kernel: KernelName, x: Array, components: int) -> _Task:
    gram = centred(KERNELS[kernel](x))
    return _Task(name, kernel, gram, full(gram, components).values)


def _tuned(task: _Task, settings: PcaSettings) -> dict[str, Setting]:
    seeds = [(settings.seed, 1, draw) for draw in range(TUNING_DRAWS)]
    return {solver: tuned(solver, task.gram, task.exact, settings.tolerance, seeds) for solver in SOLVERS}


def _rounds(
    task: _Task, chosen: dict[str, Setting], settings: PcaSettings
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield the rows of each round, in which every solver takes its turn, forwards and backwards."""
    for number in range(1, settings.rounds + 1):
        order = list(SOLVERS) if number % 2 else list(SOLVERS)[::-1]
        rows = []
        for solver in order:
            draws = np.random.default_rng((settings.seed, 2, number))
            one = timed(solver, chosen[solver], task.gram, task.exact, draws)
            rows.append(
                {
                    "task": task.name,
                    "n": len(task.gram),
                    "kernel": task.kernel,
                    "components": settings.components,
                    "tolerance": settings.tolerance,
                    "solver": solver,
                    "setting": ", ".join(f"{key} {value:.3g}" for key, value in chosen[solver].items()),
                    "round": number,
                    "seconds": round(one.seconds, 6),
                    "accuracy": f"{one.gap:.4g}",
                    "device": "cpu",
                    "threads": _threads(),
                    "seed": settings.seed,
                }
            )
        yield number, rows


def _threads() -> int:
    """Return the number of threads of the linear algebra."""
    return max((library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"), default=1)
