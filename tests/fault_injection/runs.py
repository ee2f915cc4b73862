"""What lies in a run's folder, for comparison: weights bit for bit, tables without what a clock measured."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

from safetensors import safe_open

CLOCKED = ("seconds", "per_second", "peak_memory")
"""Parts of names of columns that differ from one run to the next."""


def weights(run: Path) -> dict[str, str]:
    """Return a digest of the tensors of each file of weights that counts: those that a command can ask for."""
    files = sorted((run / "checkpoints").glob("*.safetensors"))
    return {file.stem: tensors(file) for file in files if "previous" not in file.stem}


def tensors(path: Path) -> str:
    """Return a digest of names, types, shapes and bytes."""
    digest = hashlib.sha256()
    with safe_open(path, framework="np") as file:
        for name in sorted(file.keys()):
            array = file.get_tensor(name)
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def rows(path: Path, but: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """Return a table's rows without what a clock measured; none where there is no table."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {key: value for key, value in row.items() if key not in but and not any(one in key for one in CLOCKED)}
            for row in csv.DictReader(file)
        ]


def difference(run: Path, truth: Path) -> str:
    """Return what differs between two trainings that must be the same; empty if nothing does."""
    if not (run / "checkpoints").is_dir():
        return f"{run.name}: no run"
    if weights(run) != weights(truth):
        return "the weights are others"
    if rows(run / "metrics.csv") != rows(truth / "metrics.csv"):
        return "metrics.csv is another"
    return ""


def run_folders(results: Path) -> list[Path]:
    """Return the folders that a listing must count as runs: those with a manifest, but for what is being written."""
    found = sorted(path.parent for path in results.rglob("manifest.json"))
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(results).parts)]
