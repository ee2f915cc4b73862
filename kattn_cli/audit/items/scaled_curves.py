"""Scaled Attention against softmax over training (RPC-Attention paper, Figure 3, right)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.curves import draw_curves


def draw_scaled_curves(metrics: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw the training curves of scaled and softmax attention, where a folder of recipes has both; else nothing."""
    if metrics.empty:
        return []
    recipes = metrics["label"].str.rpartition("/")[0]
    scaled, softmax = (metrics["mechanism"] == name for name in ("scaled", "softmax"))
    chosen = metrics[(scaled | softmax) & recipes.isin(recipes[scaled]) & recipes.isin(recipes[softmax])]
    return [draw_curves(chosen, folder, "scaled_curves")] if len(chosen) else []
