"""The RPC-Attention paper's tables: transcribed rightly, and ours laid beside them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from kattn_cli.data.corruptions import ALEXNET_ERRORS, CORRUPTIONS
from kattn_cli.figures.paper_tables import PAPER, markdown, paper_tables
from kattn_cli.results import Run, create_run, write_rows

MODELS = ["symmetric", "rpc 4", "rpc 5", "rpc 6", "rpc 2 all"]
RECIPES = {
    "sym": "attention: {name: symmetric, layers: {}}",
    "rpc": "attention: {name: rpc, iterations: 4, layers: {'1:': {name: symmetric}}}",
    "all": "attention: {name: rpc, iterations: 2, layers: {}}",
    "other": "attention: {name: softmax, layers: {'-1': {name: primal}}}",
}


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    return pd.read_csv(PAPER)


def test_table_4_averages_to_table_1(published: pd.DataFrame) -> None:
    types = published[published["table"] == "table4"]
    assert set(types["row"]) == set(CORRUPTIONS)
    for metric in ("top1", "mce"):
        means = types[types["metric"] == metric].groupby("model")["value"].mean()
        stated = published.query("table == 'table1' and row == 'IN-C' and metric == @metric").set_index("model").value
        assert means[MODELS].tolist() == pytest.approx(stated[MODELS].tolist(), abs=0.02)


def test_table_4_s_corruption_errors_are_alexnet_s(published: pd.DataFrame) -> None:
    """CE = error / AlexNet's error for 72 of 75 pairs; three that the paper prints do not fit."""
    odd = {("contrast", "symmetric"), ("brightness", "rpc 2 all"), ("motion_blur", "rpc 2 all")}
    types = published[published["table"] == "table4"].pivot(index=["row", "model"], columns="metric", values="value")
    for (name, model), pair in types.iterrows():
        expected = 100 * (100 - pair["top1"]) / ALEXNET_ERRORS[name]
        assert (pair["mce"] == pytest.approx(expected, abs=0.012)) == ((name, model) not in odd), (name, model)


def test_every_model_has_every_number(published: pd.DataFrame) -> None:
    counts = published[published["table"] != "table5"].groupby("model").size()
    assert counts.to_dict() == dict.fromkeys(MODELS, 7 + 14 + 30)
    assert not published.duplicated(["table", "row", "metric", "model"]).any()


def make_run(results: Path, name: str, seed: int, top1: float) -> Run:
    run = create_run(results, name, seed, RECIPES[name], {"status": "finished", "start": "2026", "mechanism": name})
    clean = {"split": "test", "severity": 0, "images": 100, "top1": top1, "top5": 99.0}
    write_rows(run.folder / "eval.csv", [clean])
    shared = {"attack": "pgd", "images": 100, "clean_top1": top1, "top5": 90.0}
    rows = [{**shared, "epsilon": k / 255, "top1": top1 - 10 * k} for k in (1, 6)]
    write_rows(run.folder / "attacks.csv", rows)
    return run


def test_ours_beside_the_paper_s(tmp_path: Path) -> None:
    gains = {"sym": (0, 0, 0), "rpc": (3, 4, 5), "all": (-3, 0, 3), "other": (1, 1, 1)}
    runs = [make_run(tmp_path, name, s, 80 + s + gain) for name, part in gains.items() for s, gain in enumerate(part)]
    table = paper_tables(runs)
    attacked = table[(table["row"] == "pgd") & (table["metric"] == "top1")].set_index("label")
    assert set(attacked["setting"]) == {"pgd 6/255"}
    assert attacked["mean"].to_dict() == pytest.approx({"sym": 21, "rpc": 25, "all": 21, "other": 22})
    assert attacked["paper"][["sym", "rpc", "all"]].tolist() == [4.98, 5.15, 6.12]
    assert attacked["paper_difference"]["all"] == pytest.approx(1.14)
    assert attacked["verdict"][["rpc", "all", "other"]].tolist() == ["better", "not told apart", "better"]
    interval = stats.t.interval(0.95, 2, loc=4, scale=stats.sem([3, 4, 5]))
    assert attacked.loc["rpc", ["difference_low", "difference_high"]].tolist() == pytest.approx(interval)
    assert pd.isna(attacked["paper"]["other"])

    text = markdown(table)
    assert "| pgd 6/255 top-1 | 21.0 ± 2.5 (4.98) | " in text
    assert "- rpc against symmetric: in the paper better in 2 of 2 numbers; here 1 better, 0 worse, 1 not told" in text


def test_two_seeds_cannot_tell(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, name, s, 80 + gain) for name, gain in (("sym", 0), ("rpc", 5)) for s in range(2)]
    table = paper_tables(runs)
    assert set(table[table["label"] == "rpc"]["verdict"]) == {"not told apart"}
