"""Perplexity over the share of swapped words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sequence_runs import write_language

from kattn_cli.figures.perplexity import draw_perplexity
from kattn_cli.figures.style import COLOURS
from kattn_cli.tables.values import own_perplexities


@pytest.fixture
def measured(tmp_path: Path) -> pd.DataFrame:
    names = ("softmax", "rpc", "primal_plus")
    return own_perplexities(
        [
            write_language(tmp_path, f"text/{one}", seed, 4.0 + k + seed)
            for k, one in enumerate(names)
            for seed in (0, 1)
        ]
    )


def test_one_line_a_mechanism(
    measured: pd.DataFrame, drawn: list[Figure], apart: Callable[[Figure], None], tmp_path: Path
) -> None:
    draw_perplexity(measured, tmp_path)
    (axes,) = drawn[0].axes  # the clean validation text alone is no panel
    assert axes.get_ylabel() == "test perplexity"
    lines = {str(line.get_label()): line for line in axes.lines}
    assert {name: line.get_color() for name, line in lines.items()} == {
        "softmax": COLOURS["softmax"],
        "rpc": COLOURS["rpc"],
        "primal_plus": COLOURS["primal"],
    }
    assert np.asarray(lines["softmax"].get_xdata()).tolist() == [0, 5, 20]
    assert np.asarray(lines["softmax"].get_ydata()).tolist() == pytest.approx([4.5, 4.5 * 1.05 + 0.5, 4.5 * 1.2 + 0.5])
    caption = drawn[0]._supxlabel.get_text()  # type: ignore[attr-defined]
    assert "windows of 64 tokens, stride 1; mean over 2 draws of the words; 95" in caption.replace("\n", " ")
    apart(drawn[0])


def test_clean_text_alone(
    measured: pd.DataFrame, drawn: list[Figure], apart: Callable[[Figure], None], tmp_path: Path
) -> None:
    clean = measured[(measured["swap_share"] == 0) & (measured["run_seed"] == 0)]
    draw_perplexity(clean, tmp_path)
    (axes,) = drawn[0].axes
    assert (axes.get_xlabel(), axes.get_ylabel(), list(axes.get_xticks())) == ("clean text", "test perplexity", [])
    assert "95" not in drawn[0]._supxlabel.get_text()  # type: ignore[attr-defined]
    apart(drawn[0])
    draw_perplexity(clean[clean["split"] == "validation"], tmp_path)
    assert drawn[1].axes[0].get_ylabel() == "validation perplexity"
