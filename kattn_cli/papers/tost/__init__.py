"""The ToST paper: what TSSA compresses, how its heads cluster tokens, how accurate it is and what it costs."""

from __future__ import annotations

from kattn_cli.papers.paper import Paper

PAPER = Paper(
    "tost",
    "ToST",
    "ToST: Token Statistics Transformer",
    package=__name__,
    figures=("compression", "membership", "coherence", "subspaces", "foreground", "class_attention"),
)
