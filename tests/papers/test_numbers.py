"""The papers' numbers: whole, without doubles, and agreeing with what the papers say of them."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from kattn_cli.attention import ATTENTIONS
from kattn_cli.data.corruptions import CORRUPTIONS, alexnet_errors
from kattn_cli.papers import PAPERS

COUNTS: dict[str, dict[str, int]] = {
    "primal": {
        "table1": 11 * 11,
        "table2": 4 * 12,
        "table3": 6 * 9,
        "table4": 7 * 10,
        "table5": 10 * 7,
        "table6": 3 * 7,
        "table7a": 2 * 4,
        "table7b": 3 * 3,
        "table8": 4 * 6,
        "table9": 10 * 3 * 4,
        "table10": 3 * 3 * 3,
        "table11": 2 * 11,
        "table12": 2 * 6,
        "table13": 5 * 4,
        "v1_table5": 2 * 2,
    },
    "tost": {
        "table2": 7 * 7,
        "table3": 7 * 6,
        "table4": 4 * 6 + 2 * 4,
        "table5": 7 * 5,
        "table6": 3 * 5,
        "table7": 5 * 10,
        "table8": 4,
    },
    "rpc": {
        "table1": 5 * 7,
        "table2": 5 * 14,
        "table3": 2 * 4,
        "table4": 5 * 30,
        "table5": 2 * 2,
        "table6": 5 * 4,
        "table7": 2 * 6,
        "table8": 2 * 4,
        "table9": 2 * 4,
        "table10": 2 * 4,
        "table11": 12,
        "table12": 2 * 2,
        "table13": 5 * 6,
        "table14": 3 * 5,
    },
}
AVERAGES: list[tuple[str, str]] = [
    *(("primal", f"table{number}") for number in (1, 2, 3, 5, 8, 11, 12)),
    ("tost", "table3"),
    ("tost", "table4"),
]
ODD_AVERAGES = {
    ("primal", "table1", "longformer"): (72.0, 72.28),
    ("primal", "table1", "performer"): (71.9, 71.68),
    ("tost", "table3", "reformer"): (50.56, 50.668),
    ("tost", "table3", "bigbird"): (54.17, 55.012),
    ("tost", "table3", "linformer"): (50.46, 50.552),
    ("tost", "table3", "performer"): (51.18, 51.41),
}
"""Averages that are not those of their rows: as printed, and as the rows give it."""
RPC = ["symmetric", "rpc 4", "rpc 5", "rpc 6", "rpc 2 all"]
SIZE_OR_VARIANT = r" (tiny|small|medium|large|base|e|data-independent|all|ista|no norm|no norm ista|\d( all)?( base)?)$"
OF_THE_PAPERS = {"primal_plus", "rpc asymmetric", "rpc sym/asym", "s4", "FAN-tiny", "RPC-FAN-tiny"}


def wide(paper: str, table: str, metric: str) -> pd.DataFrame:
    """Rows by models."""
    found = PAPERS[paper].numbers
    of_metric = found[(found["table"] == table) & (found["metric"] == metric)]
    return of_metric.pivot(index="row", columns="model", values="value")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_is_whole(paper: str) -> None:
    table = PAPERS[paper].numbers
    assert list(table.columns) == ["table", "row", "model", "metric", "value", "spread"]
    assert table.groupby("table").size().to_dict() == COUNTS[paper]
    assert not table.duplicated(["table", "row", "metric", "model"]).any()
    assert table["value"].notna().all()
    assert set(table.loc[table["spread"].notna(), "table"]) <= {"table5"}


@pytest.mark.parametrize("paper", PAPERS)
def test_models_have_our_names(paper: str) -> None:
    plain = {re.sub(SIZE_OR_VARIANT, "", model) for model in PAPERS[paper].numbers["model"]}
    assert plain - OF_THE_PAPERS <= set(ATTENTIONS)


def test_a_number_is_found_by_its_place() -> None:
    assert PAPERS["rpc"].printed["table2", "pgd", "top1", "rpc 2 all"] == 6.12
    assert PAPERS["primal"].printed["table7a", "ImageNet", "memory_gb", "primal_plus"] == 14.0
    assert PAPERS["tost"].printed["table4", "length 8k", "relative_memory", "tssa"] == 0.24
    lines = (PAPERS["tost"].folder / "numbers.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "table2,model,tssa tiny,parameters_m,5.8,"


@pytest.mark.parametrize(("paper", "table"), AVERAGES)
def test_rows_average_to_what_is_printed(paper: str, table: str) -> None:
    found = PAPERS[paper].numbers
    metric = found.loc[(found["table"] == table) & (found["row"] == "average"), "metric"].iloc[0]
    rows = wide(paper, table, metric)
    means, printed = rows.drop("average").mean().to_dict(), rows.loc["average"].to_dict()
    rounding = 0.01 if paper == "tost" else 0.05  # of two decimals that paper cuts off the rest
    odd = {model for model in means if abs(means[model] - printed[model]) > rounding + 1e-9}
    known = {model: both for (*place, model), both in ODD_AVERAGES.items() if place == [paper, table]}
    assert odd == set(known)
    for model, both in known.items():
        assert (printed[model], means[model]) == pytest.approx(both, abs=1e-6)


def test_spreads_of_rewards_average_but_cosformer_s() -> None:
    found = PAPERS["primal"].numbers.query("table == 'table5'").pivot(index="row", columns="model", values="spread")
    apart = found.drop("average").mean() - found.loc["average"]
    assert apart.drop("cosformer").abs().max() <= 0.05
    assert (found.loc["average", "cosformer"], found["cosformer"].drop("average").mean()) == (
        7.6,
        pytest.approx(6.678, abs=1e-3),
    )


def test_primal_s_tables_agree_with_each_other() -> None:
    """Table 9's best is Table 1's Primal., Tables 8 and 11 repeat Tables 3 and 1, Table 6 has Table 5's averages."""
    accuracy, lra = wide("primal", "table1", "top1"), wide("primal", "table3", "top1")
    grid = PAPERS["primal"].numbers.query("table == 'table9'")
    best = grid.groupby(grid["row"].str.split(" ").str[0])["value"].max()
    assert best.to_dict() == accuracy["primal"].drop("average").to_dict()
    for model in ("primal", "primal_plus"):
        assert wide("primal", "table8", "top1")[model].to_dict() == lra[model].to_dict()
    assert wide("primal", "table11", "top1")["primal_plus"].to_dict() == accuracy["primal_plus"].to_dict()
    rewards = wide("primal", "table5", "reward").loc["average"]
    assert (
        wide("primal", "table6", "reward").loc["average"].to_dict()
        == rewards[["flowformer", "primal_plus", "softmax"]].to_dict()
    )
    first, second = (wide("primal", table, "top1").loc["ImageNet-100"] for table in ("v1_table5", "table7a"))
    assert first.to_dict() == second.to_dict()


