"""Runs that are nothing but a recipe, a manifest and an accuracy, for reports whose numbers are known by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kattn_cli.report.groups import Group, groups_of
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Snapshot, create_run


def write_accuracy(
    results: Path, name: str, seed: int, top1: float, *, recipe: Mapping[str, Any] | None = None, **facts: Any
) -> Snapshot:
    """A finished run of the mechanism that ``name`` ends in, with this accuracy on 200 clean test images."""
    mechanism = name.rpartition("/")[2]
    sections: dict[str, Any] = {
        "name": name,
        "seed": seed,
        "data": {"name": "digits", "image_size": None},
        "attention": {"name": mechanism, "layers": {}},
        "train": {"lr": 0.001},
        **(recipe or {}),
    }
    manifest = {
        "status": "finished",
        "mechanism": mechanism,
        "commit": "a" * 40,
        "dirty": False,
        "versions": {"kattn": "0.1.0"},
        "command": f"kattn train {name}",
        "start": f"2026-01-0{seed + 1}T08:00:00+00:00",
        "end": f"2026-01-0{seed + 1}T09:00:00+00:00",
        "parameters": 1000,
        **facts,
    }
    run = create_run(results, name, seed, yaml.safe_dump(sections, sort_keys=False), manifest)
    write_rows(run.folder / "eval.csv", [{"split": "test", "severity": 0, "images": 200, "top1": top1, "top5": 99.0}])
    return Snapshot(run.folder)


def write_all(results: Path, accuracies: Mapping[str, Sequence[float]], **facts: Any) -> list[Snapshot]:
    """One run for each value, of the seeds 0, 1, …"""
    return [
        write_accuracy(results, name, seed, value, **facts)
        for name, values in accuracies.items()
        for seed, value in enumerate(values)
    ]


def one_group(results: Path, accuracies: Mapping[str, Sequence[float]], **facts: Any) -> Group:
    """The group that such runs are."""
    (group,) = groups_of(write_all(results, accuracies, **facts))
    return group
