"""Settings, cost, provenance, the top of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report.runs import one_group, write_accuracy

from kattn_cli.papers import PAPERS
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.verdict import findings, tally
from kattn_cli.report.cost import Flops, cost_part
from kattn_cli.report.groups import groups_of
from kattn_cli.report.page import Part
from kattn_cli.report.papers import claims_of, paper_part
from kattn_cli.report.provenance import provenance_part
from kattn_cli.report.results import comparisons
from kattn_cli.report.settings import settings_part
from kattn_cli.report.summary import came_out, introduction
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.tables.text import Table


def tables_of(part: Part) -> list[Table]:
    return [block for block in part.blocks if isinstance(block, Table)]


def sentences(part: Part) -> str:
    return "\n".join(block for block in part.blocks if isinstance(block, str))


def test_settings_once_and_what_differs(tmp_path: Path) -> None:
    layered = {"name": "rpc", "iterations": 4, "layers": {"1:": {"name": "symmetric", "qkv_bias": True}}}
    rpc = write_accuracy(tmp_path, "a/rpc", 0, 80.0, recipe={"attention": layered, "train": {"lr": 0.1}})
    (group,) = groups_of([write_accuracy(tmp_path, "a/softmax", 0, 80.0), rpc])
    differing, shared = tables_of(settings_part(group))
    assert list(differing.columns) == ["", "attention", "train.lr"]
    assert differing.rows == [
        ["softmax", "softmax", "0.001"],
        ["rpc", "rpc (iterations 4); layers 1: → symmetric (qkv_bias yes)", "0.1"],
    ]
    assert shared.rows == [["data.name", "digits"], ["data.image_size", "none"]]


def test_cost_means_over_seeds_and_says_what_was_not_counted(tmp_path: Path) -> None:
    group = one_group(tmp_path, {"a/softmax": (80.0, 81.0), "a/tssa": (70.0,)}, train_seconds=3.0)
    for run, speed in zip(group.by_label["softmax"], (100.0, 300.0), strict=True):
        rows = [
            {"epoch": epoch, "step": epoch, "split": "train", "loss": 1.0, "images_per_second": speed}
            for epoch in range(3)
        ]
        write_rows(
            run.folder / "metrics.csv",
            [*rows, {**rows[0], "epoch": 3, "split": "validation", "images_per_second": 9.0}],
        )
    group.by_label["softmax"][1].manifest["peak_memory_mib"] = 50.5
    part = cost_part(group, {"softmax": Flops(2_500_000.0), "tssa": Flops(why_not="no data")})
    (table,) = tables_of(part)
    assert list(table.columns) == [
        "", "parameters", "forward MFLOP a sample", "training (s)", "peak memory (MiB)", "training images/s",
    ]  # fmt: skip
    assert table.rows == [["softmax", "1,000", "2.5", "3", "50.5", "200"], ["tssa", "1,000", "", "3", "", ""]]
    assert sentences(part) == "Operations not counted of tssa: no data"
    assert table.data is not None
    assert table.data["forward_flops_per_sample"][0] == 2_500_000


def test_provenance_flags_dirty_trees_and_several_commits(tmp_path: Path) -> None:
    runs = [write_accuracy(tmp_path, "a/softmax", seed, 80.0) for seed in (0, 1)]
    facts: dict[str, Any] = {"commit": "b" * 40, "dirty": True, "versions": {"kattn": "0.2.0"}, "device": "cuda"}
    (group,) = groups_of([*runs, write_accuracy(tmp_path, "a/tssa", 0, 70.0, **facts)])
    part = provenance_part(group)
    assert "**Dirty:** changes that were not committed are in what ran for tssa." in part.blocks
    assert "**Several commits** trained these runs: aaaaaaaa, bbbbbbbb." in part.blocks
    assert part.blocks[-1] == "1. `kattn train a/softmax`\n2. `kattn train a/tssa`"
    (table,) = tables_of(part)
    assert table.rows[0] == [
        "softmax", "0 and 1", "aaaaaaaa", "no", "kattn 0.1.0", "", "2026-01-01 08:00 … 2026-01-02 09:00", "1",
    ]  # fmt: skip
    assert table.rows[1][2:6] == ["bbbbbbbb", "yes", "kattn 0.2.0", "cuda: machine unknown"]


def test_the_top_of_the_page(tmp_path: Path) -> None:
    group = one_group(tmp_path, {"a/softmax": (80.0, 81.0, 79.0), "a/tssa": (90.0, 91.0, 89.5)})
    (paragraph,) = introduction(group.runs, [group], "kattn report a_b", [])
    assert paragraph.startswith("6 runs of 2 mechanisms, seeds 0 to 2, on digits. Code: 1 commit (aaaaaaaa).")
    assert "The newest measurement ended on 2026-01-03 09:00 UTC. Made by `kattn report a_b`." in paragraph
    found = {group.slug: comparisons(group)}
    part = came_out([group], found, {"ToST": "holds 2."})
    assert part.blocks == [
        "- **a: digits:** tssa (+10.17, p < 0.001) better than softmax in clean.\n"
        "- **Claims of the ToST paper:** holds 2."
    ]
    (_, left_out) = introduction(group.runs, [group], "kattn report", ["results/x/0 (failed)"])
    assert left_out == "**Left out:** results/x/0 (failed)."


def test_what_came_out_where_nothing_did(tmp_path: Path) -> None:
    group = one_group(tmp_path, {"a/softmax": (80.0, 81.0, 79.0), "a/tssa": (81.0, 79.0, 80.0)})
    part = came_out([group], {group.slug: comparisons(group)}, {})
    assert part.blocks == ["- **a: digits:** all of 1 comparison undecided."]


def test_a_claim_s_tables_have_verdict_rule_and_command_and_facts_stand_apart(tmp_path: Path) -> None:
    found = findings(Evidence.of([], []))
    own = claims_of(found, PAPERS["tost"])
    assert set(own["paper"]) == {PAPERS["tost"].title}
    assert tally(own) == f"not measured {len(own.drop_duplicates(['claim', 'where']))}."
    numbers = {"label": "tssa", "mean": -1.5, "low": -2.0, "high": -1.0, "seeds": 3, "p_holm": 0.01}
    told = own.iloc[:1].assign(verdict="worse", reason="Worse: p = 0.01.", **numbers)
    fact = own.iloc[1:2].assign(verdict="true", **numbers)
    part = paper_part(PAPERS["tost"], [], pd.concat([told, fact, own.iloc[2:]]))
    judged, by_label, facts = tables_of(part.parts[-1])
    assert judged.rows[0][1] == "worse"
    assert judged.rows[0][-3:] == [own["class"].iloc[0], own["criterion"].iloc[0], own["command"].iloc[0]]
    assert by_label.rows[0][1:3] == ["tssa", "−1.5 [−2, −1]"]
    assert by_label.rows[0][4:8] == ["0.010", "3", "worse", "Worse: p = 0.01."]
    assert (facts.rows[0][0], facts.rows[0][4]) == (own["claim"].iloc[1], "true")
    assert [len(judged.rows), len(by_label.rows), len(facts.rows)] == [1, 1, 1]
    assert sentences(part.parts[-1]).startswith(
        f"**Worse 1, not measured {len(own) - 2}. Facts: true 1.** A comparison is"
    )


@pytest.mark.parametrize("missing", ["eval.csv", "recipe.yaml"])
def test_a_run_without_a_table_or_recipe_has_a_group(tmp_path: Path, missing: str) -> None:
    run = write_accuracy(tmp_path, "a/softmax", 0, 80.0)
    (run.folder / missing).unlink()
    (group,) = groups_of([run])
    assert group.labels == ["softmax"]
    assert bool(group.measured) == (missing == "recipe.yaml")
    assert tables_of(settings_part(group)) == [] or missing == "eval.csv"