def test_primal_s_table_12_is_table_3_in_another_order() -> None:
    under, lra = wide("primal", "table12", "top1")["primal_plus"], wide("primal", "table3", "top1")["primal_plus"]
    printed = ["ListOps", "Text", "Retrieval", "Image", "Pathfinder"]
    meant = ["ListOps", "Image", "Pathfinder", "Retrieval", "Text"]
    assert under[printed].tolist() == lra[meant].tolist() != lra[printed].tolist()


def test_primal_s_table_10_is_not_table_5() -> None:
    over_s = PAPERS["primal"].numbers.query("table == 'table10'")
    best = over_s.groupby(over_s["row"].str.replace(r" s=\d+$", "", regex=True))["value"].max()
    rewards = wide("primal", "table5", "reward")["primal_plus"].drop("average")
    assert len(best) == 9
    assert not (best == rewards[best.index]).any()


def test_what_the_primal_paper_says_of_its_numbers() -> None:
    series, lra, rewards = (
        wide("primal", table, metric).loc["average"]
        for table, metric in (("table1", "top1"), ("table3", "top1"), ("table5", "reward"))
    )
    assert series["primal_plus"] - series["softmax"] == pytest.approx(1.2)
    assert lra["primal_plus"] - lra["softmax"] == pytest.approx(1.6)
    assert lra["primal_plus"] - lra["yoso_e"] == pytest.approx(1.2)
    assert rewards["primal_plus"] - rewards["softmax"] == pytest.approx(5.3)
    assert rewards["primal_plus"] - rewards["flowformer"] == pytest.approx(4.0)
    perplexity = wide("primal", "table7b", "perplexity").loc["WikiText-103"]
    assert perplexity["softmax"] - perplexity["primal_plus"] == pytest.approx(2.0)
    assert series["primal"] == 73.0, "B.2 says 73.1"


