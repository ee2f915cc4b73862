"""The ratios of kernel PCA's solvers, and their figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kattn_cli.figures import kernel_pca
from kattn_cli.figures.kernel_pca import draw_kernel_pca
from kattn_cli.kernel_pca.tuning import DUAL, SOLVERS
from kattn_cli.tables.costs import solver_ratios

SECONDS = {"full": [9.0, 12.0, 8.0], "Lanczos": [1.0, 1.0, 1.0], "randomised SVD": [0.5, 1.0, 1.0]}
SECONDS |= {"randomised SVD, defaults": [3.0, 8.0, 4.0], DUAL: [1.0, 2.0, 4.0]}


def times(kernels: tuple[str, ...] = ("rbf",)) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"task": "digits", "n": 1797, "kernel": kernel, "components": 20, "tolerance": 1e-2, "solver": solver}
            | {"round": number, "seconds": value, "accuracy": 0.004 * number, "device": "cpu", "threads": 2}
            for kernel in kernels
            for number in (1, 2, 3)
            for solver, value in (
                (name, values[number - 1]) for name, values in reversed(SECONDS.items())
            )
        ]
    )  # fmt: skip


def test_ratios_are_of_one_round_each() -> None:
    table = solver_ratios(times()).set_index("solver")
    assert list(table.index) == list(SOLVERS)
    assert table.loc["full", ["ratio", "ratio_low", "ratio_high"]].tolist() == [6, 2, 9]
    assert table.loc["Lanczos", ["ratio", "ratio_low", "ratio_high"]].tolist() == [0.5, 0.25, 1]
    assert table.loc[DUAL, ["ratio", "ratio_low", "ratio_high"]].tolist() == [1, 1, 1]
    assert table.loc["full", ["seconds", "seconds_low", "seconds_high", "rounds"]].tolist() == [9, 8, 12, 3]
    assert table.loc[DUAL, "accuracy"] == pytest.approx(0.008)
    assert table.loc[DUAL, "reached"] == pytest.approx(2 / 3)


def test_problems_are_kept_apart() -> None:
    table = times(("rbf", "polynomial"))
    table.loc[(table["kernel"] == "polynomial") & (table["solver"] != DUAL), "seconds"] *= 10
    found = solver_ratios(table).query("solver == 'full'").set_index("kernel")["ratio"]
    assert found.to_dict() == {"rbf": 6, "polynomial": 60}


def test_the_figure_knows_every_solver() -> None:
    assert (list(kernel_pca.MARKERS), kernel_pca.DUAL) == (list(SOLVERS), DUAL)


@pytest.mark.parametrize("kernels", [("rbf",), ("rbf", "polynomial")])
def test_the_figure(kernels: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(kernel_pca, "save", lambda figure, folder, name, caption: drawn.update(f=figure, c=caption))
    draw_kernel_pca(times(kernels), tmp_path, "digits")
    panels = [axes for axes in drawn["f"].axes if axes.get_visible()]
    assert [axes.get_title() for axes in panels] == [
        *(f"digits, {kernel}, N = 1,797" for kernel in kernels), "above 1: the dual is faster"
    ]  # fmt: skip
    points = {line.get_label(): line.get_xdata() for line in panels[0].lines}
    assert list(points["full"]) == SECONDS["full"]
    middles = [container[0].get_ydata()[0] for container in panels[-1].containers]
    assert middles == [6, 0.5, 0.5, 3]
    assert "s = 20 components, cpu, threads: 2, 3 rounds" in drawn["c"]


def test_the_files(tmp_path: Path) -> None:
    table = times()
    table["accuracy"] = -2e-16
    path = draw_kernel_pca(table, tmp_path, "digits")
    assert path == tmp_path / "digits.png"
    assert path.with_suffix(".pdf").stat().st_size > 5000
