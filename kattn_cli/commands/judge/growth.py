"""What the candidate costs as N grows, beside the mechanisms that it is compared with, measured in one go."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import torch

from kattn_cli.commands.complexity.grid import Competitor, Grid
from kattn_cli.commands.complexity.measure import Bounds, measure_complexity
from kattn_cli.commands.judge.candidate import Candidate
from kattn_cli.experiment.mechanisms import mechanism_of
from kattn_cli.runs.csv_rows import read_frame
from kattn_cli.tables.complexity import exponents, summary

BESIDE = ("softmax", "symmetric", "primal convention=reference", "tssa")
LENGTHS = (256, 512, 1024, 2048, 4096)
FEWER_LENGTHS = (256, 512, 1024)
FIT_FROM = 512
"""Below it, what does not grow with N weighs too much."""
DIM, HEADS = 64, 4
BOUNDS = Bounds(seconds=0.2, longest=10.0)


def growth(candidate: Candidate, folder: Path, device: torch.device, quick: bool) -> pd.DataFrame:
    """Measure a training step of each mechanism over N, or go on where it was stopped; one row for each mechanism.

    Returns its time and memory at the largest N, as text, with the exponents of both.
    """
    others = [mechanism_of(text) for text in BESIDE]
    chosen = [Competitor(one.name, "fast", one) for one in others]
    chosen.append(Competitor(candidate.label, "fast", candidate.mechanism))
    lengths = FEWER_LENGTHS if quick else LENGTHS
    grid = Grid(lengths, (DIM,), (HEADS,), (1,), ("forward+backward",), (False,), ("float32",))
    path = measure_complexity(chosen, grid, BOUNDS, results=folder, device=device, resume=True)
    costs = read_frame(path, "complexity")
    return summary(costs, exponents(costs, FIT_FROM))
