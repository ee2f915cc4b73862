"""Figures as they were drawn, and tables of an audit small enough to check by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

MECHANISMS = {"softmax": "softmax", "mine": "rpc"}
SEEDS, EPOCHS, LAYERS, HEADS = range(3), (0, 2, 4), range(2), range(2)
Tables = dict[str, pd.DataFrame]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Figure]]:
    """Fills with the figures that are saved, which are not written."""
    close, figures = plt.close, list[Figure]()
    monkeypatch.setattr(plt, "close", figures.append)
    monkeypatch.setitem(plt.rcParams, "figure.max_open_warning", 0)
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)
    yield figures
    for figure in figures:
        close(figure)


@pytest.fixture
def apart() -> Callable[[Figure], None]:
    """Asserts that nothing leaves the figure, and that caption, legend and panels with their labels do not overlap."""

    def check(figure: Figure) -> None:
        figure.draw_without_rendering()
        parts = [*(one for one in figure.axes if one.get_visible()), *figure.legends, figure._supxlabel]  # type: ignore[attr-defined]
        boxes = [box for part in parts if (box := part.get_tightbbox())]
        for index, box in enumerate(boxes):
            assert min(box.x0, box.y0, figure.bbox.x1 - box.x1, figure.bbox.y1 - box.y1) > -1
            for other in boxes[index + 1 :]:
                width = min(box.x1, other.x1) - max(box.x0, other.x0)
                height = min(box.y1, other.y1) - max(box.y0, other.y0)
                assert min(width, height) < 1.5

    return check


@pytest.fixture
def tables() -> Tables:
    """Every table of the audit as ``frame`` gives it: two labels, three seeds, epochs, two layers and heads."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for label, seed in product(MECHANISMS, SEEDS):
        run = {"label": label, "mechanism": MECHANISMS[label], "run_seed": seed}
        for name, part in _of_run(0.1 * (seed - 1) + (label == "mine")).items():
            rows.setdefault(name, []).extend(run | row for row in part)
    return {name: pd.DataFrame(part) for name, part in rows.items()}


def _of_run(shift: float) -> dict[str, list[dict[str, Any]]]:
    """``shift``: −0.1, 0 and 0.1 for the seeds of softmax, and one more for those of mine."""
    heads = [{"layer": layer, "head": head} for layer, head in product(LAYERS, HEADS)]
    moments = [{"epoch": epoch, **one} for epoch, one in product(EPOCHS, heads)]
    layers = [{"epoch": epoch, "layer": layer} for epoch, layer in product(EPOCHS, LAYERS)]
    n = {"inputs": 64}
    sizes = {"difference_mean": 1e-4, "eigenvalue_max": 1e-2, "eigenvalue_mean": 1e-3}
    published = {"cosine": 0.32, "linear_cka": 0.11, "kernel_cka": 0.32}
    null = {"null_mean": 0.2 + 0.01 * shift, "null_high": 0.25 + 0.01 * shift}
    grid = [{"row": row, "column": column} for row, column in product(range(2), range(2))]
    maps = [
        {"image": image, **one, **place, "value": image + one["head"] + place["row"] + shift}
        for image, one, place in product(range(2), heads, grid)
    ]
    pairs = product(range(2), range(2), range(2), range(2))
    return {
        "projection_error": [
            {**one, "convention": convention, "feature_norm": 100 + shift, "projection_norm": 1.0,
             "j_proj": 99 + shift - 200 * (convention == "reference" and one["epoch"] == 4 and one["layer"] == 1), **n}
            for one, convention in product(moments, ("paper", "reference"))
        ],
        "eigenvectors": [
            {**one, "values": values, **sizes, "residual": 0.5 + 0.4 * (values == "random") + 0.1 * shift, **n}
            for one, values in product(moments, ("learned", "random"))
        ],
        "alignment": [
            {**one, "measure": measure, "value": 0.3 + 0.1 * shift, **null, "published": bound, **n}
            for one, (measure, bound) in product(moments, published.items())
        ],
        "pursuit": [
            {**one, "convention": convention, "iteration": k, "residual": 1 / k, "nonzero_share": 0.25,
             "recipe_iterations": 2, **n}
            for one, convention, k in product(heads, ("paper", "reference"), (1, 2, 3))
        ],
        "planted": [
            {**one, "method": method, "iterations": 4, "share": 0.05, "size": size, "precision": size / 32,
             "recall": 0.5, "found_share": 0.1, **n}
            for one, method, size in product(heads, ("paper", "pcp"), (2, 8, 32))
        ],
        "duality": [
            {**one, "objective": -2.0 - shift, "residual_e": 1.0, "residual_r": 0.5, "overlap_e": 0.25,
             "overlap_r": 0.75, "overlap_chance": 0.1, **n}
            for one in moments
        ],
        "compression": [
            {**one, "split": split, "stage": stage, "rate": 20 + shift - 5 * (stage == "after"), "rate_std": 1.0, **n}
            for one, split, stage in product(layers, ("train", "validation"), ("before", "after"))
        ],
        "coherence": [
            {**one, "coherence": 0.3 + 0.1 * shift, "null_mean": 0.1, "null_low": 0.09, "null_high": 0.11,
             "largest": 0.8}
            for one in layers
        ],
        "foreground": [
            {"kind": "membership", **one, "auc": 0.6 + 0.1 * one["head"] + 0.1 * shift, "null_auc": 0.5, **n}
            for one in heads
        ],
        "subspaces": [
            {"layer": 0, "head_i": a, "head_j": b, "i": i, "j": j,
             "cosine": 1.0 if (a, i) == (b, j) else -0.25 * (i + j)}
            for a, b, i, j in pairs
        ],
        "membership": maps,
        "class_attention": maps,
        "images": [
            {"image": image, "class": 7, **place, "red": place["row"], "green": 0.5, "blue": image}
            for image, place in product(range(2), grid)
        ],
        "effective_rank": [
            {**one, "effective_rank": 10 - 4 * one["layer"] + shift, "rank_90": 3.0, "of": 16,
             "checkpoint": "best" if one["epoch"] == 2 else "kept", **n}
            for one in moments
        ],
        "spectrum": [
            {"epoch": 2, **one, "index": k, "of": 16, "cumulative_explained_variance": k / 16 + 0.001 * one["head"],
             "error": 0.0, "checkpoint": "best", **n}
            for one, k in product(heads, np.arange(1, 17))
        ],
    }  # fmt: skip
