"""The ToST paper: what TSSA compresses, how its heads cluster tokens, how accurate it is and what it costs."""

from __future__ import annotations

from kattn_cli.papers.finding import Paper
from kattn_cli.papers.tost.claims import accuracy, compression, cost, foreground

PAPER = Paper(
    "tost",
    "ToST: Token Statistics Transformer",
    [*compression.CLAIMS, *foreground.CLAIMS, *accuracy.CLAIMS, *cost.CLAIMS],
    ("compression", "membership", "coherence", "subspaces", "foreground", "class_attention"),
)
