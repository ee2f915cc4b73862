"""Each figure of the audit: the numbers that it draws, from tables that can be checked by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from scipy import stats

from kattn_cli.audit.items import ITEMS
from kattn_cli.audit.items.coherence.draw import cosine_matrix, draw_subspaces
from kattn_cli.audit.items.maps.draw import draw_maps, slug
from kattn_cli.audit.items.pursuit.draw import with_series
from kattn_cli.audit.items.scaled_curves import draw_scaled_curves
from kattn_cli.figures.spectrum import draw_effective_rank, draw_spectrum, draw_spectrum_epochs
from kattn_cli.figures.style import COLOURS, use

Tables = dict[str, pd.DataFrame]
LABELS = {"softmax": "softmax", "mine": "rpc"}
FILLED, HOLLOW = "o", "^"
MANY = ("subspaces", "membership", "class_attention")
"""A picture for each label, without a legend."""
FIGURES = {name: item.draw for name, item in ITEMS.items() if item.draw and not item.source and name not in MANY}


def values(axes: Axes, label: str, marker: str = FILLED) -> list[float]:
    """The heights of one label's line with this marker, told by its mechanism's colour."""
    colour = COLOURS[LABELS[label]]
    (line,) = (one for one in axes.lines if one.get_marker() == marker and same_color(one.get_color(), colour))
    return np.asarray(line.get_ydata(), dtype=float).tolist()


def draw(name: str, tables: Tables, drawn: list[Figure], folder: Path) -> list[Axes]:
    assert FIGURES[name](tables[name], folder) == [folder / f"{name}.png"]
    return drawn[-1].axes


def chance(axes: Axes) -> list[list[float]]:
    """The heights of dashed or dotted lines in grey."""
    return [np.asarray(one.get_ydata(), dtype=float).tolist() for one in axes.lines if one.get_marker() == "None"]


def test_projection_error(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    terms, difference, logarithm, *per_layer = draw("projection_error", tables, drawn, tmp_path)
    seeds = np.array([100.9, 101.0, 101.1])
    assert values(terms, "mine") == pytest.approx([stats.gmean(seeds)] * 3)
    assert values(terms, "mine", HOLLOW) == pytest.approx([1] * 3)
    assert (terms.get_yscale(), difference.get_yscale(), logarithm.get_yscale()) == ("log", "linear", "linear")
    assert values(difference, "softmax") == pytest.approx([99] * 3)
    expected = np.log([98.9, 99, 99.1]).mean()
    assert values(logarithm, "softmax") == pytest.approx([expected, expected, np.nan], nan_ok=True)
    assert values(per_layer[2], "softmax") == pytest.approx([expected, np.nan], nan_ok=True)
    assert [one.get_xlabel() for one in drawn[0].axes] == ["epoch"] * 3 + ["layer"] * 3


def test_projection_error_of_one_convention(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    errors = tables["projection_error"]
    for convention, panels in (("paper", 4), ("reference", 2)):
        FIGURES["projection_error"](errors[errors["convention"] == convention], tmp_path)
        assert len(drawn[-1].axes) == panels


def test_eigenvectors(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    differences, eigenvalues, residual, *_ = draw("eigenvectors", tables, drawn, tmp_path)
    assert values(differences, "softmax") == values(differences, "softmax", HOLLOW) == pytest.approx([1e-4] * 3)
    assert values(eigenvalues, "mine") == pytest.approx([1e-2] * 3)
    assert values(eigenvalues, "mine", HOLLOW) == pytest.approx([1e-3] * 3)
    assert differences.get_ylim() == eigenvalues.get_ylim()
    assert values(residual, "softmax") == pytest.approx([0.5] * 3)
    assert values(residual, "mine", HOLLOW) == pytest.approx([1.0] * 3)


def test_alignment(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    every = draw("alignment", tables, drawn, tmp_path)
    for axes, bound in zip(every, (0.32, 0.11, 0.32) * 2, strict=True):
        points = len(axes.get_xticks())
        assert values(axes, "mine") == pytest.approx([0.4] * points)
        assert chance(axes)[-1] == [bound] * 2
        null = axes.collections[-1].get_paths()[0].get_extents()
        assert (null.y0, null.y1) == pytest.approx((0.2, 0.26)), "from the lowest mean to the highest 95 %"
        assert axes.get_ylim()[0] == 0


def test_pursuit(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    residual, *_, share = draw("pursuit", tables, drawn, tmp_path)
    assert [one.get_title() for one in drawn[0].axes] == ["paper", "reference", "", ""]
    assert values(residual, "mine") == pytest.approx([1, 1 / 2, 1 / 3])
    assert values(share, "mine") == pytest.approx([25] * 3)
    (own,) = (one for one in residual.lines if one.get_label() == "the recipe's iterations")
    assert own.get_xdata() == [2, 2]


def test_planted(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    precision, pcp, recall, _ = draw("planted", tables, drawn, tmp_path)
    assert values(precision, "mine") == pytest.approx([2 / 32, 8 / 32, 1])
    assert values(recall, "softmax") == pytest.approx([0.5] * 3)
    assert (chance(precision), chance(recall)) == ([[0.05, 0.05]], [])
    assert [pcp.get_title(), pcp.get_xscale()] == ["PCP (yardstick)", "log"]


def test_planted_tells_iterations_and_shares_apart() -> None:
    rows = pd.DataFrame({"label": ["a", "a", "b"], "iterations": [4, 20, 5], "share": [0.05, 0.05, 0.1]})
    assert with_series(rows, name_share=False)["label"].tolist() == ["a, 4 iterations", "a, 20 iterations", "b"]
    assert with_series(rows, name_share=True)["label"].tolist()[1:] == [
        "a, 20 iterations, 5 % planted",
        "b, 10 % planted",
    ]


def test_a_projection_error_of_many_sizes(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    """Of either sign and over powers of ten: no axis but the symmetrical logarithmic one shows all of it."""
    FIGURES["projection_error"](tables["projection_error"].assign(j_proj=lambda rows: 100 * rows["j_proj"]), tmp_path)
    assert drawn[0].axes[1].get_yscale() == "symlog"


def test_duality(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    objective, residual, overlap, *_ = draw("duality", tables, drawn, tmp_path)
    assert values(objective, "mine") == pytest.approx([3] * 3)
    assert [values(residual, "mine", one) for one in (FILLED, HOLLOW)] == [[1] * 3, [0.5] * 3]
    assert [values(overlap, "mine", one) for one in (FILLED, HOLLOW)] == [[0.25] * 3, [0.75] * 3]
    assert chance(overlap) == [pytest.approx([0.1] * 3)]


def test_duality_without_r_scores(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    gaps = tables["duality"].assign(residual_r=np.nan, overlap_r=np.nan)
    FIGURES["duality"](gaps, tmp_path)
    assert [line.get_marker() for line in drawn[0].axes[1].lines] == [FILLED] * 2


def test_compression(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    train, validation, *per_layer = draw("compression", tables, drawn, tmp_path)
    assert [train.get_title().split()[0], validation.get_title().split()[0]] == ["train", "validation"]
    assert values(train, "mine") == pytest.approx([16] * 3)
    assert values(per_layer[1], "mine", HOLLOW) == pytest.approx([21] * 2)
    assert per_layer[2].get_title() == "train, after less before"
    assert values(per_layer[3], "mine") == pytest.approx([-5] * 2)


def test_coherence(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    mean, largest, *_ = draw("coherence", tables, drawn, tmp_path)
    assert values(mean, "mine") == pytest.approx([0.4] * 3)
    assert chance(mean) == [pytest.approx([0.1] * 3)]
    null = mean.collections[-1].get_paths()[0].get_extents()
    assert (null.y0, null.y1) == pytest.approx((0.09, 0.11))
    assert values(largest, "softmax") == pytest.approx([0.8] * 3)


def test_foreground(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    (axes,) = draw("foreground", tables, drawn, tmp_path)
    assert values(axes, "softmax") == pytest.approx([0.65] * 2)
    assert sorted(values(axes, "mine", ".")) == pytest.approx([0.7, 0.7, 0.8, 0.8])
    assert chance(axes) == [pytest.approx([0.5] * 2)]


def test_subspaces(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    paths = draw_subspaces(tables["subspaces"], tmp_path)
    assert [path.name for path in paths] == ["subspaces_mine.png", "subspaces_softmax.png"]
    shown = np.asarray(drawn[0].axes[0].images[0].get_array())
    block = np.array([[0, 0.25], [0.25, 0.5]])
    expected = np.block([[block, block], [block, block]])
    np.fill_diagonal(expected, 1)
    assert shown.tolist() == expected.tolist()
    assert drawn[0].axes[0].images[0].get_clim() == (0, 1)


def test_half_of_the_cosines_is_enough(tables: Tables) -> None:
    rows = tables["subspaces"].query("label == 'mine' and run_seed == 0")
    half = rows[rows["head_i"] <= rows["head_j"]]
    assert cosine_matrix(half)[0].tolist() == cosine_matrix(rows)[0].tolist()


@pytest.mark.parametrize("layer", [None, 0])
def test_maps(layer: int | None, tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    maps = tables["membership"].assign(value=lambda rows: rows["value"] + 10 * rows["layer"] + rows["column"])
    paths = draw_maps("membership", maps, tables["images"], tmp_path, layer)
    assert [path.name for path in paths] == ["membership_mine.png", "membership_softmax.png"]
    (axes,) = drawn[1].axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["image", "head 0", "head 1"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["class\n7"] * 2
    picture, first, second, *_, last = (np.asarray(image.get_array()) for image in axes.images)
    assert picture.tolist() == [[[0, 0.5, 0], [0, 0.5, 0]], [[1, 0.5, 0], [1, 0.5, 0]]]
    start = (10 if layer is None else 0) - 0.1
    assert first == pytest.approx(start + np.array([[0, 1], [1, 2]])), "the lowest seed"
    assert (second - first, last - first) == (pytest.approx(np.ones((2, 2))), pytest.approx(2 * np.ones((2, 2))))
    assert [axes.images[4].get_clim(), axes.images[1].get_clim()] == [
        pytest.approx((start + 1, start + 3)),
        pytest.approx((start, start + 2)),
    ]
    assert "layer 1" in drawn[1].get_supxlabel() or layer == 0


def test_maps_without_pictures(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    draw_maps("class_attention", tables["class_attention"], pd.DataFrame(), tmp_path)
    assert [tick.get_text() for tick in drawn[0].axes[0].get_xticklabels()] == ["head 0", "head 1"]
    assert [tick.get_text() for tick in drawn[0].axes[0].get_yticklabels()] == ["image\n0", "image\n1"]


def test_labels_in_file_names() -> None:
    assert slug("audit/rpc attention.iterations=6") == "audit_rpc_attention.iterations=6"


@pytest.mark.parametrize(("style", "epochs"), [("paper", 3), ("slides", 3), ("slides", 1)])
def test_nothing_collides_in_any_figure(
    style: str, epochs: int, tables: Tables, drawn: list[Figure], apart: Callable[[Figure], None], tmp_path: Path
) -> None:
    use(style)
    chosen = (2,) if epochs == 1 else (0, 2, 4)
    of_epochs = {name: rows[rows["epoch"].isin(chosen)] for name, rows in tables.items() if "epoch" in rows}
    draw_every(tables | of_epochs, tmp_path)
    for figure in drawn:
        apart(figure)


def test_a_mechanism_has_the_same_colour_in_every_figure(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    draw_every(tables, tmp_path)
    with_legends = [figure for figure in drawn if figure.legends]
    assert len(with_legends) == len(FIGURES) + 3
    for figure in with_legends:
        (legend,) = figure.legends
        handles = dict(zip((one.get_text() for one in legend.get_texts()), legend.get_lines(), strict=False))
        for label, mechanism in LABELS.items():
            assert same_color(handles[label].get_color(), COLOURS[mechanism])


def draw_every(tables: Tables, folder: Path) -> None:
    for name, figure in FIGURES.items():
        figure(tables[name], folder)
    draw_subspaces(tables["subspaces"], folder)
    draw_maps("membership", tables["membership"], tables["images"], folder)
    draw_spectrum(tables["spectrum"], folder)
    draw_effective_rank(tables["effective_rank"], folder)
    draw_spectrum_epochs(tables["effective_rank"], folder)


def test_scaled_is_drawn_beside_softmax_of_its_own_folder(drawn: list[Figure], tmp_path: Path) -> None:
    rows = [
        {"label": label, "mechanism": label.rpartition("/")[2], "run_seed": 0, "split": split, "epoch": epoch,
         "loss": 1.0 / epoch, "top1": 50.0}
        for label in ("a/softmax", "a/scaled", "a/rpc", "b/softmax")
        for split in ("train", "validation")
        for epoch in (1, 2)
    ]  # fmt: skip
    metrics = pd.DataFrame(rows)
    assert draw_scaled_curves(metrics, tmp_path) == [tmp_path / "scaled_curves.png"]
    assert {line.get_label() for line in drawn[-1].axes[1].lines} == {"a/softmax", "a/scaled"}
    assert draw_scaled_curves(metrics[metrics["label"] != "a/softmax"], tmp_path) == []
    assert draw_scaled_curves(pd.DataFrame(), tmp_path) == []
