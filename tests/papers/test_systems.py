"""The papers' tables of their other systems, ours beside them: acting, segmentation, FAN, mixtures of experts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from papers.laid import laid, sections_of

from kattn_cli.papers import PAPERS
from kattn_cli.papers.described import sequence_run
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.verdict import findings
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run, create_run
from kattn_cli.tables.summary import summary

PRIMAL_PLUS: dict[str, Any] = {"name": "softmax", "layers": {-1: {"name": "primal", "s": 64, "eta": 0.05}}}
RPC_FIRST: dict[str, Any] = {"name": "rpc", "iterations": 4, "layers": {"1:": {"name": "symmetric"}}}
HOPPER: dict[str, Any] = {"name": "d4rl", "environment": "hopper", "level": "medium_replay", "context": 20}
CANVASES: dict[str, Any] = {"name": "fashion_canvases", "image_size": 64, "classes": 11}
SEGMENTER: dict[str, Any] = {"name": "segmenter", "depth": 4, "dim": 96}
FAN: dict[str, Any] = {"name": "fan", "depth": 4, "dim": 64, "feed_forward": "channel"}


def made(
    results: Path,
    name: str,
    seed: int,
    attention: Mapping[str, Any],
    data: Mapping[str, Any],
    model: Mapping[str, Any],
    **tables: list[dict[str, Any]],
) -> Run:
    recipe = {"name": name, "data": data, "model": model, "attention": {"layers": {}, **attention}}
    facts: dict[str, Any] = {
        "status": "finished",
        "start": "2026",
        "mechanism": name.rpartition("/")[2],
        "device": "cpu",
    }
    facts |= {"peak_memory_mib": 512 + wobble(name.rpartition("/")[2], seed), "best_epoch": 1}
    run = create_run(results, name, seed, yaml.safe_dump({**recipe, "train": {"epochs": 2}}), facts)
    for table, rows in tables.items():
        write_rows(run.folder / f"{table}.csv", rows)
    return run


def acting(results: Path, name: str, seed: int, attention: Mapping[str, Any], score: float, seconds: float) -> Run:
    """Two episodes for each of two returns, of which the greater counts; and those of weights before."""
    shared = {"environment": "Hopper-v5", "checkpoint": "best", "seed": 0, "length": 100}
    rollouts = [
        {**shared, "weights": "old", "target_return": 3600, "episode": 0, "return": 0.0, "normalised_score": 99.0},
        *(
            {
                **shared,
                "weights": "new",
                "target_return": target,
                "episode": episode,
                "return": 10.0 * target * (1 + episode),
                "normalised_score": score + part + episode,
            }
            for target, part in ((3600, -0.5), (1800, -40.0))
            for episode in range(2)
        ),
    ]
    spent = [
        {"epoch": epoch, "step": 100 * epoch, "split": split, "loss": 0.1, "seconds": seconds * epoch}
        for epoch in (1, 2)
        for split in ("train", "validation")
    ]
    model = {"name": "decision_transformer", "depth": 3, "dim": 64}
    return made(results, f"control/{name}", seed, attention, HOPPER, model, rollouts=rollouts, metrics=spent)


def wobble(name: str, seed: int) -> float:
    """A little of each seed's own, 0 on average of three, for what is compared: equal gains tell nothing."""
    return 0.0 if name in ("softmax", "symmetric") else (seed - 1) / 100


@pytest.fixture
def hopper(tmp_path: Path) -> list[Run]:
    return [
        acting(tmp_path, name, seed, attention, *(one + wobble(name, seed) for one in (score + seed, seconds)))
        for name, attention, score, seconds in (
            ("softmax", {"name": "softmax"}, 70.0, 2.0),
            ("primal_plus", PRIMAL_PLUS, 75.0, 2.2),
            ("tssa", {"name": "tssa"}, 60.0, 1.0),
        )
        for seed in range(3)
    ]


