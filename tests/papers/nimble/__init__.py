"""A fourth paper, as one would be added: this folder, and a line in ``PAPERS``."""

from __future__ import annotations

from kattn_cli.papers.paper import Paper

PAPER = Paper("nimble", "Nimble", "Nimble: Attention Without Regret", package=__name__, figures=("robustness",))
