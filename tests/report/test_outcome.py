"""Results and comparisons of runs with chosen accuracies: numbers by hand, bold only where it is earned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from report.runs import one_group, write_accuracy, write_all

from kattn_cli.report.groups import groups_of
from kattn_cli.report.results import compared_part, comparisons, main_quantities, pairs, results_part
from kattn_cli.runs.bits import packed
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.statistics.crossed import crossed
from kattn_cli.statistics.two_way import compare
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
    table = the_table(results_part(one_group(tmp_path, CLEAR)))
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
    table = the_table(results_part(one_group(tmp_path / "near", near)))
    assert not table.bold
    assert "so none is bold" in table.caption
    two = {name: values[:2] for name, values in CLEAR.items()}
    assert not the_table(results_part(one_group(tmp_path / "two", two))).bold


def test_comparisons_by_hand(tmp_path: Path) -> None:
    group = one_group(tmp_path, CLEAR)
    table = the_table(compared_part(group, comparisons(group)))
    assert [row[:3] for row in table.rows] == [["primal", "softmax", "clean"], ["tssa", "softmax", "clean"]]
    assert [row[3] for row in table.rows] == ["−9.88", "+10.12"]
    assert [row[5] for row in table.rows] == ["1 point", "1 point"]
    assert [row[-2:] for row in table.rows] == [["worse", ""], ["better", ""]]
    values = {label.removeprefix("a/"): dict(enumerate(part)) for label, part in CLEAR.items()}
    effects = compare(values, [("primal", "softmax"), ("tssa", "softmax")])
    assert table.data is not None
    assert table.data["low"].tolist() == pytest.approx([effect.interval()[0] for effect in effects])
    assert (table.data["p_apart_holm"] >= [effect.p_apart() for effect in effects]).all()


def test_what_is_within_the_margin_is_equivalent_and_what_is_not_told_says_what_it_takes(tmp_path: Path) -> None:
    near = {"a/softmax": (80.0, 81.0, 79.0, 80.0), "a/tssa": (80.1, 81.2, 79.1, 80.0)}
    table = the_table(compared_part(group := one_group(tmp_path / "near", near), comparisons(group)))
    assert table.rows[0][-2:] == ["equivalent within the margin", ""]
    wide = {"a/softmax": (80.0, 81.0, 79.0, 80.0), "a/tssa": (84.0, 78.0, 83.0, 79.0)}
    table = the_table(compared_part(group := one_group(tmp_path / "wide", wide), comparisons(group)))
    assert table.rows[0][-2] == "undecided"
    assert "could have been seen (power 0.8); one of 1 takes " in table.rows[0][-1]


def test_image_by_image_where_both_say_which_were_right(tmp_path: Path) -> None:
    """80 of 100 images right at every seed of one, the same and ten others of the other: no spread of seeds alone."""
    runs = []
    for name, count in (("softmax", 80), ("tssa", 90)):
        for seed in range(3):
            right = np.arange(100) < count
            right[seed] = False
            run = write_accuracy(tmp_path, f"a/{name}", seed, float(right.sum()))
            row = {"split": "test", "severity": 0, "images": 100, "top1": float(right.sum()), "top5": 99.0}
            write_rows(run.folder / "eval.csv", [{**row, "correct": packed(right)}])
            runs.append(run)
    (group,) = groups_of(runs)
    (found,) = comparisons(group)
    assert (found.effect.estimate, found.effect.images, found.effect.seeds) == (10, 100, 3)
    assert found.effect.model == crossed(group.right["clean"]["tssa"], group.right["clean"]["softmax"]).model


def test_the_plain_words_where_seeds_are_too_few(tmp_path: Path) -> None:
    one = one_group(tmp_path / "one", {"a/softmax": (80.0,), "a/tssa": (90.0,)})
    part = compared_part(one, comparisons(one))
    assert part.blocks[0] == "1 seed is too few to tell two mechanisms apart; it takes three."
    assert the_table(part).rows[0][3:9] == ["+10.00", "", "1 point", "", "1", "undecided"]


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
    assert str(compared_part(many, []).blocks[0]).startswith("No softmax attention is among them")


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
