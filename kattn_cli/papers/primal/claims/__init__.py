"""The Primal-Attention paper, and the talk that derives it from kernel PCA and kernel SVD."""

from __future__ import annotations

from kattn_cli.papers.finding import Paper
from kattn_cli.papers.primal.claims import ablations, accuracy, control, cost, duality, spectrum

PAPER = Paper(
    "primal",
    "Primal-Attention: Self-attention through Asymmetric Kernel SVD, and the talk on kernel PCA and SVD",
    [*spectrum.CLAIMS, *duality.CLAIMS, *accuracy.CLAIMS, *ablations.CLAIMS, *control.CLAIMS, *cost.CLAIMS],
    ("spectrum", "effective_rank", "duality"),
)
