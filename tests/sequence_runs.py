"""Runs on sequences as their commands write them, with numbers that can be checked by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run, create_run

ATTENTIONS: dict[str, dict[str, Any]] = {
    "softmax": {"name": "softmax", "layers": {}},
    "symmetric": {"name": "symmetric", "layers": {}},
    "primal": {"name": "primal", "layers": {}},
    "primal_plus": {"name": "softmax", "layers": {-1: {"name": "primal"}}},
    "rpc": {"name": "rpc", "iterations": 4, "layers": {}},
    "tssa": {"name": "tssa", "layers": {}},
}
LISTOPS = {"name": "listops", "max_length": 128, "train": 4000}
TEXT = {"name": "text", "path": "/where/poems.txt", "vocabulary": "characters", "context": 64}


def write_run(
    results: Path, name: str, seed: int, data: Mapping[str, Any], *, size: Sequence[int] = (2, 64), **manifest: Any
) -> Run:
    """A run of the mechanism that ``name`` ends in."""
    mechanism = name.rpartition("/")[2]
    kind = "decoder" if "context" in data else "encoder"
    recipe = {
        "name": name,
        "data": dict(data),
        "model": {"name": kind, "depth": size[0], "dim": size[1], "heads": 2},
        "attention": ATTENTIONS[mechanism],
        "train": {"epochs": 5},
    }
    facts = {
        "status": "finished",
        "start": "2026",
        "mechanism": mechanism.removesuffix("_plus"),
        "device": "cpu",
        **manifest,
    }
    return create_run(results, name, seed, yaml.safe_dump(recipe), facts)


def write_classified(
    results: Path, name: str, seed: int, data: Mapping[str, Any], top1: float, seconds: float = 2.0, **facts: Any
) -> Run:
    """A classifier: 100 steps an epoch of so many seconds each, but for a first epoch that takes ten times as long."""
    run = write_run(results, name, seed, data, peak_memory_mib=512, best_epoch=2, **facts)
    write_rows(run.folder / "eval.csv", [{"split": "test", "severity": 0, "images": 200, "top1": top1, "top5": 99.0}])
    spent = [10 * seconds + seconds * epoch for epoch in range(3)]
    rows = [
        {"epoch": epoch, "step": 100 * epoch, "split": split, "loss": 1.0, "top1": 10.0 * epoch, "seconds": so_far}
        for epoch, so_far in enumerate(spent, 1)
        for split in ("train", "validation")
    ]
    write_rows(run.folder / "metrics.csv", rows)
    return run


def write_language(results: Path, name: str, seed: int, perplexity: float, **facts: Any) -> Run:
    """A language model: clean at two strides, swapped by two shares with two draws each, and on another corpus.

    Rows that do not count stand beside them: of weights since trained on, of others than the best, of part of the text.
    """
    run = write_run(results, name, seed, TEXT, size=(4, 128), peak_memory_mib=2048, **facts)
    weights = {"asked": "all", "checkpoint": "best", "weights": "new"}
    text = {"corpus": "", "split": "test", "swap_share": 0, "swap_seed": "", "window": 64, "stride": 1, "tokens": 900}
    shared = {**text, **weights}
    measured = [
        {**shared, "weights": "old", "perplexity": 99.0, "loss": 9.0},
        {**shared, "perplexity": perplexity, "loss": 2.0},
        {**shared, "split": "validation", "perplexity": perplexity + 1, "loss": 2.1},
        {
            **shared,
            "corpus": "ptb",
            "split": "",
            "tokens": 500,
            "perplexity": 3 * perplexity,
            "loss": 5.0 + perplexity / 10,
        },
    ]
    measured += [
        {**shared, "swap_share": share, "swap_seed": draw, "tokens": 880 + draw, "loss": 2.5,
         "perplexity": perplexity * (1 + share) + draw}
        for share in (0.05, 0.2)
        for draw in (0, 1)
    ]  # fmt: skip
    measured += [
        {**shared, "stride": 32, "perplexity": perplexity + 7, "loss": 3.0},
        {**shared, "asked": 50, "tokens": 50, "perplexity": 97.0, "loss": 9.0},
        {**shared, "checkpoint": "last", "weights": "last", "perplexity": 98.0, "loss": 9.0},
    ]
    write_rows(run.folder / "perplexity.csv", measured)
    write_rows(
        run.folder / "metrics.csv",
        [
            {"epoch": 1, "step": 50, "split": split, "loss": 2.0, "top1": 30.0, "seconds": 5.0}
            for split in ("train", "validation")
        ],
    )
    return run
