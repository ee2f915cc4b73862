"""Runs that are nothing but a manifest and tables of chosen numbers, and what is judged of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from kattn_cli.papers import PAPERS
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.verdict import judged
from kattn_cli.runs.columns import needed_of
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run

SEEDS = range(3)
Rows = Sequence[Mapping[str, Any]]


def run_with(
    results: Path,
    name: str,
    seed: int,
    tables: Mapping[str, Rows],
    *,
    attention: Mapping[str, Any] | None = None,
    **facts: Any,
) -> Run:
    """A finished run whose tables (``audit/alignment``, say) have these rows, and with ``attention`` a recipe.

    Columns that every such table has, and of which the test says nothing, are made up.
    """
    folder = results / name / str(seed)
    folder.mkdir(parents=True)
    manifest = {"name": name, "seed": seed, "status": "finished", "start": f"2026-01-0{seed + 1}"}
    manifest |= {"mechanism": name.rpartition("/")[2], **facts}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    if attention is not None:
        recipe = {
            "name": name,
            "data": {"name": "digits"},
            "model": {"name": "vit", "depth": 3},
            "attention": attention,
        }
        (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    for table, rows in tables.items():
        path = folder / f"{table}.csv"
        path.parent.mkdir(exist_ok=True)
        needed = needed_of(path)
        others = {**dict.fromkeys(needed.there, ""), **dict.fromkeys(needed.filled, 1)}
        write_rows(path, [{**others, **row} for row in rows])
    return Run(folder)


def judge(evidence: Evidence | list[Run], claim: str) -> pd.DataFrame:
    """The findings on claims whose text has these words."""
    known = evidence if isinstance(evidence, Evidence) else Evidence(evidence)
    meant = [(paper, one) for paper in PAPERS.values() for one in paper.claims if claim in one.text]
    assert meant, claim
    return judged(meant, known)
