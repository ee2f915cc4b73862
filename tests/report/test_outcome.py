"""Results and paired tests of runs with chosen accuracies: numbers by hand, bold only where it is earned."""

from __future__ import annotations

from pathlib import Path

import pytest
from report.runs import one_group, write_accuracy, write_all
from scipy import stats

from kattn_cli.report.groups import groups_of
from kattn_cli.report.results import comparisons, main_quantities, paired_part, pairs, results_part
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.tables.text import Table

CLEAR = {
    "a/softmax": (80.0, 81.0, 79.0, 80.0),
    "a/primal": (70.0, 71.5, 69.0, 70.0),
    "a/tssa": (90.0, 91.0, 89.5, 90.0),
}


def the_table(part: object) -> Table:
    (table,) = (block for block in part.blocks if isinstance(block, Table))  # type: ignore[attr-defined]
    return table


def test_results_have_mean_and_half_interval_and_the_clear_best_is_bold(tmp_path: Path) -> None:
    table = the_table(results_part(one_group(tmp_path, CLEAR), "t"))
    assert list(table.columns) == ["", "clean", "seeds"]
    assert table.rows == [
        ["softmax", "80.0 ± 1.3", "4"],
        ["primal", "70.1 ± 1.6", "4"],
        ["tssa", "90.1 ± 1.0", "4"],
    ]
    assert set(table.bold) == {(2, 1)}
    assert table.data is not None
    assert table.data["mean"].tolist() == pytest.approx([80, 70.125, 90.125])


def test_nothing_is_bold_where_the_best_is_not_apart_from_every_other(tmp_path: Path) -> None:
    near = {**CLEAR, "a/xca": (90.5, 90.0, 90.0, 89.0)}
    table = the_table(results_part(one_group(tmp_path / "near", near), "t"))
    assert not table.bold
    assert "so none is bold" in table.caption
    two = {name: values[:2] for name, values in CLEAR.items()}
    assert not the_table(results_part(one_group(tmp_path / "two", two), "t")).bold
    assert not the_table(results_part(one_group(tmp_path / "floor", CLEAR), "wilcoxon")).bold


def test_paired_tests_by_hand(tmp_path: Path) -> None:
    group = one_group(tmp_path, CLEAR)
    found = comparisons(group, "t")
    table = the_table(paired_part(group, found, "t"))
    assert [row[:3] for row in table.rows] == [["primal", "softmax", "clean"], ["tssa", "softmax", "clean"]]
    assert [row[3] for row in table.rows] == ["−9.88", "+10.12"]
    assert [row[-1] for row in table.rows] == ["worse", "better"]
    raw = [stats.ttest_rel(CLEAR[f"a/{one}"], CLEAR["a/softmax"]).pvalue for one in ("primal", "tssa")]
    assert table.data is not None
    assert table.data["p_t"].tolist() == pytest.approx(raw)
    assert table.data["p_t_holm"].tolist() == pytest.approx([max(2 * min(raw), one) for one in raw])
    assert table.data["p_wilcoxon"].tolist() == [0.125, 0.125]
    assert table.data["p_wilcoxon_holm"].tolist() == [0.25, 0.25]


def test_the_plain_words_where_seeds_are_too_few(tmp_path: Path) -> None:
    five = {name: (*values, values[0] + 0.3) for name, values in CLEAR.items() if name != "a/tssa"}
    group = one_group(tmp_path / "five", five)
    blocks = paired_part(group, comparisons(group, "wilcoxon"), "wilcoxon").blocks
    assert blocks[0] == "Too few seeds to tell: Wilcoxon on 5 seeds cannot go below p = 0.0625."
    assert [row[-1] for row in the_table(paired_part(group, comparisons(group, "wilcoxon"), "wilcoxon")).rows] == [
        "too few seeds to tell"
    ]
    by_t = paired_part(group, comparisons(group, "t"), "t").blocks
    assert str(by_t[-1]).startswith("Wilcoxon on 5 seeds cannot go below p = 0.0625")
    one = one_group(tmp_path / "one", {"a/softmax": (80.0,), "a/tssa": (90.0,)})
    part = paired_part(one, comparisons(one, "t"), "t")
    assert part.blocks[0] == "1 seed is too few to tell two mechanisms apart; it takes three."
    assert the_table(part).rows[0][3:] == ["+10.00", "", "", "1.000", "1", "too few seeds to tell"]


def test_rpc_is_compared_with_symmetric_attention_and_others_with_softmax(tmp_path: Path) -> None:
    group = one_group(tmp_path, {f"a/{one}": (80.0,) for one in ("rpc", "primal", "softmax", "symmetric")})
    assert pairs(group) == [("symmetric", "softmax"), ("primal", "softmax"), ("rpc", "symmetric")]


def test_a_baseline_with_the_same_overrides_goes_first(tmp_path: Path) -> None:
    runs = []
    for name in ("softmax", "tssa"):
        for lr in ("0.1", "0.2"):
            runs.append(write_accuracy(tmp_path / lr, f"a/{name}", 0, 80.0, overrides=[f"train.lr={lr}"]))
    (group,) = groups_of(runs)
    assert pairs(group) == [
        ("tssa train.lr=0.1", "softmax train.lr=0.1"),
        ("tssa train.lr=0.2", "softmax train.lr=0.2"),
    ]


def test_without_a_baseline_a_few_are_each_compared_with_each(tmp_path: Path) -> None:
    names = ("tost", "xcit", "crate")
    assert pairs(one_group(tmp_path, {f"a/{one}": (80.0,) for one in names})) == [
        ("tost", "crate"),
        ("xcit", "crate"),
        ("xcit", "tost"),
    ]
    many = one_group(tmp_path / "many", {f"a/m{one}": (80.0,) for one in range(6)})
    assert pairs(many) == []
    assert str(paired_part(many, [], "t").blocks[0]).startswith("No softmax attention is among them")


def test_the_main_attack_is_pgd_at_the_greatest_epsilon_that_leaves_something(tmp_path: Path) -> None:
    group = one_group(tmp_path, {"a/softmax": (80.0,)})
    attack = {"norm": "linf", "epsilon_units": "pixels in [0, 1]", "steps": 20, "restarts": 1, "images": 200}
    rows = [
        {**attack, "attack": name, "epsilon": epsilon / 255, "clean_top1": 80.0, "top1": top1, "seed": 0}
        for name, epsilon, top1 in (("fgsm", 8, 40.0), ("pgd", 4, 60.0), ("pgd", 8, 20.0), ("pgd", 64, 1.0))
    ]
    write_rows(group.runs[0].folder / "attacks.csv", rows)
    assert main_quantities(group) == ["clean", "pgd 8/255"]


def test_groups_are_folders_and_data_sets(tmp_path: Path) -> None:
    runs = write_all(tmp_path, {"a/softmax": (80.0,), "lra/b/softmax": (70.0,)})
    series = {"data": {"name": "uea", "set": "Heartbeat"}}
    runs.append(write_accuracy(tmp_path, "a/tssa", 0, 60.0, recipe=series))
    runs.append(write_accuracy(tmp_path, "digits/tssa", 0, 60.0))
    assert [(group.name, group.slug) for group in groups_of(runs)] == [
        ("a: Heartbeat", "a-heartbeat"),
        ("a: digits", "a-digits"),
        ("digits", "digits"),
        ("lra/b: digits", "lra-b-digits"),
    ]
