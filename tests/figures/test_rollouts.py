"""Rollouts: returns over targets, and scores, as means over seeds or over the episodes of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sequence_runs import write_run

from kattn_cli.figures.rollouts import draw_rollouts, score_points
from kattn_cli.figures.style import COLOURS
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.tables.values import ROLLOUTS_CSV, asked_for

RECIPE = {"name": "d4rl", "environment": "hopper"}


def write_acted(results: Path, name: str, seed: int, reached: float, *, scored: bool = True, **facts: Any) -> Run:
    """Two episodes for each of two targets, and one of weights since trained on."""
    run = write_run(results, name, seed, RECIPE, **facts)
    shared: dict[str, Any] = {"environment": "hopper", "seed": 0, "length": 100, "seconds": 1.0}
    rows = [
        {
            **shared,
            "target_return": target,
            "episode": episode,
            "checkpoint": "best",
            "weights": weights,
            "return": value,
            "normalised_score": value / 30 if scored else "",
        }
        for weights, target, episode, value in (
            ("old", 3600.0, 0, 1e6),
            ("new", 3600.0, 0, reached + 10),
            ("new", 3600.0, 1, reached - 10),
            ("new", 1800.0, 0, reached / 2),
            ("new", 1800.0, 1, reached / 2),
        )
    ]
    write_rows(run.folder / ROLLOUTS_CSV, rows)
    return run


def several(results: Path, seeds: range, **facts: Any) -> pd.DataFrame:
    return asked_for(
        [
            write_acted(results, f"hopper/{name}", seed, 1000.0 * (k + 2) + 100 * seed, mechanism=mechanism, **facts)
            for k, (name, mechanism) in enumerate((("softmax", "softmax"), ("primal_plus", "primal")))
            for seed in seeds
        ]
    )


def test_returns_and_scores_over_seeds(drawn: list[Figure], apart: Callable[[Figure], None], tmp_path: Path) -> None:
    draw_rollouts(several(tmp_path, range(3)), tmp_path)
    returns, scores = drawn[0].axes
    lines = {str(line.get_label()): line for line in returns.lines}
    assert lines["softmax"].get_color() == COLOURS["softmax"]
    assert lines["primal_plus"].get_color() == COLOURS["primal"]
    assert np.asarray(lines["softmax"].get_xdata()).tolist() == [1800, 3600]
    assert np.asarray(lines["softmax"].get_ydata()).tolist() == pytest.approx([1050, 2100])
    assert np.asarray(lines["return = target"].get_ydata()).tolist() == [1800, 3600]
    heights = [round(bar.get_height(), 6) for bar in scores.patches]  # type: ignore[attr-defined]
    assert sorted(heights) == pytest.approx([1050 / 30, 1550 / 30, 2100 / 30, 3100 / 30])
    assert scores.get_ylabel() == "normalised score"
    assert [label.get_text() for label in scores.get_xticklabels()] == ["3600", "1800"]
    apart(drawn[0])
    caption = " ".join(drawn[0].get_supxlabel().split())
    assert "seeds 0, 1, 2; 2 episodes for each target; 95 % intervals over seeds (Student-t)" in caption


def in_two_environments(results: Path, names: dict[str, str]) -> pd.DataFrame:
    """Of one run in each, by its name: its environment."""
    table = asked_for([write_acted(results, name, 0, 1000.0) for name in names])
    return table.assign(environment=[environment for environment in names.values() for _ in range(4)])


def test_of_several_environments_one_legend(drawn: list[Figure], tmp_path: Path) -> None:
    draw_rollouts(in_two_environments(tmp_path, {"a/hopper/tssa": "hopper", "a/walker2d/tssa": "walker2d"}), tmp_path)
    assert [axes.get_title() for axes in drawn[0].axes] == ["hopper", "walker2d"] * 2
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["tssa", "return = target"]


def test_runs_of_one_environment_stay_apart(drawn: list[Figure], tmp_path: Path) -> None:
    draw_rollouts(in_two_environments(tmp_path, {"a/tssa": "hopper", "a/hopper/tssa": "hopper"}), tmp_path)
    assert len(drawn[0].legends[0].get_texts()) == 3


def test_intervals_are_over_seeds_or_over_the_episodes_of_one(tmp_path: Path) -> None:
    points = score_points(several(tmp_path / "three", range(3)), "return")
    point = points[(points["label"] == "softmax") & (points["target_return"] == 3600)].iloc[0]
    mean, half = mean_interval([2000, 2100, 2200])
    assert (point["mean"], point["high"]) == (pytest.approx(mean), pytest.approx(mean + half))
    points = score_points(several(tmp_path / "one", range(1)), "return")
    point = points[(points["label"] == "softmax") & (points["target_return"] == 3600)].iloc[0]
    mean, half = mean_interval([2010, 1990])
    assert (point["mean"], point["low"]) == (pytest.approx(mean), pytest.approx(mean - half))


def test_no_panel_of_scores_where_none_is_known(drawn: list[Figure], tmp_path: Path) -> None:
    table = several(tmp_path, range(1), scored=False)
    draw_rollouts(table[table["target_return"] == 3600], tmp_path)
    (returns,) = drawn[0].axes
    assert returns.get_title() == "hopper"
    assert [label.get_text() for label in returns.get_xticklabels()] == ["3600"]
    assert "episodes of a single seed" in " ".join(drawn[0].get_supxlabel().split())
