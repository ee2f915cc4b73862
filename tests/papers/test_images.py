"""The papers' tables of images: ours laid beside them, and what was run in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from papers.laid import laid, markdown

from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run, create_run
from kattn_cli.statistics.two_way import compare

SYMMETRIC_ABOVE = {"1:": {"name": "symmetric"}}
SOFTMAX_ABOVE = {"1:": {"name": "softmax"}}
ATTENTIONS: dict[str, dict[str, Any]] = {
    "sym": {"name": "symmetric"},
    "rpc": {"name": "rpc", "iterations": 4, "layers": SYMMETRIC_ABOVE},
    "all": {"name": "rpc", "iterations": 2},
    "other": {"name": "softmax", "layers": {-1: {"name": "primal"}}},
    "softmax": {"name": "softmax"},
    "asymmetric": {"name": "rpc", "iterations": 4, "asymmetric": "iterate", "layers": SOFTMAX_ABOVE},
    "sym_asym": {"name": "rpc", "iterations": 4, "layers": SOFTMAX_ABOVE},
    "primal_plus": {"name": "softmax", "layers": {-1: {"name": "primal"}}},
    "primal_e": {"name": "primal", "scores": "e"},
    "tssa": {"name": "tssa"},
    "no_norm": {"name": "tssa", "normalize": False},
    "xca": {"name": "xca"},
    "mssa": {"name": "mssa"},
    "soft": {"name": "soft"},
}
DIGITS = {"name": "digits"}
IMAGENET = {"name": "imagefolder", "root": "/where/imagenet", "image_size": 224, "classes": 1000}
VIT = {"name": "vit", "depth": 3, "dim": 48}


def make_run(
    results: Path,
    name: str,
    seed: int,
    top1: float,
    data: Mapping[str, Any] = DIGITS,
    model: Mapping[str, Any] = VIT,
    **recipe: Any,
) -> Run:
    """A run of the mechanism that ``name`` ends in, evaluated and attacked by PGD with ε = 1/255 and 6/255."""
    attention = ATTENTIONS[name.rpartition("/")[2]]
    made = {"data": dict(data), "model": dict(model), "attention": attention, "train": {"epochs": 2}, **recipe}
    facts = {"status": "finished", "start": "2026", "mechanism": name, "device": "cpu", "peak_memory_mib": 512}
    run = create_run(results, name, seed, yaml.safe_dump(made), facts)
    clean = {"split": "test", "severity": 0, "images": 100, "top1": top1, "top5": 99.0}
    write_rows(run.folder / "eval.csv", [clean])
    shared = {"attack": "pgd", "images": 100, "clean_top1": top1, "top5": 90.0}
    rows = [{**shared, "epsilon": k / 255, "top1": top1 - 10 * k} for k in (1, 6)]
    write_rows(run.folder / "attacks.csv", rows)
    spent = [
        {"split": "train", "epoch": epoch, "step": 100 * epoch, "loss": 1.0, "seconds": 2.0 * epoch} for epoch in (1, 2)
    ]
    write_rows(run.folder / "metrics.csv", spent)
    return run


def several(results: Path, names: Iterable[str], **more: Any) -> list[Run]:
    """One seed of each; all have 80 %."""
    return [make_run(results, name, 0, 80, **more) for name in names]


def clean_of(table: pd.DataFrame, column: str, metric: str = "top1", number: str = "") -> dict[str, Any]:
    """``column`` of clean numbers by the last part of the label."""
    rows = table[(table["metric"] == metric) & (table["measured"] == "clean test set")]
    rows = rows[rows["table"] == number] if number else rows
    assert not rows["label"].duplicated().any()
    return dict(zip((label.rpartition("/")[2] for label in rows["label"]), rows[column], strict=True))


def test_ours_beside_the_paper_s(tmp_path: Path) -> None:
    gains = {"sym": (0, 0, 0), "rpc": (3, 4, 5), "all": (-3, 0, 3), "other": (0.9, 1, 1.1)}
    runs = [make_run(tmp_path, name, s, 80 + s + gain) for name, part in gains.items() for s, gain in enumerate(part)]
    table = laid(runs, "rpc")
    attacked = table[(table["row"] == "pgd") & (table["metric"] == "top1")].set_index("label")
    assert set(attacked["measured"]) == {"pgd 6/255"}
    assert attacked["mean"].to_dict() == pytest.approx({"sym": 21, "rpc": 25, "all": 21, "other": 22})
    assert attacked["paper"][["sym", "rpc", "all"]].tolist() == [4.98, 5.15, 6.12]
    assert attacked["paper_difference"]["all"] == pytest.approx(1.14)
    assert attacked["verdict"][["rpc", "all", "other"]].tolist() == [
        "better",
        "undecided",
        "equivalent within the margin",
    ]
    arms = {name: dict(enumerate(part)) for name, part in gains.items()}
    (effect, *_) = compare(arms, [(name, "sym") for name in ("rpc", "all", "other")])
    assert attacked.loc["rpc", ["difference_low", "difference_high"]].tolist() == pytest.approx(effect.interval())
    assert pd.isna(attacked["paper"]["other"])

    text = markdown(table, "rpc")
    assert "### RPC-Attention paper, Table 2: under attack; digits (8 × 8 pixels, 3 × 48, 2 epochs)\n" in text
    assert "| pgd 6/255 top-1 | 21.0 ± 2.5 (4.98) | " in text
    assert "- rpc against symmetric: in the paper better in 2 of 2 numbers; here 1 better, 1 undecided" in text
    assert "digits (the paper: ImageNet-1K); 8 × 8 pixels (the paper: 224 × 224 pixels); 3 × 48 (the paper: 12" in text


def test_two_seeds_cannot_tell(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, name, s, 80 + gain) for name, gain in (("sym", 0), ("rpc", 5)) for s in range(2)]
    table = laid(runs, "rpc")
    assert set(table[table["label"] == "rpc"]["verdict"]) == {"undecided"}


def test_what_was_run_otherwise_is_not_compared(tmp_path: Path) -> None:
    """Another data set, or another size of it; within one setting, the baseline of the same folder."""
    runs = [make_run(tmp_path, f"{folder}/sym", 0, top1) for folder, top1 in (("a", 70), ("b", 60))]
    runs += [make_run(tmp_path, f"{folder}/rpc", 0, 80) for folder in "ab"]
    runs += [make_run(tmp_path, "c/rpc", 0, 80, data={"name": "mnist"})]
    table = laid(runs, "rpc", ["table1"])
    rows = table[(table["metric"] == "top1") & (table["model"] == "rpc 4")].set_index("label")
    assert rows["baseline"].to_dict() == {"a/rpc": "a/sym", "b/rpc": "b/sym", "c/rpc": ""}
    assert rows["difference"][["a/rpc", "b/rpc"]].tolist() == [10, 20]
    assert pd.isna(rows["difference"]["c/rpc"])
    assert rows["setting"]["c/rpc"] == "mnist (28 × 28 pixels, 3 × 48, 2 epochs)"
    assert set(table["table"]) == {"table1"}


def test_base_size_has_tables_of_its_own(tmp_path: Path) -> None:
    base = {"name": "deit_base_patch16_224"}
    runs = several(tmp_path, ["sym", "all"], data=IMAGENET, model=base, train={"epochs": 300})
    table = laid(runs, "rpc")
    assert set(table["table"]) == {"table7", "table8"}
    assert clean_of(table, "paper") == {"sym": 80.62, "all": 80.72}
    assert clean_of(table, "paper_difference", "top5")["all"] == pytest.approx(0.04)
    attacked = table[(table["table"] == "table8") & (table["metric"] == "top5")]
    assert attacked["paper"].tolist() == [25.55, 26.68]
    assert set(table["differs"]) == {""}


def test_asymmetric_attention_is_beside_table_14(tmp_path: Path) -> None:
    runs = several(tmp_path, ["softmax", "asymmetric", "sym_asym", "rpc"])
    table = laid(runs, "rpc")
    beside = table[table["table"] == "table14"]
    assert clean_of(beside, "paper") == {"softmax": 72.11, "asymmetric": 72.34, "sym_asym": 72.34}
    assert clean_of(beside, "baseline")["sym_asym"] == "softmax"
    assert clean_of(table, "paper", number="table1")["rpc"] == 70.94
    assert "table14" not in set(laid(runs[:1], "rpc")["table"]), "softmax alone is no finding"


def test_primal_is_beside_table_7a(tmp_path: Path) -> None:
    small, names = {"name": "deit_small_patch16_224"}, ("softmax", "primal_plus", "primal_e", "soft")
    runs = several(tmp_path / "1k", names, data=IMAGENET, model=small, train={"epochs": 300})
    table = laid(runs, "primal")
    assert clean_of(table, "paper") == {"softmax": 79.8, "primal_plus": 79.8}, "the paper's alone"
    assert set(table.loc[table["row"] == "ImageNet-1K", "differs"]) == {""}
    costs = table[table["row"] == "ImageNet"].set_index(["metric", "model"])
    assert costs["mean"]["seconds_per_1k_steps"].tolist() == [20, 20]
    assert costs["paper"]["memory_gb"].to_dict() == {"softmax": 14.2, "primal_plus": 14.0}
    assert set(costs["differs"]) == {"cpu (the paper: one V100)"}

    hundred = {**IMAGENET, "classes": 100}
    table = laid(several(tmp_path / "100", names, data=hundred, model=small), "primal")
    assert clean_of(table, "paper")["primal_plus"] == 75.7
    assert clean_of(table, "paper", "top5") == {"softmax": 92.4, "primal_plus": 92.8}
    assert [clean_of(table, "table", metric)["softmax"] for metric in ("top1", "top5")] == ["table7a", "v1_table5"]
    assert clean_of(table, "paper_difference")["primal_plus"] == pytest.approx(1.5)
    assert "| primal_plus | 80.0 | 75.7 | +0.0 (undecided) | +1.5 | 99.0 | 92.8 |" in markdown(table, "primal")


def test_runs_that_were_not_measured_have_no_costs_either(tmp_path: Path) -> None:
    (run,) = several(tmp_path, ["softmax"])
    for name in ("eval.csv", "attacks.csv"):
        (run.folder / name).unlink()
    assert laid([run], "primal").empty


def test_tost_is_beside_table_2(tmp_path: Path) -> None:
    small = {"name": "vit", "depth": 12, "dim": 384}
    names = ["softmax", "tssa", "xca", "mssa", "soft"]
    table = laid(several(tmp_path / "small", names, data=IMAGENET, model=small), "tost")
    assert set(table["row"]) == {"ImageNet"}
    assert clean_of(table, "model")["tssa"] == "tssa small"
    papers = clean_of(table, "paper")
    assert pd.isna(papers.pop("mssa"))
    assert papers == {"softmax": 79.8, "tssa": 77.9, "xca": 80.5}
    assert clean_of(table, "paper_difference")["tssa"] == pytest.approx(-1.9)
    assert "a plain ViT (the paper: ToST's architecture)" in clean_of(table, "differs")["tssa"]

    tiny = {"name": "tost", "depth": 12, "dim": 192}
    tuned = {"data": {"name": "pets", "image_size": 224}, "model": tiny, "init_from": "results/imagenet/tost_tiny/0"}
    table = laid(several(tmp_path / "pets", ["tssa"], **tuned), "tost")
    assert clean_of(table, "row") == {"tssa": "Oxford-IIIT-Pets"}
    assert clean_of(table, "paper") == {"tssa": 85.6}
    assert clean_of(table, "differs") == {"tssa": ""}
    assert clean_of(table, "setting") == {
        "tssa": "pets (224 × 224 pixels, 12 × 192, fine-tuned from ImageNet-1K, 2 epochs)"
    }

    tuned = {"data": {"name": "mnist"}, "init_from": "results/fashion_mnist/tssa/0"}
    table = laid(several(tmp_path / "mnist", ["tssa"], **tuned), "tost")
    assert clean_of(table, "row") == {"tssa": "CIFAR10"}
    told = clean_of(table, "differs")["tssa"]
    assert told.startswith("mnist (the paper: cifar10); ")
    assert "fine-tuned from fashion_mnist/tssa (the paper: fine-tuned from ImageNet-1K)" in told


def test_tost_s_ablation_is_beside_table_8(tmp_path: Path) -> None:
    shared = {"data": {"name": "cifar10"}, "train": {"epochs": 400}}
    blocks = {"mlp": "mlp", "ista": "ista"}
    runs = [
        run
        for folder, block in blocks.items()
        for run in several(
            tmp_path / folder,
            [f"{folder}/tssa", f"{folder}/no_norm"],
            model={"name": "tost", "depth": 12, "dim": 384, "feed_forward": block},
            **shared,
        )
    ]
    table = laid(runs, "tost")
    assert set(table["table"]) == {"table8"}
    assert table.set_index("label")["paper"].to_dict() == {
        "mlp/tssa": 91.2,
        "ista/tssa": 87.4,
        "mlp/no_norm": 85.2,
        "ista/no_norm": 80.6,
    }
    assert set(table["baseline"]) == {"mlp/tssa"}
    assert set(table["differs"]) == {""}
    plain = several(tmp_path / "plain", ["tssa"], **shared)
    assert clean_of(laid(plain, "tost"), "row") == {"tssa": "CIFAR10"}
    assert set(laid(plain, "tost")["table"]) == {"table2"}, "a plain ViT is not of the ablation"


def test_clean_accuracy_of_what_was_only_attacked(tmp_path: Path) -> None:
    (run,) = several(tmp_path, ["tssa"])
    (run.folder / "eval.csv").unlink()
    table = laid([run], "tost")
    assert table[["measured", "mean", "paper"]].to_numpy().tolist() == [["100 clean test images", 80.0, 77.9]]


def test_folders_of_other_images(tmp_path: Path) -> None:
    """ImageNet-R and -A by accuracy, all others by AUPR."""
    (run,) = several(tmp_path, ["sym"])
    other = {"severity": 0, "images": 50, "top1": 30.0, "top5": 60.0, "aupr": 20.0}
    write_rows(run.folder / "eval.csv", [{"split": name, **other} for name in ("imagenet-r", "imagenet-o", "mnist")])
    table = laid([run], "rpc", ["table1"]).set_index(["row", "measured"])
    assert (table["metric"]["IN-R", "imagenet-r"], table["paper"]["IN-R", "imagenet-r"]) == ("top1", 28.98)
    assert table.loc["IN-O", "metric"].to_dict() == {"OOD imagenet-o": "aupr", "OOD mnist": "aupr"}
