"""Runs that are nothing but a manifest and tables of chosen numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kattn_cli.results import Run, write_rows


def run_with(results: Path, name: str, seed: int, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Run:
    """A finished run whose tables (``audit/alignment``, say) have these rows."""
    folder = results / name / str(seed)
    folder.mkdir(parents=True)
    manifest = {"name": name, "seed": seed, "status": "finished", "start": f"2026-01-0{seed + 1}"}
    (folder / "manifest.json").write_text(json.dumps({**manifest, "mechanism": name.rpartition("/")[2]}))
    for table, rows in tables.items():
        path = folder / f"{table}.csv"
        path.parent.mkdir(exist_ok=True)
        write_rows(path, rows)
    return Run(folder)
