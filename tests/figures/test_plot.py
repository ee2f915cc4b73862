"""``kattn plot``: which figures come of which tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from files_opened import files_opened
from matplotlib.figure import Figure

from kattn_cli.commands.plot.plot import draw_runs, plot_runs, plot_table
from kattn_cli.errors import RunError
from kattn_cli.figures.registry import FIGURES, from_rows
from kattn_cli.figures.spectrum import draw_spectra
from kattn_cli.figures.style import panels, save
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run, create_run
from kattn_cli.tables.frames import frame

Tables = dict[str, pd.DataFrame]
LABELS = ("mine", "softmax")
OF_RUN = ["label", "mechanism", "run_seed"]


def write_runs(tables: Tables, results: Path) -> list[Run]:
    runs: dict[tuple[str, int], Run] = {}
    for name, table in tables.items():
        for key, rows in table.groupby(OF_RUN):
            label, mechanism, seed = (str(part) for part in key)
            facts = {"status": "finished", "start": "2026", "mechanism": mechanism, "parameters": 10}
            run = runs.get((label, int(seed))) or create_run(results, f"audit/{label}", int(seed), "", facts)
            runs[label, int(seed)] = run
            (run.folder / "audit").mkdir(exist_ok=True)
            place = run.folder if name in ("spectrum", "effective_rank") else run.folder / "audit"
            write_rows(place / f"{name}.csv", rows.drop(columns=OF_RUN).to_dict("records"))
    return list(runs.values())


def complexity_rows(attention: str = "softmax") -> list[dict[str, object]]:
    shared = {"attention": attention, "pass": "forward+backward", "device": "cpu", "dtype": "float32", "dim": 8}
    rest = {"heads": 2, "batch": 1, "status": "ok"}
    return [
        {**shared, **rest, "n": n, "milliseconds": n**2, "peak_mib": n, "forward_flops": n**2} for n in (64, 128, 256)
    ]


def test_every_table_of_some_runs_is_drawn(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    runs = write_runs(tables, tmp_path / "runs")
    pictures = plot_runs(runs, tmp_path)
    alone = [name for name in tables if name not in ("subspaces", "membership", "class_attention", "images")]
    by_label = [f"{name}_{label}" for name in ("subspaces", "membership", "class_attention") for label in LABELS]
    assert sorted(path.stem for path in pictures) == sorted([*alone, "spectrum_epochs", *by_label])
    assert len(drawn) == len(pictures)
    assert (tmp_path / "comparison.csv").exists()


def test_a_plot_opens_each_file_of_its_runs_once(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    runs = write_runs(tables, tmp_path / "runs")
    with files_opened(tmp_path / "runs") as opened:
        plot_runs(runs, tmp_path)
    assert len(drawn) > 1
    assert len(opened) > len(runs) + len(tables)
    assert set(opened.values()) == {1}


def test_ranks_of_one_epoch_have_no_figure_along_epochs(tables: Tables, drawn: list[Figure], tmp_path: Path) -> None:
    ranks = tables["effective_rank"]
    runs = write_runs({"effective_rank": ranks[ranks["checkpoint"] == "best"]}, tmp_path)
    assert [path.stem for path in draw_spectra(runs, tmp_path)] == ["effective_rank"]


def test_a_figure_is_a_function_and_a_line(
    drawn: list[Figure], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table of its own: drawn by ``kattn plot`` and ``kattn report`` once it is in the registry."""

    def draw_warmth(rows: pd.DataFrame, folder: Path) -> Path:
        figure, (axes,) = panels(1)
        axes.plot(rows["epoch"], rows["kelvin"])
        return save(figure, folder, "warmth", "How warm it was.")

    monkeypatch.setitem(FIGURES, "warmth", from_rows(lambda runs: frame(runs, "warmth.csv"), draw_warmth))
    facts = {"status": "finished", "start": "2026", "mechanism": "softmax", "parameters": 10}
    runs = [create_run(tmp_path, f"a/{name}", 0, "", facts) for name in ("warm", "unknown")]
    write_rows(runs[0].folder / "warmth.csv", [{"epoch": epoch, "kelvin": 300 + epoch} for epoch in range(3)])
    assert plot_runs(runs, tmp_path) == draw_runs(runs, tmp_path) == [tmp_path / "warmth.png"]
    assert list(np.asarray(drawn[0].axes[0].lines[0].get_ydata())) == [300, 301, 302]
    assert draw_runs(runs[1:], tmp_path) == []


