"""Measurements of one name are told apart; where one of several would have to be taken, none is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from papers.claim_tables import run_with

from kattn_cli.commands.attack.table import attack_table
from kattn_cli.errors import RunError
from kattn_cli.runs.weights import fingerprint, weights_path
from kattn_cli.tables.frames import attack_frame, frame
from kattn_cli.tables.measurements import require_one, told_apart
from kattn_cli.tables.values import values

PGD: dict[str, Any] = {
    "attack": "pgd", "norm": "linf", "epsilon": 4 / 255, "epsilon_units": "pixels in [0, 1]", "steps": 20,
    "step_size": 0.6 / 255, "restarts": 1, "targeted": False, "seed": 0, "images": 40, "clean_top1": 90.0, "top1": 50.0,
    "checkpoint": "best",
}  # fmt: skip


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ({"step_size": 0.4 / 255}, ["pgd 4/255 step 0.15", "pgd 4/255 step 0.1"]),
        ({"steps": 50}, ["pgd 4/255 20 steps", "pgd 4/255 50 steps"]),
        ({"checkpoint": "last", "clean_top1": 80.0}, ["pgd 4/255", "pgd 4/255 last"]),
        ({"seed": 1}, ["pgd 4/255 seed 0", "pgd 4/255 seed 1"]),
        ({"an_option": "on"}, ["pgd 4/255", "pgd 4/255 an option on"]),
        ({"images": 30}, ["pgd 4/255"]),
    ],
    ids=str,
)
def test_rows_of_one_run(other: dict[str, Any], names: list[str], tmp_path: Path) -> None:
    """Fewer images are a quick look, which the whole set replaces; nothing else replaces anything."""
    run = run_with(tmp_path, "x/softmax", 0, {"attacks": [PGD, {**PGD, **other, "top1": 60.0}]})
    table = attack_frame([run])
    assert table["name"].tolist() == names
    found = values([run]).set_index("quantity")["value"].to_dict()
    assert [found[name] for name in names] == [50, 60][: len(names)]
    clean = {"clean": 90.0, **({"clean last": 80.0} if "checkpoint" in other else {})}
    assert {name: value for name, value in found.items() if "clean" in name} == clean
    shown = attack_table(table).set_index("name")["mean"].to_dict()
    assert {name: value for name, value in shown.items() if "clean" in name} == clean


@pytest.mark.parametrize(
    ("other", "apart"),
    [({"checkpoint": "last"}, "last"), ({"step_size": 0.4 / 255}, "step 0.1"), ({"images": 30}, "(30 images)")],
    ids=str,
)
def test_rows_of_two_runs_are_not_set_beside_each_other(other: dict[str, Any], apart: str, tmp_path: Path) -> None:
    runs = [
        run_with(tmp_path, f"x/{name}", 0, {"attacks": [{**PGD, **more}]})
        for name, more in (("softmax", {}), ("rpc", other))
    ]
    names = dict(zip(attack_frame(runs)["label"], attack_frame(runs)["name"], strict=True))
    assert names["rpc"] == f"pgd 4/255 {apart}"
    assert names["softmax"] != names["rpc"]
    found = values(runs)
    shared = found[found["quantity"].str.startswith("pgd")].groupby("quantity")["label"].nunique()
    assert set(shared) == {1}


def test_the_step_is_a_share_of_epsilon(tmp_path: Path) -> None:
    """So that one attack at several budgets is one; of cw, which looks for the smallest, it is as it is."""
    rows = [{**PGD, "epsilon": e / 255, "step_size": 0.15 * e / 255} for e in (1, 2, 3)]
    rows += [{**PGD, "attack": "cw", "norm": "l2", "epsilon": e, "step_size": 0.01} for e in (0.5, float("inf"))]
    table = attack_frame([run_with(tmp_path, "x/softmax", 0, {"attacks": rows})])
    assert table["name"].tolist() == ["pgd 1/255", "pgd 2/255", "pgd 3/255", "cw ℓ2 0.5", "cw ℓ2"]
    assert table["step_share"].tolist() == [0.15, 0.15, 0.15, 0.01, 0.01]


def test_clean_accuracy_of_two_checkpoints(tmp_path: Path) -> None:
    clean = {"split": "test", "severity": 0, "images": 9, "top1": 80.0, "checkpoint": "best"}
    one = run_with(tmp_path, "x/one", 0, {"eval": [clean]})
    other = run_with(tmp_path, "x/other", 0, {"eval": [{**clean, "checkpoint": "last", "top1": 70.0}]})
    found = values([one, other])[["label", "quantity", "value"]].to_numpy().tolist()
    assert found == [["one", "clean", 80.0], ["other", "clean last", 70.0]]


def test_weights_that_the_run_no_longer_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_with(tmp_path, "x/softmax", 0, {"attacks": [{**PGD, "weights": "000123456789"}, {**PGD, "seed": 1}]})
    assert attack_frame([run])["weights"].tolist()[0] == "000123456789", "digits are text"
    assert "left out" not in capsys.readouterr().out
    weights_path(run.folder, "best").parent.mkdir()
    weights_path(run.folder, "best").write_bytes(b"trained further")
    for _ in range(2):
        assert attack_frame([run])["seed"].tolist() == [1], "which does not say of which weights it is"
    said = capsys.readouterr().out.replace("\n", " ")
    assert said.count("1 row was measured on weights that the run no longer has, and left out") == 1
    fresh = {**PGD, "weights": fingerprint(weights_path(run.folder, "best")), "top1": 55.0}
    other = run_with(tmp_path, "x/other", 0, {"attacks": [fresh]})
    weights_path(other.folder, "best").parent.mkdir()
    weights_path(other.folder, "best").write_bytes(b"trained further")
    assert attack_frame([other])["top1"].tolist() == [55]


def test_one_of_several_is_not_taken(tmp_path: Path) -> None:
    rows = [{**PGD, "step_share": 0.1}, {**PGD, "step_share": 0.2}, {**PGD, "epsilon": 1.0}]
    table = pd.DataFrame(rows).assign(folder="results/x/0", name="pgd 4/255")
    require_one(table.iloc[1:], "attacks.csv", ["epsilon"], ["name"])
    with pytest.raises(RunError) as caught:
        require_one(table, "attacks.csv", ["epsilon"], ["name"])
    assert str(caught.value) == (
        "results/x/0/attacks.csv: has pgd 4/255 2 times, which differ in step_share (0.1 and 0.2), where one is "
        "compared; leave in the file the rows that count"
    )


def test_runs_that_were_measured_otherwise_have_other_labels(tmp_path: Path) -> None:
    shared = {"head": 0, "measure": "cosine", "null_mean": 0.1, "null_high": 0.2}

    def run(name: str, seed: int, **how: Any) -> Any:
        rows = [
            {**shared, "epoch": epoch, "layer": 0, "value": 1.0, "inputs": 32, "checkpoint": which, **how}
            for epoch, which in ((0, "kept"), (2, how.get("checkpoint", "last")))
        ]
        rows[0]["checkpoint"] = "kept"
        return run_with(tmp_path, f"audit/{name}", seed, {"audit/alignment": rows})

    alike = [run("softmax", 0), run("rpc", 0)]
    assert set(told_apart(frame(alike, "audit/alignment.csv"))["label"]) == {"softmax", "rpc"}
    runs = [*alike, run("softmax", 1, inputs=64), run("rpc", 1, checkpoint="best")]
    labels = told_apart(frame(runs, "audit/alignment.csv")).groupby("label")["run_seed"].unique().map(list).to_dict()
    assert labels == {
        "softmax last inputs 32": [0], "rpc last inputs 32": [0], "softmax last inputs 64": [1],
        "rpc inputs 32": [1],
    }  # fmt: skip


def test_of_weights_that_were_kept_along_the_way_alone_nothing_is_told_apart() -> None:
    """As where those that were chosen are gone: their rows are not read."""
    table = pd.DataFrame({"label": ["softmax"], "folder": ["a/0"], "checkpoint": ["kept"], "inputs": [32]})
    pd.testing.assert_frame_equal(told_apart(table), table)
