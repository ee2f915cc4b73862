"""The RPC-Attention paper: attention as kernel PCA (§2), and the pursuit that is to make it robust (§3, §4)."""

from __future__ import annotations

from kattn_cli.papers.paper import Paper

PAPER = Paper(
    "rpc",
    "RPC-Attention",
    "RPC-Attention: Unveiling the Hidden Structure of Self-Attention via Kernel PCA",
    package=__name__,
    figures=(
        "projection_error",
        "eigenvectors",
        "alignment",
        "scaled",
        "pursuit",
        "planted",
        "robustness",
        "corruption",
    ),
)
