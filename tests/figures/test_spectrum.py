"""Spectra and effective ranks: which rows are drawn, over what, and old tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from kattn_cli.figures.spectrum import draw_effective_rank, draw_spectrum, draw_spectrum_epochs
from kattn_cli.figures.style import COLOURS

Tables = dict[str, pd.DataFrame]


def lines(figure: Figure, panel: int) -> dict[str, np.ndarray]:
    return {str(line.get_label()): np.asarray(line.get_xydata()) for line in figure.axes[panel].lines}


def caption(figure: Figure) -> str:
    return figure.get_supxlabel().replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ")


def test_mean_over_heads_and_seeds_by_layer(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    draw_spectrum(tables["spectrum"], tmp_path)
    assert [one.get_title() for one in drawn[0].axes] == ["layer 0", "layer 1"]
    expected = np.arange(1, 17) / 16 + 0.0005
    assert lines(drawn[0], 1)["softmax"] == pytest.approx(np.stack([np.arange(1, 17), expected], 1))
    assert drawn[0].axes[0].lines[0].get_color() == COLOURS["rpc"]
    assert caption(drawn[0]) == (
        "mine, softmax; seeds 0, 1, 2; 64 validation images; bands: ± 1 s.d. over heads and seeds"
    )


def test_tables_of_an_earlier_version(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    draw_spectrum(tables["spectrum"], tmp_path)
    draw_spectrum(tables["spectrum"].drop(columns=["epoch", "of", "error", "checkpoint"]), tmp_path)
    assert lines(drawn[1], 0)["mine"] == pytest.approx(lines(drawn[0], 0)["mine"])
    assert caption(drawn[1]) == caption(drawn[0])


def test_old_beside_new(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    new = tables["spectrum"]
    old = new[new["label"] == "mine"].drop(columns=["epoch", "of", "error"]).assign(label="old", checkpoint=np.nan)
    draw_spectrum(pd.concat([new, old], ignore_index=True), tmp_path)
    assert lines(drawn[0], 0)["old"] == pytest.approx(lines(drawn[0], 0)["mine"])


def test_spectra_of_different_lengths_share_an_axis_in_percent(
    tables: Tables, drawn: list[Figure], tmp_path: Path
) -> None:
    longer = tables["spectrum"].copy()
    longer.loc[longer["label"] == "mine", ["index", "of"]] *= 4
    longer.loc[longer["label"] == "mine", "error"] = 0.002
    draw_spectrum(longer, tmp_path)
    assert lines(drawn[0], 0)["mine"][:, 0] == pytest.approx(np.arange(1, 17) / 0.16)
    assert lines(drawn[0], 0)["softmax"][:, 0] == pytest.approx(np.arange(1, 17) / 0.16)
    assert "%" in drawn[0].axes[0].get_xlabel()
    assert "of 16, 64 singular values; partly randomised, no σ off by more than 2.0e-03" in caption(drawn[0])


def test_only_chosen_weights_are_drawn(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    kept = tables["spectrum"].assign(epoch=4, checkpoint="kept", cumulative_explained_variance=0.0)
    draw_spectrum(pd.concat([tables["spectrum"], kept]), tmp_path)
    assert lines(drawn[0], 0)["softmax"][-1, 1] == pytest.approx(1.0005)


def test_effective_rank_over_layers(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    ranks = tables["effective_rank"]
    ranks.loc[ranks["checkpoint"] == "kept", "effective_rank"] = 0
    draw_effective_rank(ranks, tmp_path)
    assert lines(drawn[0], 0)["softmax"] == pytest.approx(np.array([[0, 10], [1, 6]]))
    assert lines(drawn[0], 1)["mine"] == pytest.approx(np.array([[0, 3], [1, 3]]))
    assert drawn[0].axes[0].get_ylabel() == "effective rank\n(of 16)"


def test_effective_rank_is_a_share_where_numbers_differ(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    ranks = tables["effective_rank"]
    ranks.loc[ranks["label"] == "mine", "of"] = 32
    draw_effective_rank(ranks, tmp_path)
    assert lines(drawn[0], 0)["softmax"] == pytest.approx(np.array([[0, 62.5], [1, 37.5]]))
    assert lines(drawn[0], 0)["mine"] == pytest.approx(np.array([[0, 1100 / 32], [1, 700 / 32]]))


def test_effective_rank_along_epochs(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    ranks = tables["effective_rank"]
    extra = ranks[(ranks["epoch"] == 4) & (ranks["run_seed"] == 0)].assign(epoch=5)
    draw_spectrum_epochs(pd.concat([ranks, extra]), tmp_path)
    assert [one.get_title() for one in drawn[0].axes] == ["layer 0", "layer 1"]
    assert lines(drawn[0], 1)["softmax"] == pytest.approx(np.array([[0, 6], [2, 6], [4, 6]])), "epoch 5 has one seed"
