"""The tables that belong to no run: of costs, of the benchmark, and of kernel PCA."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pandas as pd

from kattn_cli.errors import RunError

Kind = Literal["complexity", "models", "decoding", "benchmark", "kernel-pca"]
COLUMNS: dict[Kind, set[str]] = {
    "models": {
        "model",
        "attention",
        "version",
        "pass",
        "n",
        "milliseconds_per_sample",
        "peak_mib",
        "held_mib",
        "status",
    },
    "decoding": {"attention", "context", "milliseconds", "ratio", "state_mib", "peak_mib", "status"},
    "complexity": {"attention", "pass", "n", "milliseconds", "peak_mib", "status"},
    "benchmark": {"item", "quantity", "ours", "against", "value", "bound"},
    "kernel-pca": {"task", "solver", "round", "seconds", "accuracy"},
}


def read_cost_table(path: Path) -> tuple[Kind, pd.DataFrame]:
    """A table and what it is of, told by its columns.

    Raises:
        RunError: if it cannot be read, is none of these, or has no row.
    """
    try:
        table = pd.read_csv(path)
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise RunError(f"{path}: cannot be read as a table ({error})") from None
    for kind, columns in COLUMNS.items():
        if set(table) >= columns:
            if table.empty:
                raise RunError(f"{path}: has no rows")
            return kind, table
    raise RunError(
        f"{path}: is no table of kattn complexity, benchmark or kernel-pca; those of a run are read by the run's "
        "folder or name"
    )