def cells(table: pd.DataFrame, number: str, metric: str, column: str) -> dict[str, float]:
    rows = table[(table["table"] == number) & (table["metric"] == metric)]
    return {label.rpartition("/")[2]: value for label, value in zip(rows["label"], rows[column], strict=True)}


def test_scores_of_the_greatest_return_beside_table_5(hopper: list[Run]) -> None:
    table = laid(hopper, "primal")
    means = cells(table, "table5", "reward", "mean")
    assert means == pytest.approx({"softmax": 71, "primal_plus": 76, "tssa": 61})
    paper = cells(table, "table5", "reward", "paper")
    assert (paper["softmax"], paper["primal_plus"]) == (79.7, 88.5)
    assert cells(table, "table5", "reward", "verdict")["primal_plus"] == "better"
    assert set(table[table["table"] == "table5"]["row"]) == {"Medium-Replay Hopper"}
    assert "3 × 64 (the paper: 3 × 256)" in table["differs"].iloc[0]
    assert any("Table 5: offline reinforcement learning" in one.title for one in sections_of(table, "primal"))


def test_time_and_memory_beside_table_6_and_s_beside_table_10(hopper: list[Run]) -> None:
    table = laid(hopper, "primal")
    times = cells(table, "table6", "seconds_per_1k_steps", "mean")
    assert times == pytest.approx({"softmax": 20, "primal_plus": 22, "tssa": 10})
    assert cells(table, "table6", "seconds_per_1k_steps", "paper")["primal_plus"] == 23.3
    assert cells(table, "table6", "memory_gb", "mean")["softmax"] == 0.5
    grid = table[table["table"] == "table10"]
    assert grid["row"].tolist() == ["Medium-Replay Hopper s=64"]
    assert grid["paper"].tolist() == [91.7]


def test_what_is_claimed_of_acting_is_judged(hopper: list[Run]) -> None:
    judged = findings(Evidence(hopper), [PAPERS["primal"]])
    told = judged[judged["claim"].str.contains("Primal.\\+DT")].set_index("claim")
    assert told.loc["Primal.+DT gets a higher reward than Decision Transformer.", "verdict"] == "better"
    assert told.loc["Primal.+DT takes about the time that Decision Transformer takes.", "verdict"] == "no bound stated"
    assert (
        told.loc["Primal.+DT takes about the memory that Decision Transformer takes.", "verdict"] == "no bound stated"
    )


def test_returns_are_compared(hopper: list[Run]) -> None:
    table = summary(hopper).set_index(["label", "quantity"])["mean"]
    assert table["softmax", "normalised score"] == pytest.approx(71)
    assert table["softmax", "return asked for 1,800"] == pytest.approx(10 * 1800 * 1.5)


def segmenting(results: Path, name: str, seed: int, attention: Mapping[str, Any], iou: float, worse: float) -> Run:
    shared = {"split": "test", "images": 50, "checkpoint": "best", "weights": "w", "pixel_accuracy": 90.0}
    unmade = {"corruption": "", "severity": 0, "parameters": "", "seed": ""}
    clean = {**shared, **unmade, "mean_accuracy": iou + 5, "mean_iou": iou}
    made_as = {"parameters": "imagenet-c", "seed": 0}
    corrupted = [
        {
            **shared,
            **made_as,
            "corruption": f"kind {kind}",
            "severity": severity,
            "mean_accuracy": 9.0,
            "mean_iou": worse,
        }
        for kind in range(15)
        for severity in range(1, 6)
    ]
    name = f"segmentation/{name}"
    quick = [{**row, "images": 10, "mean_iou": 99.0, "mean_accuracy": 99.0} for row in (clean, *corrupted)]
    return made(results, name, seed, attention, CANVASES, SEGMENTER, segmentation=[*quick, clean, *corrupted])


@pytest.fixture
def canvases(tmp_path: Path) -> list[Run]:
    return [
        segmenting(tmp_path, name, seed, attention, *(one + seed + wobble(name, seed) for one in (iou, worse)))
        for name, attention, iou, worse in (
            ("symmetric", {"name": "symmetric"}, 40.0, 20.0),
            ("rpc", RPC_FIRST, 41.0, 18.0),
        )
        for seed in range(3)
    ]


