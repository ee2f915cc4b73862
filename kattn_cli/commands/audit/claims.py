"""The page of claims, written from tables alone; never imports torch."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from kattn_cli.console import console
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.page import findings, page
from kattn_cli.papers.verdicts import verdicts
from kattn_cli.runs.cost_table import Kind
from kattn_cli.runs.run import Run
from kattn_cli.runs.whole_file import write_text

PAGE = "audit.md"
CLAIMS_CSV = "claims.csv"


def write_page(
    runs: Sequence[Run], tables: Sequence[tuple[Kind, pd.DataFrame]], pictures: Sequence[Path], folder: Path
) -> Path:
    """Judge every claim and write ``audit.md`` and ``claims.csv`` into ``folder``; returns the page.

    Args:
        tables: of ``kattn complexity`` (with ``--model`` and ``--decode``, too) and ``kattn kernel-pca``, by
            :func:`~.cost_tables.read_cost_table`.
        pictures: what the page shows, in this order.
    """
    found = findings(Evidence.of(runs, tables))
    folder.mkdir(parents=True, exist_ok=True)
    found.to_csv(folder / CLAIMS_CSV, index=False)
    shown = [Path(os.path.relpath(path, folder)).as_posix() for path in pictures]
    write_text(folder / PAGE, page(found, shown, shlex.join(["kattn", *sys.argv[1:]])))
    counts = Counter(verdicts(found)["verdict"])
    console.print("; ".join(f"{verdict}: {count}" for verdict, count in counts.most_common()))
    return folder / PAGE
