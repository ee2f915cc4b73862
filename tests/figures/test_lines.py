"""Means over seeds with their intervals, and what they are drawn along."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.pyplot import close
from scipy import stats

from kattn_cli.figures.lines import audit_caption, grey_band, mean_lines, means_caption, views
from kattn_cli.figures.style import COLOURS, Palette, panels
from kattn_cli.tables.frames import chosen_weights, shared_epochs

VALUES: dict[int, tuple[list[float], ...]] = {0: ([1.0, 3.0], [2.0, 4.0]), 1: ([5.0, 7.0], [8.0, 10.0])}
"""By layer: the heads of seed 0 and of seed 1."""


@pytest.fixture
def axes() -> Iterator[Axes]:
    figure, (one,) = panels(1)
    yield one
    close(figure)


def table(values: dict[int, tuple[list[float], ...]] = VALUES) -> pd.DataFrame:
    run = {"label": "a", "mechanism": "rpc", "epoch": 0}
    return pd.DataFrame(
        {**run, "run_seed": seed, "layer": layer, "head": head, "value": value}
        for layer, seeds in values.items()
        for seed, heads in enumerate(seeds)
        for head, value in enumerate(heads)
    )


def ends(axes: Axes) -> list[list[float]]:
    """Lowest and highest of the first band, by x."""
    (shade,) = (one for one in axes.collections if isinstance(one, PolyCollection))
    points = np.asarray(shade.get_paths()[0].vertices)
    return [[float(part.min()), float(part.max())] for x in (0, 1) for part in [points[points[:, 0] == x, 1]]]


def test_heads_are_averaged_within_a_seed_before_the_interval_over_seeds(axes: Axes) -> None:
    mean_lines(axes, table(), "layer", "value", Palette())
    (line,) = axes.lines
    assert line.get_xydata().tolist() == [[0, 2.5], [1, 7.5]]  # type: ignore[union-attr]
    assert (line.get_color(), line.get_label()) == (COLOURS["rpc"], "a")
    for (low, high), seeds in zip(ends(axes), ([2, 3], [6, 9]), strict=True):
        assert (low, high) == pytest.approx(stats.t.interval(0.95, 1, loc=np.mean(seeds), scale=stats.sem(seeds)))
    assert axes.get_xticks().tolist() == [0, 1]


def test_a_logarithmic_mean_is_geometric(axes: Axes) -> None:
    mean_lines(axes, table({0: ([1.0], [100.0]), 1: ([-1.0], [4.0])}), "layer", "value", Palette(), log=True)
    first, second = np.asarray(axes.lines[0].get_ydata())
    assert first == pytest.approx(10)
    assert math.isnan(second), "one seed has no logarithm"


def test_points_of_one_place_stand_side_by_side(axes: Axes) -> None:
    one = table({3: ([1.0, 3.0], [2.0, 4.0])})
    mean_lines(axes, pd.concat([one, one.assign(label="b", value=9.0)]), "layer", "value", Palette())
    points = {line.get_label(): line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "o"}  # type: ignore[union-attr]
    assert points == {"a": [[pytest.approx(2.85), 2.5]], "b": [[pytest.approx(3.15), 9]]}
    assert axes.get_xlim() == (2.5, 3.5)


def test_hollow_triangles_are_not_in_the_legend(axes: Axes) -> None:
    mean_lines(axes, table(), "layer", "value", Palette(), hollow=True)
    assert axes.get_legend_handles_labels() == ([], [])
    assert axes.lines[0].get_marker() == "^"


def epochs(of: dict[int, list[int]], **more: object) -> pd.DataFrame:
    rows = [(seed, epoch, layer) for seed, several in of.items() for epoch in several for layer in (0, 1)]
    return pd.DataFrame(rows, columns=["run_seed", "epoch", "layer"]).assign(label="a", **more)


def test_along_epochs_that_all_seeds_have_and_along_layers_at_the_last() -> None:
    data = epochs({0: [0, 5, 7], 1: [0, 5, 9]})
    (x, along), (layer, last) = views(data)
    assert (x, sorted(along["epoch"].unique())) == ("epoch", [0, 5])
    assert (layer, sorted(last["epoch"].unique())) == ("layer", [7, 9])
    assert means_caption(data) == "over epochs: mean over layers; over layers: the last epoch"


def test_two_looks_at_different_epochs_are_first_and_chosen() -> None:
    data = epochs({0: [0, 7], 1: [0, 9]})
    (x, along), _ = views(data)
    assert x == "moment"
    assert along.groupby("moment")["epoch"].unique().map(sorted).tolist() == [[0], [7, 9]]
    assert means_caption(data).startswith("first and chosen weights: mean over layers; ")


def test_one_epoch_is_drawn_along_layers_alone() -> None:
    data = epochs({0: [7], 1: [9]})
    assert [x for x, _ in views(data)] == ["layer"]
    assert [x for x, _ in views(data[data["layer"] == 0])] == ["layer"]


def test_chosen_weights_are_those_that_are_not_merely_kept() -> None:
    data = epochs({0: [0, 3, 5]}).assign(checkpoint=lambda rows: rows["epoch"].map({0: "kept", 3: "best", 5: "kept"}))
    assert chosen_weights(data)["epoch"].unique().tolist() == [3]
    assert chosen_weights(data.drop(columns="checkpoint"))["epoch"].unique().tolist() == [5]
    old = data.drop(columns=["checkpoint", "epoch"])
    assert chosen_weights(old) is old
    assert shared_epochs(old).empty


def test_the_band_of_chance_spans_all_labels(axes: Axes) -> None:
    data = table().assign(mean=0.2, low=0.1, high=0.3)
    other = data.assign(label="b", mean=0.4, low=0.15, high=0.5)
    grey_band(axes, pd.concat([data, other]), "layer", "mean", "low", "high", "chance")
    assert ends(axes) == [[0.1, 0.5]] * 2
    assert axes.lines[0].get_ydata() == pytest.approx([0.3, 0.3])


def test_captions_say_what_was_measured() -> None:
    data = table().assign(inputs=1000)
    assert audit_caption(data, "more") == "a; seeds 0, 1; 1,000 inputs; more; bands: 95 % over seeds (Student-t)"
    assert audit_caption(data[data["run_seed"] == 0]) == "a; seeds 0; 1,000 inputs"
