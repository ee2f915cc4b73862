"""``kattn kernel-pca``: the table, its manifest, and what the command says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from kattn_cli.commands.kernel_pca import cli as cli_kernel_pca
from kattn_cli.commands.kernel_pca import solvers as command
from kattn_cli.commands.kernel_pca.solvers import DataName, PcaSettings, measure_kernel_pca
from kattn_cli.errors import KattnError, Stopped
from kattn_cli.kernel_pca.tuning import SOLVERS

SMALL = PcaSettings(components=4, tolerance=1e-2, rounds=2, points=150, seed=3)


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command(epilog=cli_kernel_pca.EXAMPLE)(cli_kernel_pca.kernel_pca)
    return app


def test_table_and_manifest(tmp_path: Path) -> None:
    (path,) = measure_kernel_pca(["synthetic"], ["rbf", "polynomial"], SMALL, results=tmp_path)
    assert path == tmp_path / "kernel_pca" / "synthetic.csv"
    table = pd.read_csv(path)
    assert table.groupby(["kernel", "round"])["solver"].apply(set).tolist() == [set(SOLVERS)] * 4
    assert table["solver"].tolist()[:10] == [*SOLVERS, *list(SOLVERS)[::-1]]
    assert (table["seconds"] > 0).all()
    assert table[["n", "components", "tolerance", "seed", "device"]].drop_duplicates().values.tolist() == [
        [150, 4, 0.01, 3, "cpu"]
    ]
    assert table.query("solver == 'full'")["accuracy"].abs().max() < 1e-12
    assert 1e-6 < table.query("solver == 'dual L-BFGS'")["accuracy"].min() < 0.1
    manifest = json.loads(path.with_suffix(".json").read_text())
    assert manifest["settings"]["rounds"] == 2
    assert set(manifest["tuned"]["polynomial"]) == set(SOLVERS)
    assert manifest["threads"] == table["threads"].iloc[0] >= 1
    assert manifest["end"]


def test_accuracy_is_reproducible_and_the_next_table_has_a_name_of_its_own(tmp_path: Path) -> None:
    """PcaSettings are tuned by time, so only what is not tuned must be the same again."""
    first, second = (measure_kernel_pca(["synthetic"], ["rbf"], SMALL, results=tmp_path)[0] for _ in range(2))
    assert second.name == "synthetic-2.csv"
    chosen = [pd.read_csv(path).query("solver.str.contains('defaults')")["accuracy"] for path in (first, second)]
    assert chosen[0].tolist() == chosen[1].tolist()
    assert chosen[0].nunique() == 2  # a new draw each round


@pytest.mark.parametrize(("name", "shape"), [("digits", (1797, 64)), ("synthetic", (150, 20))])
def test_points_are_centred_and_of_variance_one(name: DataName, shape: tuple[int, int]) -> None:
    x = command._points(name, SMALL)
    assert x.shape == shape
    assert abs(x.mean(0)).max() < 1e-12
    assert x.var() == pytest.approx(1)


def test_too_many_components(tmp_path: Path) -> None:
    with pytest.raises(KattnError, match="--components 150: expected fewer than the 150 points of synthetic"):
        measure_kernel_pca(["synthetic"], ["rbf"], PcaSettings(components=150, points=150), results=tmp_path)
    assert not list(tmp_path.iterdir())


def test_stopped_in_the_second_round_the_first_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def interrupted(solver: str, *rest: Any) -> object:
        calls.append(solver)
        if len(calls) > len(SOLVERS) + 1:
            raise KeyboardInterrupt
        return timed(solver, *rest)

    timed = command.timed
    monkeypatch.setattr(command, "timed", interrupted)
    with pytest.raises(Stopped, match="the rounds that were finished are under"):
        cli_kernel_pca.kernel_pca(
            data=[cli_kernel_pca.DataSet.synthetic], kernel=[cli_kernel_pca.Kernel.rbf],
            n=100, components=3, tolerance=1e-2, rounds=3, seed=0, results=tmp_path, quiet=True,
        )  # fmt: skip
    table = pd.read_csv(tmp_path / "kernel_pca" / "synthetic.csv")
    assert table["round"].tolist() == [1] * len(SOLVERS)


def test_the_command_line(app: typer.Typer, tmp_path: Path) -> None:
    options = [
        "--data", "synthetic", "--n", "120", "--kernel", "rbf", "--components", "3", "--rounds", "1",
        "--tolerance", "0.1",
    ]  # fmt: skip
    done = CliRunner().invoke(app, [*options, "--results", str(tmp_path), "--quiet"], catch_exceptions=False)
    assert done.exit_code == 0
    folder = tmp_path / "kernel_pca"
    assert {path.name for path in folder.glob("[!.]*")} == {
        "synthetic.csv", "synthetic.json", "synthetic.ratios.csv", "synthetic.png", "synthetic.pdf"
    }  # fmt: skip
    ratios = pd.read_csv(folder / "synthetic.ratios.csv")
    assert ratios["solver"].tolist() == list(SOLVERS)
    assert ratios["ratio"].tolist()[-1] == 1


def test_options_at_fault(app: typer.Typer, tmp_path: Path) -> None:
    def run(*options: str) -> str:
        done = CliRunner().invoke(app, [*options, "--results", str(tmp_path)])
        return re.sub(r"[^\w'-]+", " ", done.output) + str(done.exception)

    assert "expected a share above 0 and below 1, such as 1e-2" in run("--tolerance", "1")
    assert "'mnist' is not one of 'digits' 'synthetic'" in run("--data", "mnist")
    assert "kattn kernel-pca solvers losses --data digits" in run("--help")


def test_robust_losses_and_asymmetric_kernels(app: typer.Typer, tmp_path: Path) -> None:
    """Huber's loss misses less beside outliers; landmarks come nearer to the SVD the more there are."""
    sizes = ["--data", "synthetic", "--kernel", "rbf", "--n", "300", "--components", "4", "--rounds", "1"]
    done = CliRunner().invoke(
        app, ["losses", "asymmetric", *sizes, "-q", "--results", str(tmp_path)], catch_exceptions=False
    )
    assert done.exit_code == 0
    folder = tmp_path / "kernel_pca"
    assert {path.name for path in folder.glob("[!.]*")} == {
        f"{stem}.{kind}" for stem in ("losses", "asymmetric") for kind in ("csv", "json")
    }
    losses = pd.read_csv(folder / "losses.csv").set_index("loss")
    assert losses.index.tolist() == ["variance", "Huber", "Insensitive"]
    assert 0 < losses.loc["Huber", "missed"] < losses.loc["variance", "missed"] < 1
    assert (losses["points"] <= 1).all()
    asymmetric = pd.read_csv(folder / "asymmetric.csv")
    assert asymmetric["method"].tolist() == ["SVD"] + ["Nyström"] * 4
    assert asymmetric["residual"][0] < 1e-12
    assert asymmetric["error"][0] < asymmetric["error"].tolist()[-1] < asymmetric["error"][1]
    assert json.loads((folder / "losses.json").read_text())["settings"]["points"] == 300