def test_rpc_s_table_4_averages_to_table_1() -> None:
    assert set(wide("rpc", "table4", "top1").index) == set(CORRUPTIONS)
    for metric in ("top1", "mce"):
        stated = wide("rpc", "table1", metric).loc["IN-C", RPC]
        apart = wide("rpc", "table4", metric).mean()[RPC] - stated
        odd = {"symmetric": 0.014, "rpc 2 all": 0.01533} if metric == "mce" else {}
        assert apart[list(odd)].to_dict() == pytest.approx(odd, abs=1e-4)
        assert apart.drop(list(odd)).abs().max() <= 0.0055


def test_rpc_s_corruption_errors_are_alexnet_s() -> None:
    """CE = error / AlexNet's error for 72 of 75 pairs; three that the paper prints do not fit."""
    odd = {("contrast", "symmetric"), ("brightness", "rpc 2 all"), ("motion_blur", "rpc 2 all")}
    right, printed = wide("rpc", "table4", "top1"), wide("rpc", "table4", "mce")
    for name in CORRUPTIONS:
        for model in RPC:
            expected = 100 * (100 - right[model][name]) / alexnet_errors()[name]
            fits = printed[model][name] == pytest.approx(expected, abs=0.012)
            assert fits == ((name, model) not in odd), (name, model)


def test_what_the_rpc_paper_says_of_its_numbers() -> None:
    """And where its words say more than its numbers."""
    clean, ood = wide("rpc", "table1", "top1").loc["IN-1K"], wide("rpc", "table1", "aupr").loc["IN-O"]
    assert clean["rpc 6"] - clean["symmetric"] == pytest.approx(1.05)
    assert ood["rpc 6"] - ood["symmetric"] == pytest.approx(2.86)
    fan = wide("rpc", "table10", "top1")
    assert (fan["RPC-FAN-tiny"] - fan["FAN-tiny"]).to_dict() == pytest.approx({"pgd": 3.33, "fgsm": 3.11})
    for metric in ("perplexity", "swapped_perplexity"):
        found = wide("rpc", "table3", metric)
        gains = (found["symmetric"] - found["rpc"]).to_dict()
        short = {place for place, gain in gains.items() if gain < 1}
        assert short == ({"WikiText-103 validation"} if metric == "perplexity" else set())
    types = wide("rpc", "table4", "top1")
    assert set(types.index[types["rpc 6"] < types["symmetric"]]) == {"contrast", "zoom_blur"}
    below = {
        (table, metric, row)
        for table, metric in (
            ("table1", "top1"), ("table1", "top5"), ("table2", "top1"), ("table2", "top5"),
            ("table6", "mean_accuracy"), ("table6", "mean_iou"),
        )
        for row, found in wide("rpc", table, metric).iterrows()
        if (found.drop("symmetric") < found["symmetric"]).any()
    }  # fmt: skip
    assert below == {
        ("table1", "top5", "IN-1K"),
        ("table2", "top1", "sld"),
        ("table6", "mean_accuracy", "ADE20K"),
        ("table6", "mean_iou", "ADE20K"),
    }


def test_tost_s_sizes_agree() -> None:
    """Tables 2 and 5, and Tables 4 and 6, print the same parameters; heads of its width make the layer's."""
    sizes = {f"table{number}": wide("tost", f"table{number}", "parameters_m").loc["model"] for number in (2, 4, 5, 6)}
    assert sizes["table2"].to_dict() == sizes["table5"].to_dict()
    assert sizes["table4"].drop("softmax").to_dict() == sizes["table6"].to_dict()
    for table in ("table5", "table6"):
        heads, width, dim = (wide("tost", table, metric).loc["model"] for metric in ("heads", "head_dim", "dim"))
        assert (heads * width).to_dict() == dim.to_dict()


def test_what_the_tost_paper_says_of_its_numbers() -> None:
    """On average, it is above the other transformers on Long-Range Arena; its larger models gain."""
    lra = wide("tost", "table3", "top1").loc["average"].drop("s4")
    assert lra.idxmax() == "tssa"
    loss = wide("tost", "table4", "loss").loc["average"]
    assert loss[["tssa", "tssa medium", "tssa large"]].is_monotonic_decreasing
    assert wide("tost", "table8", "top1").loc["CIFAR10"].idxmax() == "tssa"