def test_segmentation_beside_table_6(canvases: list[Run]) -> None:
    table = laid(canvases, "rpc")
    chosen = table[(table["metric"] == "mean_iou") & table["label"].str.endswith("rpc")].set_index("row")
    assert chosen["mean"].to_dict() == pytest.approx({"ADE20K": 42, "corrupted ADE20K": 19})
    assert chosen["paper"].to_dict() == {"ADE20K": 34.69, "corrupted ADE20K": 11.47}
    assert chosen["verdict"].to_dict() == {"ADE20K": "better", "corrupted ADE20K": "worse"}
    assert set(table["table"]) == {"table6"}
    assert len(sections_of(table, "rpc")) == 1


def test_what_is_claimed_of_segmentation_is_judged(canvases: list[Run]) -> None:
    judged = findings(Evidence(canvases), [PAPERS["rpc"]]).set_index("claim")["verdict"]
    told = "Segmenter with RPC-Attention has a higher mean IoU than with symmetric attention on"
    assert (judged[f"{told} clean images."], judged[f"{told} corrupted images."]) == ("better", "worse")


def test_of_some_corruptions_no_mean_is_given(tmp_path: Path) -> None:
    run = segmenting(tmp_path, "rpc", 0, RPC_FIRST, 40.0, 20.0)
    rows = pd.read_csv(run.folder / "segmentation.csv")[:-1]
    rows.to_csv(run.folder / "segmentation.csv", index=False)
    assert set(summary([run])["quantity"]) == {"mean IoU"}


def test_fan_stands_in_its_own_tables(tmp_path: Path) -> None:
    clean = {"split": "test", "severity": 0, "images": 100, "top1": 80.0, "top5": 99.0}
    runs = [
        made(tmp_path, f"fan/{name}", 0, attention, {"name": "fashion_mnist"}, FAN, eval=[clean])
        for name, attention in (("symmetric", {"name": "symmetric"}), ("rpc", RPC_FIRST))
    ]
    table = laid(runs, "rpc")
    top1 = table[table["metric"] == "top1"].set_index("label")
    assert set(table["table"]) == {"table9"}
    assert top1["model"].to_dict() == {"symmetric": "FAN-tiny", "rpc": "RPC-FAN-tiny"}
    assert top1["paper"].to_dict() == {"symmetric": 77.89, "rpc": 77.98}


def test_fan_is_judged_by_claims_of_its_own(tmp_path: Path) -> None:
    runs = [
        made(
            tmp_path,
            f"fan/{name}",
            seed,
            attention,
            {"name": "fashion_mnist"},
            FAN,
            eval=[
                {"split": "test", "severity": 0, "images": 100, "top1": top1 + seed + wobble(name, seed), "top5": 99.0}
            ],
        )
        for name, attention, top1 in (("symmetric", {"name": "symmetric"}, 80.0), ("rpc", RPC_FIRST, 82.0))
        for seed in range(3)
    ]
    judged = findings(Evidence(runs), [PAPERS["rpc"]]).set_index("claim")["verdict"]
    fan = "FAN with RPC-Attention in its first layer is more accurate than with symmetric attention."
    plain = "RPC-Attention is more accurate than symmetric attention on clean images."
    assert (judged[fan], judged[plain]) == ("better", "not measured")


def test_a_mixture_of_experts_says_so(tmp_path: Path) -> None:
    model = {"name": "decoder", "depth": 2, "dim": 32, "experts": {"count": 8, "top": 2}}
    data = {"name": "sst2", "seq_len": 64, "vocabulary_from": "somewhere"}
    run = made(tmp_path, "sentences/moe/symmetric", 0, {"name": "symmetric"}, data, model)
    assert sequence_run(run).setting() == "sst2 (up to 64 tokens, 2 × 32, 8 experts, 2 a token)"
