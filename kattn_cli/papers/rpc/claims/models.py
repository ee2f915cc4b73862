"""Which of the RPC-Attention paper's models a run on images is of."""

from __future__ import annotations

from pathlib import Path

from kattn_cli.papers.image_runs import FAN, image_run
from kattn_cli.runs.run import Run


def described(folder: str) -> tuple[str, bool]:
    """The paper's model of the run in a folder, and whether it is a FAN; nothing without a recipe to tell."""
    run = Run(Path(folder))
    if not run.recipe:
        return "", False
    found = image_run(run)
    return found.model, found.facts["architecture"] == FAN
