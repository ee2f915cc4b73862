"""The tables that belong to no run: of ``kattn complexity`` and ``kattn kernel-pca``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pandas as pd

from kattn_cli.errors import RunError

Kind = Literal["complexity", "kernel-pca"]
COLUMNS: dict[Kind, set[str]] = {
    "complexity": {"attention", "pass", "n", "milliseconds", "peak_mib", "status"},
    "kernel-pca": {"task", "solver", "round", "seconds", "accuracy"},
}


def read_cost_table(path: Path) -> tuple[Kind, pd.DataFrame]:
    """A table and which command wrote it, told by its columns.

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
        f"{path}: is no table of kattn complexity or kattn kernel-pca; those of a run are read by the run's folder or "
        "name"
    )