def test_runs_without_tables(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", 0, "", {"status": "finished", "start": "2026"})
    (run.folder / "audit").mkdir()
    (run.folder / "audit" / "alignment.csv").touch()
    (run.folder / "spectrum.csv").write_text("epoch,layer,head,index,inputs,cumulative_explained_variance\n")
    assert frame([run], "spectrum.csv").empty
    with pytest.raises(RunError, match=r"a/0: has no tables to draw yet"):
        plot_runs([run], tmp_path / "figures")


def test_more_labels_than_a_figure_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kattn_cli.commands.plot.plot.MOST_LABELS", 2)
    named = [("a b", 0), ("a b", 1), ("b", 0), ("c", 0)]
    runs = [create_run(tmp_path, name, seed, "", {"status": "finished", "start": "2026"}) for name, seed in named]
    with pytest.raises(RunError, match=r"has no tables"):
        plot_runs(runs[:3], tmp_path / "figures")
    with pytest.raises(RunError) as refused:
        plot_runs(runs, tmp_path / "figures")
    assert str(refused.value) == (
        "4 runs of 3 labels are too many for a figure, which holds 2; name some of them, as in kattn plot 'a b', "
        "or let kattn report draw each group"
    )


@pytest.mark.parametrize("folder", [None, "elsewhere"])
def test_a_table_of_complexity(folder: str | None, drawn: list[Figure], tmp_path: Path) -> None:
    write_rows(tmp_path / "cpu.csv", [*complexity_rows(), *complexity_rows("performer")])
    where = tmp_path / folder if folder else None
    assert plot_table(tmp_path / "cpu.csv", where) == [(where or tmp_path) / "cpu.png"]
    assert [line.get_label() for line in drawn[0].axes[0].lines] == ["softmax  2.00, 1.00", "performer  2.00, 1.00"]


def test_tables_that_cannot_be_drawn(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    write_rows(tmp_path / "other.csv", [{"a": 1}])
    write_rows(tmp_path / "failed.csv", [{**row, "status": "out of memory"} for row in complexity_rows()])
    (tmp_path / "races.csv").write_text("task,n,kernel,solver,round,seconds,accuracy,tolerance,device\n")
    for name, text in {
        "absent.csv": r"absent.csv: cannot be read: No such file or directory",
        "empty.csv": r"empty.csv: is no table of kattn complexity, model-costs, decoding, benchmark or kernel-pca",
        "other.csv": r"other.csv: is no table of kattn complexity, model-costs, decoding, benchmark or kernel-pca",
        "failed.csv": r"failed.csv: has no measurement that went well, so there is nothing",
        "races.csv": r"races.csv: has no rows$",
    }.items():
        with pytest.raises(RunError, match=text):
            plot_table(tmp_path / name)


def test_figures_are_drawn_without_torch(tables: Tables, tmp_path: Path) -> None:
    write_runs({"alignment": tables["alignment"]}, tmp_path / "runs")
    code = (
        "import sys\nfrom pathlib import Path\nfrom kattn_cli.commands.plot.plot import plot_runs\n"
        "from kattn_cli.figures.style import use\nfrom kattn_cli.runs.find import find_runs\n"
        "use('slides', ['svg'])\nhere = Path(sys.argv[1])\n"
        "print(*plot_runs(find_runs(here / 'runs', ['audit']), here), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == [str(tmp_path / "alignment.svg"), "False"]
