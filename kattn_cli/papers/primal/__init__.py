"""The Primal-Attention paper, and the talk that derives it from kernel PCA and kernel SVD."""

from __future__ import annotations

from kattn_cli.papers.paper import Paper

PAPER = Paper(
    "primal",
    "Primal-Attention",
    "Primal-Attention: Self-attention through Asymmetric Kernel SVD, and the talk on kernel PCA and SVD",
    package=__name__,
    figures=("spectrum", "effective_rank", "duality"),
)
