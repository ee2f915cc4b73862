"""The RPC-Attention paper: attention as kernel PCA (§2), and the pursuit that is to make it robust (§3, §4)."""

from __future__ import annotations

from kattn_cli.papers.finding import Paper
from kattn_cli.papers.rpc.claims import cost, kernel, language, pursuit, robustness, scaled_attention, segmentation

PAPER = Paper(
    "rpc",
    "RPC-Attention: Unveiling the Hidden Structure of Self-Attention via Kernel PCA",
    [
        *kernel.CLAIMS,
        *scaled_attention.CLAIMS,
        *pursuit.CLAIMS,
        *robustness.CLAIMS,
        *segmentation.CLAIMS,
        *language.CLAIMS,
        *cost.CLAIMS,
    ],
    ("projection_error", "eigenvectors", "alignment", "scaled", "pursuit", "planted", "robustness", "corruption"),
)
