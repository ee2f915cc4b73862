"""What figures draw: means and intervals over seeds, the newest of equal runs, fitted exponents."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from kattn_cli.attention import BASELINES, MECHANISMS
from kattn_cli.figures.style import COLOURS, Palette
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run, create_run
from kattn_cli.tables.attack_names import epsilon_text
from kattn_cli.tables.complexity import exponents
from kattn_cli.tables.frames import (
    attack_frame,
    chosen_weights,
    clean_rows,
    clean_where_attacked,
    frame,
    over_seeds,
    seeds_caption,
    shared_epochs,
    shared_folder,
)
from kattn_cli.tables.summary import summary


def make_run(results: Path, name: str, seed: int, top1: float, start: str = "2026-01-01") -> Run:
    manifest = {"status": "finished", "start": start, "mechanism": name, "parameters": 10, "train_seconds": 2.0}
    run = create_run(results, name, seed, "", manifest)
    row = {"split": "test", "images": 9, "top1": top1, "top1_low": top1 - 1, "top1_high": top1 + 1}
    write_rows(run.folder / "eval.csv", [row])
    return run


def test_the_newest_of_equal_runs_counts(tmp_path: Path) -> None:
    older, newer = make_run(tmp_path, "a", 0, 90.0), make_run(tmp_path, "a", 0, 91.0, "2026-01-02")
    for runs in ([older, newer], [newer, older]):
        table = frame(runs, "eval.csv")
        assert table["top1"].tolist() == [91.0]
        assert table[["label", "mechanism", "run_seed"]].to_numpy().tolist() == [["a", "a", 0]]
        assert table["folder"].tolist() == [str(newer.folder)]


def test_a_run_that_names_no_mechanism_is_its_label_s(tmp_path: Path) -> None:
    """A manifest of an earlier version."""
    run = create_run(tmp_path, "studies/a", 0, "", {"status": "finished", "start": "2026-01-01"})
    write_rows(run.folder / "eval.csv", [{"split": "test", "images": 9, "top1": 90.0}])
    assert frame([run], "eval.csv")[["label", "mechanism"]].to_numpy().tolist() == [["a", "studies/a"]]


def test_the_mechanism_is_the_manifest_s(tmp_path: Path) -> None:
    manifest = {"status": "finished", "start": "2026-01-01", "mechanism": "rpc"}
    run = create_run(tmp_path, "mine", 0, "", manifest)
    write_rows(run.folder / "eval.csv", [{"split": "test", "images": 9, "top1": 90.0}])
    assert frame([run], "eval.csv")[["label", "mechanism"]].to_numpy().tolist() == [["mine", "rpc"]]


def test_clean_accuracy_beside_attacks_has_no_interval_of_theirs(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", 0, "", {"status": "finished", "start": "2026-01-01"})
    shared = {"attack": "pgd", "epsilon": 4 / 255, "top1": 80.0, "top1_low": 75.0, "top1_high": 84.0}
    rows = [
        {**shared, "checkpoint": checkpoint, "images": images, "clean_top1": clean}
        for checkpoint, images, clean in (("best", 355, 97.0), ("best", 10, 90.0), ("last", 100, 96.0))
    ]
    write_rows(run.folder / "attacks.csv", [*rows, {**rows[0], "attack": "fgsm", "top1": 85.0}])
    clean = clean_where_attacked(attack_frame([run])).sort_values("name")
    assert clean[["name", "top1"]].to_numpy().tolist() == [["clean", 97.0], ["clean last (100 images)", 96.0]]
    assert not {"top1_low", "top1_high"} & set(clean)


def test_what_of_its_folder_a_label_loses() -> None:
    assert shared_folder(["quick/softmax", "quick/rpc", "quick/rpc lr=1/2"]) == "quick/"
    assert shared_folder(["quick/softmax", "slow/rpc"]) == ""
    assert shared_folder(["quick/softmax", "rpc"]) == ""
    assert shared_folder(["softmax", "rpc"]) == ""
    assert shared_folder(["a/b/softmax", "a/b/rpc"]) == "a/b/"


def test_rows_of_the_weights_that_were_chosen() -> None:
    table = pd.DataFrame({"checkpoint": ["best", "kept", "last"], "value": [1, 2, 3]})
    assert chosen_weights(table)["value"].tolist() == [1, 3]
    assert chosen_weights(table[["value"]])["value"].tolist() == [1, 2, 3]
    columns = {"label": list("aaabb"), "run_seed": [0, 0, 1, 0, 0], "epoch": [1, 2, 5, None, None]}
    of_epochs = pd.DataFrame({**columns, "value": range(5)})
    assert chosen_weights(of_epochs)["value"].tolist() == [1, 2, 3, 4], "the last epoch of each run, not of all"


def test_epochs_that_all_seeds_of_a_label_have() -> None:
    table = pd.DataFrame({"label": list("aaab"), "run_seed": [0, 0, 1, 0], "epoch": [1, 2, 1, 2], "value": range(4)})
    assert shared_epochs(table)["value"].tolist() == [0, 2, 3]
    nothing = shared_epochs(table.drop(columns="epoch"))
    assert (len(nothing), "value" in nothing) == (0, True)


def test_clean_rows_are_the_test_set_s_alone() -> None:
    table = pd.DataFrame({"split": ["test", "validation", "test"], "severity": [0, 0, 3], "top1": [90.0, 95.0, 50.0]})
    assert clean_rows(table)["top1"].tolist() == [90.0]
    assert clean_rows(table.drop(columns="severity"))["top1"].tolist() == [90.0, 50.0]


def test_intervals_over_seeds(tmp_path: Path) -> None:
    values = [90.0, 92.0, 97.0]
    runs = [make_run(tmp_path, "a", seed, top1) for seed, top1 in enumerate(values)]
    runs.append(make_run(tmp_path, "b", 0, 80.0))
    table = over_seeds(frame(runs, "eval.csv"), ["label"], "top1").set_index("label")
    low, high = stats.t.interval(0.95, 2, loc=93, scale=stats.sem(values))
    assert table.loc["a", ["mean", "low", "high"]].tolist() == pytest.approx([93, low, high])
    assert table.loc["b", ["mean", "low", "high"]].tolist() == [80, 79, 81]
    assert table["seeds"].tolist() == [3, 1]
    bare = frame(runs, "eval.csv").drop(columns=["top1_low", "top1_high"])
    row = over_seeds(bare, ["label"], "top1").set_index("label").loc["b"]
    assert row[["mean", "low", "high"]].tolist() == [80, 80, 80], "the value, where a single run has no interval"


def test_comparison(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, "a", seed, top1) for seed, top1 in enumerate([90.0, 94.0])]
    table = summary(runs).set_index("quantity")
    assert table.index.tolist() == ["params", "clean", "train s"]
    assert table.loc["clean", "mean"] == 92
    assert table.loc["clean", "half"] == pytest.approx(stats.t.ppf(0.975, 1) * 2)
    assert table.loc["clean", "seeds"] == 2


def test_a_quick_look_never_mixes_with_the_whole_test_set(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", 0, "", {"status": "finished", "start": "2026-01-01"})
    shared = {"attack": "pgd", "epsilon": 4 / 255}
    rows = [
        {**shared, "images": 355, "top1": 80.0, "clean_top1": 97.0},
        {**shared, "images": 10, "top1": 50.0, "clean_top1": 90.0},
    ]
    write_rows(run.folder / "attacks.csv", rows)
    assert attack_frame([run])["top1"].tolist() == [80.0]
    table = summary([run]).set_index("quantity")
    assert table["mean"].to_dict() == {"clean": 97.0, "pgd 4/255": 80.0}


def test_what_was_measured_on_fewer_images_says_so(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", 0, "", {"status": "finished", "start": "2026-01-01"})
    write_rows(run.folder / "eval.csv", [{"split": "test", "severity": 0, "images": 1000, "top1": 96.0}])
    write_rows(
        run.folder / "attacks.csv",
        [{"attack": "pgd", "epsilon": 4 / 255, "images": 355, "top1": 80.0, "clean_top1": 97.0}],
    )
    table = summary([run]).set_index("quantity")
    assert table["mean"].to_dict() == {"clean (355 images)": 97.0, "clean": 96.0, "pgd 4/255 (355 images)": 80.0}


def test_captions_and_names() -> None:
    data = pd.DataFrame({"label": ["a", "a", "b"], "run_seed": [0, 1, 0]})
    assert seeds_caption(data) == "a: seeds 0, 1; b: seeds 0"
    assert seeds_caption(data[data["run_seed"] == 0]) == "a, b; seeds 0"
    assert epsilon_text(4 / 255) == "4/255"
    assert epsilon_text(0.5 / 255) == "0.5/255"


def test_exponents_are_fitted_on_the_upper_half() -> None:
    n = [64, 128, 256, 512]
    costs = pd.DataFrame(
        {
            "attention": "x",
            "pass": "forward",
            "status": "ok",
            "n": n,
            "milliseconds": [9.0, 9.0, 256.0**2, 512.0**2],
            "peak_mib": n,
            "forward_flops": n,
        }
    )
    row = exponents(costs).iloc[0]
    assert row["milliseconds_exponent"] == pytest.approx(2)
    assert (row["from_n"], row["to_n"]) == (256, 512)


def test_same_mechanism_same_colour() -> None:
    palette = Palette()
    first, second = palette.line("rpc", "one"), palette.line("rpc", "two")
    assert first["color"] == second["color"] == COLOURS["rpc"]
    assert first["linestyle"] != second["linestyle"]
    assert (
        len({*COLOURS.values(), palette.line("mine.py:A", "a")["color"], palette.line("mine.py:B", "b")["color"]})
        == len(COLOURS) + 2
    )


def test_every_mechanism_has_a_colour_of_its_own() -> None:
    assert list(COLOURS) == [*MECHANISMS, *BASELINES]
    assert len({*COLOURS.values()}) == len(COLOURS)
